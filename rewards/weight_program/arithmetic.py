"""The floating-point modes under which scores are computed, whatever the calling program has set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def default_arithmetic() -> Iterator[None]:
    """IEEE-754's default modes in this thread: round to nearest, subnormal numbers kept.

    Libraries change them for speed (``torch.set_flush_denormal``), and NumPy then rounds small weights to zero. The
    engine sets its own threads by itself; where it could not be built, the modes stay as they are.
    """
    try:
        from weightgym.rewards.weight_program import _engine
    except ImportError:
        yield
        return
    saved = _engine.set_arithmetic(None)
    try:
        yield
    finally:
        _engine.set_arithmetic(saved)
