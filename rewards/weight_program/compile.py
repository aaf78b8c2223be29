"""Compiles a built-in game's file into machine code, with numba. Only a game that is not in the cache needs this.

The file is run once, to get its functions, with the compiler's own forms of the kit's functions in place of the plain
ones. The result is an object file that needs nothing but the engine's two random functions: it loads without numba.
"""

from __future__ import annotations

import json
import sys
import types as python_types
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import types as numba_types

from weightgym.rewards.contracts import GraderError
from weightgym.rewards.weight_program.games import kit
from weightgym.rewards.weight_program.machine_code import BELOW, UNIFORM, declare_symbols, target_machine

types: Any = numba_types  # its names are made at run time

#: Division by zero and indices out of range are bugs of a game, which the plain run finds.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "boundscheck": False}


def compile_game(source: str, path: str) -> tuple[tuple[str, str, str], bytes]:
    """Names of the reset, step and observe entries, and the object file that holds them. Takes seconds.

    The engine must have been loaded before (``machine_code.declare_symbols``).

    Raises:
        GraderError: the file is outside the subset of Python that compiles.
    """
    try:
        functions = [_compile(signature, entry) for signature, entry in _entries(_namespace(source, path))]
    except numba.core.errors.NumbaError as error:
        raise GraderError(f"{path} does not compile: {' '.join(str(error).split())}") from error
    names = tuple(function.native_name for function in functions)
    return names, _object_file([function._library.get_llvm_str() for function in functions], set(names))


def _namespace(source: str, path: str) -> dict[str, Any]:
    """The game's globals, with every function compiled on first call."""
    namespace: dict[str, Any] = {"__name__": "weightgym_game"}
    exec(compile(source, path, "exec"), namespace)  # a file of this package, never a model's text
    for name, value in namespace.items():
        if isinstance(value, python_types.FunctionType):
            own = value.__module__ == "weightgym_game"
            namespace[name] = numba.njit(**_OPTIONS)(value if own else _KIT.get(name, value))
    return namespace


def _kit() -> dict[str, Callable[..., Any]]:
    """The functions of the kit that differ when compiled: ``rng`` is an address, the board an array of words."""
    draw_below = types.ExternalFunction(BELOW, types.int64(types.voidptr, types.int64))
    draw_uniform = types.ExternalFunction(UNIFORM, types.float64(types.voidptr))

    def below(rng, n):  # type: ignore[no-untyped-def]
        return draw_below(rng, n)

    def chance(rng, probability):  # type: ignore[no-untyped-def]
        return draw_uniform(rng) < probability

    def light(board, row, column, channel):  # type: ignore[no-untyped-def]
        if 0 <= row < kit.SIZE and 0 <= column < kit.SIZE:
            board[row] |= np.uint64(1) << np.uint64(column * 6 + channel)

    return {"below": below, "chance": chance, "light": light}


_KIT = _kit()


def _entries(namespace: dict[str, Any]) -> list[tuple[Any, Callable[..., Any]]]:
    """Signature and body of reset, step and observe, as ``engine/game_abi.hpp`` wants them."""
    size = int(namespace["STATE"])
    reset, step, observe = namespace["reset"], namespace["step"], namespace["observe"]
    state = types.CPointer(types.int64)

    def reset_entry(memory, rng):  # type: ignore[no-untyped-def]
        s = numba.carray(memory, (size,))
        s[:] = 0
        reset(s, rng)

    def step_entry(memory, action, rng):  # type: ignore[no-untyped-def]
        reward, over = step(numba.carray(memory, (size,)), action, rng)
        # StepResult, two 32-bit integers, comes back in one register.
        return (np.int64(reward) & 0xFFFFFFFF) | (np.int64(1 if over else 0) << 32)

    def observe_entry(memory, masks, rows):  # type: ignore[no-untyped-def]
        observe(numba.carray(memory, (size,)), numba.carray(rows, (kit.SIZE,)))

    return [
        (types.void(state, types.voidptr), reset_entry),
        (types.int64(state, types.int32, types.voidptr), step_entry),
        (types.void(state, types.voidptr, types.CPointer(types.uint64)), observe_entry),
    ]


def _compile(signature: Any, entry: Callable[..., Any]) -> Any:
    return numba.cfunc(signature, **_OPTIONS)(entry)


def _object_file(modules: list[str], names: set[str]) -> bytes:
    """The modules as one, without what the entries don't need."""
    linked = llvm.parse_assembly(modules[0])
    for text in modules[1:]:
        linked.link_in(llvm.parse_assembly(text))
    for value in (*linked.functions, *linked.global_variables):
        if not value.is_declaration and value.name not in names:
            value.linkage = "internal"
    target = target_machine()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(linked, builder)
    undefined = {f.name for f in linked.functions if f.is_declaration and not f.name.startswith("llvm.")}
    if undefined - {BELOW, UNIFORM, "memset", "memcpy", "memmove"}:
        # Memory management or exceptions: the object would need numba at run time.
        raise GraderError(f"a game may neither allocate nor raise, but this one needs {', '.join(sorted(undefined))}")
    return bytes(target.emit_object(linked))


def main() -> None:
    """Compile what standard input orders, to standard output: entry names as a JSON line, then the object file."""
    from weightgym.rewards.weight_program import _engine

    declare_symbols(_engine.symbols())
    order = json.load(sys.stdin)
    try:
        names, code = compile_game(order["source"], order["path"])
    except GraderError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(json.dumps(names).encode() + b"\n" + code)


if __name__ == "__main__":
    main()
