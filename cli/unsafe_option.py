"""The option that lets foreign code run without a sandbox, for all commands that run some."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

Command = Callable[..., Any]


def unsafe_option(function: Command) -> Command:
    """Add ``--unsafe``, which lets foreign code run without a sandbox."""

    @click.option(
        "--unsafe",
        is_flag=True,
        help="Run code that is not ours without a sandbox, with your rights: for machines that can't sandbox, and code "
        "that you trust (or set WEIGHTGYM_UNSAFE=1). See `weightgym doctor`.",
    )
    @functools.wraps(function)
    def run(*args: Any, unsafe: bool, **kwargs: Any) -> Any:
        from weightgym.rewards.sandbox import UNSAFE_VARIABLE

        with environment_kept():
            if unsafe:
                os.environ[UNSAFE_VARIABLE] = "1"
            return function(*args, **kwargs)

    return run


@contextmanager
def environment_kept() -> Iterator[None]:
    """Choices hold for one command: they reach worker processes through the environment, and end with it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
