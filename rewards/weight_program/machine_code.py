"""Machine code of compiled games: this processor's code generator, and loading an object file into the process."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

#: The engine's own functions, which compiled games call (see ``_engine.symbols``).
BELOW, UNIFORM = "weightgym_below", "weightgym_uniform"

#: Engines own the code that they loaded; a game's code is used for as long as the process lives.
_loaded: list[Any] = []


@functools.cache
def target_machine() -> Any:
    """LLVM's code generator for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


def processor() -> str:
    """Name and features of this processor: machine code is good for one only."""
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def declare_symbols(symbols: dict[str, int]) -> None:
    """Make the engine's functions known, by address."""
    for name, address in symbols.items():
        llvm.add_symbol(name, address)


def load(code: bytes, names: tuple[str, ...]) -> tuple[int, ...]:
    """Addresses of the named functions of an object file, which stays in memory for good."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    return tuple(engine.get_function_address(name) for name in names)
