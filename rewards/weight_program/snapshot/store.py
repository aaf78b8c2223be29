"""The copy of a snapshot's ``runtime`` that the sandbox gets: whole, checked, and readable for the sandbox's user.

The snapshot itself may be links into a downloader's cache, closed to others, or change while it is in use.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from weightgym.rewards.cache import cache_root
from weightgym.rewards.contracts import GraderError
from weightgym.rewards.weight_program.snapshot.integrity import sha256

#: The published one has about 330 files, 5 MB together.
_MAX_FILES, _MAX_BYTES = 5000, 128 << 20

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE | re.ASCII
)
#: Not by way of its distribution: numpy is there in any case, MinAtar without what it depends on, and we never.
_HANDLED = {"numpy", "minatar", "weightgym"}


def read_runtime(runtime: Path, digests: Mapping[str, str]) -> dict[str, bytes]:
    """All files below ``runtime``, by their path in it; hidden ones and bytecode aside.

    Raises:
        GraderError: one has changed since ``digests`` were checked, can't be read, or there is far too much.
    """
    files: dict[str, bytes] = {}
    left = _MAX_BYTES
    try:
        for path in _walk(runtime):
            left -= path.stat().st_size
            if left < 0 or len(files) == _MAX_FILES:
                raise GraderError(f"{runtime} holds more than {_MAX_FILES} files or {_MAX_BYTES >> 20} MiB")
            files[path.relative_to(runtime).as_posix()] = path.read_bytes()
    except OSError as error:
        raise GraderError(f"the snapshot can't be read: {error}") from error
    for name, digest in digests.items():
        if name not in files or sha256(files[name]) != digest:
            raise GraderError(f"{runtime / name} has changed since the snapshot was checked")
    return files


def stored(files: Mapping[str, bytes]) -> Path:
    """A folder in the cache with these files, made if it is not there.

    Raises:
        GraderError: the cache can't be written, or what is there is damaged.
    """
    key = hashlib.sha256(repr(sorted((name, sha256(data)) for name, data in files.items())).encode()).hexdigest()
    place = cache_root().absolute() / "snapshots" / key[:32]
    if not place.exists():
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
                _write(Path(folder, "runtime"), files)
                Path(folder, "runtime").rename(place)
        except OSError as error:
            if not place.exists():  # else another process was first
                message = f"can't keep a copy of the snapshot in {place.parent} ({error})"
                raise GraderError(f"{message}; set WEIGHTGYM_CACHE to a writable folder") from error
    if not _holds(place, files):
        raise GraderError(f"the copy of the snapshot in {place} is damaged: delete it")
    return place


def distributions(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Installed distributions that the Python files may import, numpy first. Their text is searched, not parsed."""
    own = {name.partition("/")[0].removesuffix(".py") for name in files} | _HANDLED | sys.stdlib_module_names
    found = {
        name.partition(".")[0].strip().partition(" ")[0]
        for path, data in files.items()
        if path.endswith(".py")
        for match in _IMPORT.finditer(data.decode("utf-8", "replace"))
        for name in (match[1] or match[2]).split(",")
    }
    if found <= own:
        return ("numpy",)
    installed = importlib.metadata.packages_distributions()
    return ("numpy", *sorted({distribution for name in found - own for distribution in installed.get(name, ())}))


def _walk(folder: Path) -> Iterator[Path]:
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        if (real := os.path.realpath(parent)) in seen:  # links in a circle
            folders.clear()
        seen.add(real)
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.suffix != ".pyc" and path.is_file():
                yield path


def _holds(place: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((place / name).read_bytes() == data for name, data in files.items())
    except OSError:
        return False


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Readable for everyone, whatever this process's mask is: root's sandboxes run as a user without rights."""
    for name, data in files.items():
        path = folder / name
        for parent in reversed([above for above in path.parents if above.is_relative_to(folder)]):
            if not parent.is_dir():
                parent.mkdir()
                parent.chmod(0o755)
        path.write_bytes(data)
        path.chmod(0o444)
