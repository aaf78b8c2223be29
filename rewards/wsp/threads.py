"""How many threads torch computes with. Needs the extra ``train``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """What the caller's thread asks of torch is computed by that thread alone; other threads keep what they have.

    Shared among several, products of matrices and sums round differently; and small ones are slower, on a busy machine
    several times, since threads spin while they wait for each other. Also a decorator: ``@one_thread()``.
    """
    before = torch.get_num_threads()  # which gives this thread a number of its own, if it has none
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
