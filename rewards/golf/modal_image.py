"""What a candidate of ``golf-modal-h100x8`` runs in: a container image with this very weightgym, and the machine.

These are definitions: nothing here talks to Modal. The choices belong to the profile; changing one makes a new profile.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import weightgym.rewards
from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.modal_payload import StreamName
from weightgym.rewards.golf.profile import Profile

if TYPE_CHECKING:
    import modal

APP = "weightgym-golf"
PYTHON = "3.12"
#: PyPI's build of torch for Linux is the one with CUDA. The others are all that ``modal_remote`` imports.
PACKAGES = ("torch==2.13.0", "numpy==2.4.6", "pydantic==2.14.4")
#: Which of Modal's runtimes to ask for, "gvisor" or "vm": unset, Modal chooses.
RUNTIME_VARIABLE = "WEIGHTGYM_MODAL_RUNTIME"
_HOME = "/opt/weightgym"
_STREAMS = "/golf"
#: What the container runs. It reads a payload on its standard input and writes a reply on its standard output.
COMMAND = ("python", "-m", "weightgym.rewards.golf.modal_remote", _STREAMS)
#: For all that no budget is for: starting Python and torch, the checks, the audit, the way back.
EXTRA_SECONDS = 240
_CORES, _MEMORY_MIB = 16.0, 128 << 10


def modal_module() -> ModuleType:
    """The package ``modal``, imported only when it is needed.

    Raises:
        SandboxError: it is not installed.
    """
    try:
        import modal
    except ImportError as error:
        missing = error.name or error
        raise SandboxError(f"golf-modal-h100x8 needs the package {missing}: pip install 'weightgym[modal]'") from error
    return modal


def base_image() -> modal.Image:
    """Debian with Python, bubblewrap and the packages: the part that is built once."""
    image: modal.Image = modal_module().Image.debian_slim(PYTHON).apt_install("bubblewrap").pip_install(*PACKAGES)
    return image.env({"PYTHONPATH": _HOME, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"})


def with_weightgym(image: modal.Image) -> modal.Image:
    """The image with the code that runs here, file by file: of weightgym only ``rewards``."""
    only_python = modal_module().file_pattern_matcher.NON_PYTHON_FILES
    (rewards,) = weightgym.rewards.__path__
    return image.add_local_dir(os.path.realpath(rewards), f"{_HOME}/weightgym/rewards", ignore=only_python)


def with_streams(image: modal.Image, files: Mapping[StreamName, Path]) -> modal.Image:
    """The image with the bytes of a corpus. Modal stores a file once, however many candidates use it."""
    for name, path in files.items():
        image = image.add_local_file(path, f"{_STREAMS}/{name}")
    return image


def lifetime(profile: Profile) -> int:
    """Seconds that a container may live: both budgets, view B (which has the second one again), and some more.

    A candidate that breaks a budget is told so from the inside, earlier than this; so whoever reaches it is our fault.
    """
    return round(profile.train_seconds + 2 * profile.post_seconds) + EXTRA_SECONDS


def machine(profile: Profile) -> dict[str, Any]:
    """The arguments of ``modal.Sandbox.create`` besides command, app and image.

    ``!`` keeps Modal from handing out a faster GPU than was asked for. There is no network.

    Raises:
        SandboxError: ``WEIGHTGYM_MODAL_RUNTIME`` is no runtime.
    """
    runtime = os.environ.get(RUNTIME_VARIABLE) or None
    if runtime not in (None, "gvisor", "vm"):
        raise SandboxError(f"{RUNTIME_VARIABLE} is {runtime!r}; it takes gvisor or vm")
    gpu = f"{profile.gpu_kind}!:{profile.gpus}" if profile.gpus else None
    return {
        "gpu": gpu,
        "cpu": _CORES,
        "memory": _MEMORY_MIB,
        "timeout": lifetime(profile),
        "block_network": True,
        "runtime": runtime,
    }
