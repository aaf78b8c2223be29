"""Importing a snapshot's own modules: from their source text, and from nothing else.

Python would take a package, an extension or bytecode in place of a source file of the same name, and anything in the
first folder of its path in place of an installed package. None of those has a digest. This file is used in the sandbox:
it imports nothing of ours.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

#: What may not be an installed package, whatever is installed.
OWN = ("verify", "minatar_synth")


class SnapshotFinder(MetaPathFinder):
    """Finds modules in the snapshot: its own names before all others, helpers only where nothing is installed."""

    def __init__(self, runtime: Path, *, own: bool) -> None:
        self.runtime = runtime
        self.own = own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's source file; a package only where there is none."""
        if (fullname.partition(".")[0] in OWN) != self.own:
            return None
        place = self.runtime.joinpath(*fullname.split("."))
        file, package = place.with_suffix(".py"), place / "__init__.py"
        if file.is_file():
            return spec_from_file_location(fullname, file, loader=_Loader(file))
        if package.is_file():
            locations = [str(place)]
            return spec_from_file_location(
                fullname, package, loader=_Loader(package), submodule_search_locations=locations
            )
        if place.is_dir():
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None


class _Loader(SourceLoader):
    """Reads one source file, and never bytecode (``path_stats`` is left out for that)."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def get_filename(self, fullname: str) -> str:
        """The file's path."""
        return str(self.file)

    def get_data(self, path: Any) -> bytes:
        """The file's bytes."""
        return Path(path).read_bytes()


def install(runtime: Path) -> None:
    """Make the snapshot's modules importable in this process. Only once."""
    sys.meta_path.insert(0, SnapshotFinder(runtime, own=True))
    sys.meta_path.append(SnapshotFinder(runtime, own=False))


def fresh(name: str, runtime: Path) -> ModuleType:
    """The module as if imported for the first time: no state of earlier episodes in it or in its helpers."""
    for loaded, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if loaded.partition(".")[0] in OWN or (file is not None and Path(file).is_relative_to(runtime)):
            del sys.modules[loaded]
    importlib.invalidate_caches()
    return importlib.import_module(name)
