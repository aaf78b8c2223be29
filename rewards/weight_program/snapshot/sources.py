"""Importing a snapshot's own modules: from source text whose digest was checked, and from nowhere else.

Python would take a package, an extension or bytecode in place of a source file of the same name, and anything in the
first folder of its path in place of an installed package. None of those has a digest.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

#: What may not be an installed package, whatever is installed.
OWN = ("verify", "minatar_synth")


class SnapshotFinder(MetaPathFinder):
    """Finds modules in the snapshot: its own names before all others, helpers only where nothing is installed.

    Listed files load only if their bytes have the listed digest. Others (the digests don't cover packages'
    ``__init__.py`` and helpers) load as they are.
    """

    def __init__(self, runtime: Path, digests: Mapping[str, str], *, own: bool) -> None:
        self.runtime = runtime
        self.digests = digests
        self.own = own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's source file: a listed one first."""
        if (fullname.partition(".")[0] in OWN) != self.own:
            return None
        place = self.runtime.joinpath(*fullname.split("."))
        file, package = place.with_suffix(".py"), place / "__init__.py"
        if file.is_file():
            return spec_from_file_location(fullname, file, loader=_Loader(file, self._digest(file)))
        if package.is_file():
            loader = _Loader(package, self._digest(package))
            return spec_from_file_location(fullname, package, loader=loader, submodule_search_locations=[str(place)])
        if place.is_dir():
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None

    def _digest(self, file: Path) -> str | None:
        return self.digests.get(file.relative_to(self.runtime).as_posix())


class _Loader(SourceLoader):
    """Reads one source file, once, and never bytecode (``path_stats`` is left out for that)."""

    def __init__(self, file: Path, digest: str | None) -> None:
        self.file = file
        self.digest = digest

    def get_filename(self, fullname: str) -> str:
        """The file's path."""
        return str(self.file)

    def get_data(self, path: Any) -> bytes:
        """The file's bytes, if they are those that were checked."""
        content = Path(path).read_bytes()
        if self.digest is not None and hashlib.sha256(content).hexdigest() != self.digest:
            raise ImportError(f"{path} has changed since the snapshot was checked")
        return content


def install(runtime: Path, digests: Mapping[str, str]) -> None:
    """Make the snapshot's modules importable in this process."""
    sys.meta_path.insert(0, SnapshotFinder(runtime, digests, own=True))
    sys.meta_path.append(SnapshotFinder(runtime, digests, own=False))


def fresh(name: str, runtime: Path) -> ModuleType:
    """The module as if imported for the first time: no state of earlier episodes in it or in its helpers."""
    for loaded, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if loaded.partition(".")[0] in OWN or (file is not None and Path(file).is_relative_to(runtime)):
            del sys.modules[loaded]
    importlib.invalidate_caches()
    return importlib.import_module(name)
