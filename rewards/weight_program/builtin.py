"""The built-in games: one readable file each, compiled on first use, the machine code kept on disk."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import subprocess
import sys
import threading
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from weightgym.rewards.cache import cache_root
from weightgym.rewards.failures import GraderError, TaskError
from weightgym.rewards.weight_program import variants
from weightgym.rewards.weight_program.games import GAMES, kit

_lock = threading.Lock()
_FORMAT = "1"  # of the cache files


class CacheWarning(RuntimeWarning):
    """The cache of compiled games can't be used: games are compiled anew in every process."""


@functools.cache
def module(game: str) -> ModuleType:
    """The game's file as a module (docs/write-a-game.md says what is in it), or that of a variant of it.

    Raises:
        TaskError: there is no such game.
    """
    file, changes = variants.split(game)
    if file not in GAMES:
        raise TaskError(f"unknown built-in game {file!r}")
    base = importlib.import_module(f"weightgym.rewards.weight_program.games.{file}")
    if not changes:
        return base
    made = ModuleType(base.__name__)
    made.__file__ = base.__file__
    exec(compile(source(game), str(base.__file__), "exec"), made.__dict__)  # a file of this package with other numbers
    return made


@functools.cache
def caps() -> dict[str, int]:
    """Game → reward cap, of all built-in games (variants not among them)."""
    return {game: module(game).CAP for game in GAMES}


def source(game: str) -> str:
    """The text of the game's file: what the prompt shows, and what runs.

    Raises:
        TaskError: there is no such game, or no such variant of it.
    """
    file, changes = variants.split(game)
    base = module(file)
    text = _path(base).read_text()
    return variants.rewrite(text, game, base.VARY) if changes else text


@functools.cache
def can_compile() -> bool:
    """Whether numba is installed. Asked before every run, so looked up once."""
    return find_spec("numba") is not None


def load(game: str, loop: Any) -> Any:
    """The game as a capsule for the engine (``loop`` is the ``_engine`` module). Needs numba.

    Raises:
        GraderError: the game is outside the subset of Python that compiles.
    """
    with _lock:  # two threads would compile the same game
        return _load(game, loop)


@functools.cache
def _load(game: str, loop: Any) -> Any:
    from weightgym.rewards.weight_program import machine_code

    machine_code.declare_symbols(loop.symbols())
    text = source(game)
    key = _key(text, machine_code.processor())
    names, code = _cached(key) or _compiled(game, text, key)
    reset, step, observe = machine_code.load(code, names)
    return loop.make_game(game, module(game).STATE * 8, reset, step, observe)


def _key(text: str, processor: str) -> str:
    kit_text = _path(kit).read_text()
    compiler = Path(__file__).with_name("compile.py").read_text()
    parts = [_FORMAT, text, kit_text, compiler, version("numba"), version("llvmlite"), processor]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _path(of: ModuleType) -> Path:
    assert of.__file__ is not None
    return Path(of.__file__)


def _compiled(game: str, text: str, key: str) -> tuple[tuple[str, ...], bytes]:
    """Compile in a process of its own: the compiler never gives back what a game took (17 MB)."""
    order = json.dumps({"source": text, "path": str(_path(module(game)))})
    command = [sys.executable, "-m", "weightgym.rewards.weight_program.compile"]
    done = subprocess.run(command, input=order.encode(), capture_output=True, check=False)
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise GraderError(f"{game} can't be compiled: {told[-1]}")
    head, _, code = done.stdout.partition(b"\n")
    names = tuple(json.loads(head))
    _store(key, names, code)
    return names, code


def cache_folder() -> Path:
    """Where compiled games are kept."""
    return cache_root() / "games"


def _cached(key: str) -> tuple[tuple[str, ...], bytes] | None:
    """Entry names and object file from the cache; None where there is no good copy."""
    try:
        head, _, code = (cache_folder() / key).read_bytes().partition(b"\n")
        fields = json.loads(head)
        good = fields["sha256"] == hashlib.sha256(code).hexdigest()
        return (tuple(fields["names"]), code) if good else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(key: str, names: tuple[str, ...], code: bytes) -> None:
    """Put into the cache, whole or not at all: other processes may do the same at this moment."""
    head = json.dumps({"sha256": hashlib.sha256(code).hexdigest(), "names": names}).encode()
    folder = cache_folder()
    partial = folder / f"{key}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(head + b"\n" + code)
        partial.replace(folder / key)
    except OSError as error:
        message = f"can't keep compiled games in {folder} ({error}); set WEIGHTGYM_CACHE to a writable folder"
        warnings.warn(message, CacheWarning, stacklevel=2)
