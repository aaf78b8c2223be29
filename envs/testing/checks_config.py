"""Flags: each is known to the suite, and each does something."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from weightgym.envs.testing.expect import comparable, fail
from weightgym.envs.testing.harness import Harness


def flags_are_listed(h: Harness) -> None:
    """Every parameter of ``make`` stands in the subject's flags with two values or more, and the other way round.

    Protects from a flag that nobody tests. ``split`` takes its values from the subject's splits.
    """
    hidden = [p.name for p in h.parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if hidden:
        fail("parameters of make", wanted="names", seen=f"*{hidden[0]}, which hides them: give the class itself")
    listed, known = set(h.subject.flags) | {"split"}, set(h.parameters)
    if unlisted := sorted(known - listed):
        fail("flags of the subject", wanted=f"values for {', '.join(unlisted)}", seen="none: a flag nobody tests")
    if unknown := sorted(set(h.subject.flags) - known):
        fail("flags of the subject", wanted="parameters of make", seen=f"{', '.join(unknown)}, which it doesn't take")
    for flag, values in h.subject.flags.items():
        if len(values) < 2:
            fail(f"values of flag {flag!r}", wanted="two or more", seen=repr(values))


def flags_are_alive(h: Harness) -> None:
    """Every value of a flag leaves another trace: another prompt, info, observation or reward. Protects from a flag
    that nothing reads. The score's own ``profile`` label doesn't count, since a label proves nothing.
    """
    flags: dict[str, Sequence[Any]] = {flag: values for flag, values in h.subject.flags.items() if flag in h.parameters}
    if "split" in h.parameters:
        flags.setdefault("split", h.subject.splits)
    for flag, values in flags.items():
        traces = [(value, _trace(h, flag, value)) for value in values]
        for (one, left), (other, right) in combinations(traces, 2):
            if left == right:
                fail(f"flag {flag!r}", wanted=f"{one!r} and {other!r} to differ somewhere", seen="the same trace twice")


def _trace(h: Harness, flag: str, value: Any) -> Any:
    """The first tasks of seed 0, and (unless the flag is the split itself) the gold episodes."""
    config = dict(h.config()) | {flag: value}
    with h.env(**config) as env:
        seen: list[Any] = [env.reset(seed=0), *(env.reset() for _ in range(31))]
    if flag != "split":
        for id in h.slow_ids:
            with h.env(h.split_of[id], **{flag: value}) as env:
                trace = h.play(env, h.gold(id), id)
            trace.infos[-1]["score"] = trace.score.model_copy(update={"profile": ""})
            seen.append(trace)
    return comparable(seen)
