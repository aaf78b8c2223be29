"""Access to the installed MinAtar package (GPL-3.0, not copied here): the reference's games, the prompts' sources."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import threading
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.weight_program.no_plotting import no_plotting

VERSION = "1.0.15"
INSTALL = f"pip install --no-deps MinAtar=={VERSION}"

#: SHA-256 of each game's file in the MinAtar 1.0.15 wheel: the reference and the prompts are of exactly this version.
SOURCE_SHA256 = {
    "asterix": "ce6a4a854bbf6104868644ef364b2bb90a61e0e27ac358f242bc7be91457026a",
    "breakout": "35fd842751f4314a427623da24c3ca36dc07dfcbbd979e9c72c1079b933bcf5d",
    "freeway": "809243630624c429611645b5da183339a4268408df18d0eee76a30081acf4147",
    "seaquest": "79b28b9798c520dc30441dd62d30eb1320e47751f08afd35112cbcbd6b49a685",
    "space_invaders": "1accccac909db675dc6cc9be7af74a2bcc0ec073a1874a99b318c0a93682a1d4",
}

_import_lock = threading.Lock()


def folder() -> Path | None:
    """Where the package is; None where it is not installed."""
    found = importlib.util.find_spec("minatar")
    locations = list(found.submodule_search_locations or ()) if found else []
    return Path(locations[0]) if locations else None


def source(game: str) -> str:
    """The text of MinAtar's file of that game, without importing MinAtar.

    Raises:
        TaskError: MinAtar is not installed, or is another version.
    """
    package = folder()
    if package is None:
        raise TaskError(f"the MinAtar package is not installed: {INSTALL}")
    path = package / "environments" / f"{game}.py"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TaskError(f"can't read MinAtar's {game}: {error}; reinstall it: {INSTALL}") from error
    if hashlib.sha256(content).hexdigest() != SOURCE_SHA256[game]:
        raise TaskError(f"the installed MinAtar's {game}.py is not that of version {VERSION}: {INSTALL}")
    return content.decode("utf-8")


def environment(game: str, *, sticky: float) -> Any:
    """A fresh ``minatar.Environment`` without difficulty ramping: call ``seed(n)``, then ``reset()``.

    Raises:
        TaskError: MinAtar is not installed, or is another version.
    """
    return _module(game).Environment(game, sticky_action_prob=sticky, difficulty_ramping=False)


def _module(game: str) -> Any:
    module = sys.modules.get("minatar.environment")
    if module is None:
        source(game)  # the right version, or a clear error
        with _import_lock, no_plotting():
            module = importlib.import_module("minatar.environment")
    return module
