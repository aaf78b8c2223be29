"""Importing MinAtar without its plotting libraries. Used in the sandbox too: it imports nothing of ours."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

_PLOTTING = ("matplotlib", "matplotlib.pyplot", "matplotlib.colors", "seaborn")


@contextmanager
def no_plotting() -> Iterator[None]:
    """MinAtar imports plotting libraries for its viewer, and sets up the root logger to complain when they are missing.

    Where they are not installed, empty stand-ins are there for the duration of the import.
    """
    missing = [name for name in _PLOTTING if importlib.util.find_spec(name.split(".")[0]) is None]
    stubs = {name: types.ModuleType(name) for name in missing}
    for name, stub in stubs.items():
        parent, _, child = name.rpartition(".")
        if parent in stubs:
            setattr(stubs[parent], child, stub)
    sys.modules.update(stubs)
    try:
        yield
    finally:
        for name in stubs:
            sys.modules.pop(name, None)
