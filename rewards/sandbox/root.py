"""What the sandbox's root holds: an interpreter with its standard library, some packages, and their shared libraries.

Everything is at the path it has on this machine, read-only; parents are empty folders. Only what is in /tmp here, where
the sandbox has a folder of its own, is under /site. weightgym itself is not there.
"""

from __future__ import annotations

import functools
import glob
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from weightgym.rewards.failures import SandboxError
from weightgym.rewards.sandbox import elf
from weightgym.rewards.sandbox.policy import SandboxPolicy

#: This package's files for the inside, and where they are there.
INSIDE = Path(__file__).parent / "inside"
INSIDE_THERE = "/sandbox/inside"
RUNNER_THERE = "/runner/runner.py"
#: PyTorch looks up which vector instructions it may use.
_TOPOLOGY = "/sys/devices/system/cpu"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
#: Loaded by name at run time, so no list of needed libraries has it.
_LOADED_LATE = "libgcc_s.so.1"
_LDD_SECONDS = 120
#: Modules of the standard library for a screen.
_UNWANTED = ("_tkinter.", "_curses", "readline.")


def interpreter() -> str:
    """The base interpreter's real path (a virtual environment is not needed inside)."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def mounts(policy: SandboxPolicy, runner: Path) -> list[str]:
    """bwrap's arguments that make the root; ``SandboxError`` when a part is missing."""
    masked, entries = _stdlib(), package_entries(policy.packages)
    binds = {path: path for path in (interpreter(), *masked)}
    hidden = [f"{folder}/site-packages" for folder in masked if os.path.isdir(f"{folder}/site-packages")]
    late = {_there(path): path for path in (*entries, *libraries(policy.packages, _single_objects(policy)))}
    late |= {INSIDE_THERE: str(INSIDE), RUNNER_THERE: str(runner), **dict(policy.files)}
    if os.path.isdir(_TOPOLOGY) and not policy.gpu:
        late[_TOPOLOGY] = _TOPOLOGY
    if policy.gpu:
        late |= {path: path for path in ("/sys", *driver_libraries())}
    _check_readable([*binds.values(), *late.values()])
    devices = [*_DEVICES, *(sorted(glob.glob("/dev/nvidia*")) if policy.gpu else ())]
    arguments = _folders(
        [*binds, *late, *devices, "/proc/x", "/dev/shm/x", "/tmp/x"], [*masked, *map(_there, entries), *hidden]
    )
    for there, here in binds.items():
        arguments += ["--ro-bind", here, there]
    for folder in hidden:
        arguments += ["--tmpfs", folder]
    for there, here in late.items():
        arguments += ["--ro-bind", here, there]
    for device in devices:
        arguments += ["--dev-bind", device, device]
    for folder in [*hidden, "/"]:
        arguments += ["--remount-ro", folder]
    temporary = [
        "--perms",
        "0777",
        "--size",
        str(policy.tmpfs_bytes),
        "--tmpfs",
        "/tmp",
    ]  # the zygote's; phases cover it
    return [*arguments, "--proc", "/proc", *temporary]


def site_folders(packages: Iterable[str]) -> list[str]:
    """The folders that ``sys.path`` needs for the packages."""
    return sorted({os.path.dirname(_there(entry)) for entry in package_entries(tuple(packages))})


