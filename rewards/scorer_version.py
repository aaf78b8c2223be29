"""What a score depends on beside its task, its answer and its profile: the scorer's version.

Nobody has to raise a number when a scorer changes: the version is a digest of the code itself and of what else can move
a bit.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
from importlib import metadata
from pathlib import Path

from weightgym.rewards.contracts import GraderError, canonical_json, sha256_hex
from weightgym.rewards.machine import cpu_name

_PACKAGE = "weightgym.rewards"
#: Packages that scorers compute with.
_LIBRARIES = ("MinAtar", "numpy", "safetensors", "tokenizers", "torch", "transformers")
#: Of the environment, what scorers read begins so; and what of that says only where things are.
_PREFIX, _PLACES = "WEIGHTGYM_", ("WEIGHTGYM_CACHE",)


def scorer_version(scorer: str) -> str:
    """The version of the scorer ``"module:function"``: SHA-256 of

    * all files of ``weightgym.rewards``, compiled ones included,
    * for a scorer elsewhere, the Python files of its own package (or its one file),
    * the versions of Python and of the packages that scorers compute with, and the processor,
    * the environment's ``WEIGHTGYM_*``, which name a secret, a snapshot, sets of instances; of what they name on disk,
      and of what lies beside it under the same name (the truth of a set), the files' sizes and times.

    Raises:
        GraderError: there is no such module.
    """
    module = scorer.partition(":")[0]
    chosen = {name: value for name, value in os.environ.items() if name.startswith(_PREFIX) and name not in _PLACES}
    parts = {
        "scorer": scorer,
        "own": _digest(_PACKAGE),
        "code": _digest(module) if not module.startswith(f"{_PACKAGE}.") else "",
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "processor": cpu_name(),
        "environment": chosen,
        "files": [_named(Path(text)) for value in chosen.values() for text in value.split(os.pathsep) if text],
    }
    return sha256_hex(canonical_json(parts))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _named(path: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of each file that a path means, in order; nothing where there is none."""
    try:
        beside = [one for one in path.parent.iterdir() if one.stem == path.stem] if path.exists() else []
        files = [file for one in beside for file in (one.rglob("*") if one.is_dir() else [one]) if file.is_file()]
        return sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    except OSError:  # no path at all, but a secret that is too long for one, say
        return []


@functools.cache
def _digest(module: str) -> str:
    """Of the files that a module's code is in: those of the package around it, if it is in one. Once a process, which
    has imported them once, too."""
    try:
        spec = importlib.util.find_spec(module)
        package = (
            None if module == _PACKAGE or "." not in module else importlib.util.find_spec(module.rpartition(".")[0])
        )
    except (ImportError, ValueError) as error:
        raise GraderError(f"scorer module {module!r} can't be found: {error}") from error
    if spec is None:
        raise GraderError(f"there is no scorer module {module!r}")
    found = hashlib.sha256()
    for path in sorted(_files(spec, package)):
        found.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _files(spec: importlib.machinery.ModuleSpec, package: importlib.machinery.ModuleSpec | None) -> list[Path]:
    folders = spec.submodule_search_locations or (package.submodule_search_locations if package else None)
    if not folders:
        return [Path(spec.origin)] if spec.origin and os.path.exists(spec.origin) else []
    every = spec.name == _PACKAGE
    files = [path for folder in folders for path in Path(folder).rglob("*") if path.is_file()]
    return [path for path in files if "__pycache__" not in path.parts and (every or path.suffix == ".py")]