@functools.cache
def package_entries(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Top-level files and folders of the distributions and of all they depend on.

    Raises:
        SandboxError: one of ``packages`` is not installed.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    for name in packages:
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise SandboxError(f"the package {name} is not installed: pip install {name}") from None
        _collect(name, found)
    entries = set()
    for distribution in found.values():
        for file in distribution.files or ():
            if file.parts[0] not in ("..", "__pycache__"):
                entries.add(str(distribution.locate_file(file.parts[0])))
    return tuple(sorted(entry for entry in entries if os.path.exists(entry)))


@functools.cache
def libraries(packages: tuple[str, ...], more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Shared libraries outside of those folders that the interpreter, its modules and the packages are linked with.

    And those of ``more`` objects.
    """
    inside = [*_stdlib(), *package_entries(packages)]
    objects = [interpreter(), *more, *(path for folder in inside for path in _shared_objects(folder))]
    needed = _ldd(_enough(objects))
    for libc in [path for path in needed if os.path.basename(path) == "libc.so.6"]:
        needed.add(os.path.join(os.path.dirname(libc), _LOADED_LATE))
    outside = (path for path in needed if not any(_within(path, folder) for folder in inside))
    return tuple(sorted(path for path in outside if os.path.exists(path)))


def driver_libraries() -> list[str]:
    """NVIDIA's driver, wherever the loader or a container's runtime has it."""
    patterns = ("libcuda.so*", "libnvidia-*.so*", "libcudadebugger.so*")
    folders = {
        *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
        *("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"),
        *("/usr/local/nvidia/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"),
    }
    return sorted(path for folder in folders if folder for p in patterns for path in glob.glob(f"{folder}/{p}"))


@functools.cache
def _stdlib() -> tuple[str, ...]:
    pure = os.path.realpath(os.path.dirname(os.__file__))
    compiled = os.path.realpath(sysconfig.get_config_var("DESTSHARED") or pure)
    return (pure,) if _within(compiled, pure) else (pure, compiled)


def _collect(name: str, found: dict[str, importlib.metadata.Distribution]) -> None:
    """Add a distribution and, if installed, what it requires (extras aside)."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return  # for another platform, say
    if distribution.name in found:
        return
    found[distribution.name] = distribution
    for requirement in distribution.requires or ():
        required = re.match(r"[\w.-]+", requirement)
        if required and "extra ==" not in requirement:
            _collect(required[0], found)


def _single_objects(policy: SandboxPolicy) -> tuple[str, ...]:
    """Shared objects among the policy's files. Not those in its folders: foreign ones are no food for ``ldd``."""
    return tuple(path for _, path in policy.files if path.endswith(".so"))


def _shared_objects(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield from [path] if ".so" in os.path.basename(path) else []
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in ("site-packages", "__pycache__", "test")]
        yield from (
            os.path.join(folder, name)
            for name in names
            if (name.endswith(".so") or ".so." in name) and not name.startswith(_UNWANTED)
        )


def _enough(objects: list[str]) -> list[str]:
    """So many of the objects that each library that any of them needs is needed by one of these: ldd is slow."""
    chosen, covered = [], {os.path.basename(path) for path in objects}
    for path in objects:
        names = elf.needed(path)
        if not covered.issuperset(names):
            covered |= names
            chosen.append(path)
    return chosen


def _ldd(objects: list[str]) -> set[str]:
    try:
        done = subprocess.run(["ldd", *objects], capture_output=True, text=True, timeout=_LDD_SECONDS, env=_loader())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"ldd does not work, so shared libraries can't be found: {error}") from error
    return set(re.findall(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", done.stdout, re.MULTILINE))


def _loader() -> dict[str, str]:
    path = os.environ.get("LD_LIBRARY_PATH")
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"} | ({"LD_LIBRARY_PATH": path} if path else {})


def _there(path: str) -> str:
    """Where the sandbox has what is at ``path`` here."""
    return f"/site{path}" if _within(path, "/tmp") else path


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _folders(paths: Iterable[str], bound: list[str]) -> list[str]:
    """Make the parents, open to all (bwrap's own are closed to others); not within what is bound as a whole."""
    parents = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "/"}
    wanted = sorted(parent for parent in parents if not any(_within(parent, folder) for folder in bound))
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", folder)]


def _check_readable(paths: Iterable[str]) -> None:
    for path in paths:
        if not os.access(path, os.R_OK):
            raise SandboxError(f"the sandbox needs {path}, which is not there or can't be read")
        if os.geteuid() == 0 and not os.stat(path).st_mode & 0o004:
            raise SandboxError(f"root's sandboxes run as a user without rights, who can't read {path}: chmod o+r")
