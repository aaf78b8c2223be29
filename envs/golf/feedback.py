"""What the model is told between attempts: the evaluator's own report.

It is made of the score's fields alone, none of which holds text that the solution's code made (such text could carry
validation bytes). Of times it tells only which quarter of a budget they fall into, so that an episode that is played
again reads the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weightgym.rewards.contracts import Score
from weightgym.rewards.golf.profile import Budget, Hardware
from weightgym.rewards.golf.profile import profile as find_profile
from weightgym.rewards.golf.scorer import best_of

_QUARTERS = ("under 25 %", "25 to 50 %", "50 to 75 %", "over 75 %")


def report(scores: Sequence[Score], attempts: int) -> str:
    """The report of the last of the scores so far, the best of them, and how many attempts are left."""
    last = scores[-1]
    lines = [f"Attempt {len(scores)} of {attempts}: {_outcome(last)}", *_bytes(last), *_times(last), _best(scores)]
    left = attempts - len(scores)
    if left:
        lines.append(f"{left} {'attempt' if left == 1 else 'attempts'} left: give the whole file again, improved.")
    return "\n".join(lines)


def _outcome(score: Score) -> str:
    return f"ok, val_bpb {score.metrics['val_bpb']:.5f}" if score.status == "ok" else f"buggy, {score.reason}"


def _bytes(score: Score) -> list[str]:
    """Where the artifact was counted."""
    names = ("artifact_bytes", "claimed_bytes", "audited_bytes", "source_bytes")
    if not all(name in score.metrics for name in names):
        return []
    total, claimed, audited, source = (f"{score.metrics[name]:,.0f}" for name in names)
    return [f"Artifact: {total} bytes (the model: you claim {claimed}, we count {audited}; solution.py: {source})"]


def _times(score: Score) -> list[str]:
    """How much of its budgets a run has used that got past its training."""
    if "pack_cpu_s" not in score.timings:
        return []
    training, after = find_profile(score.profile).budgets(_hardware(score.info["result"]))
    first, second = _used(score, training, "train"), _used(score, after, "pack", "serve")
    return [f"Time: training took {first} of its budget, packing and scoring took {second} of theirs"]


def _hardware(result: Any) -> Hardware:
    found = result["fingerprint"]
    return Hardware(found["device"], max(1, len(found.get("gpus", ()))))


def _used(score: Score, budget: Budget, *phases: str) -> str:
    share = sum(score.timings.get(f"{phase}_cpu_s", 0.0) for phase in phases) / budget.cpu_seconds
    if budget.wall_seconds is not None:
        share = max(share, sum(score.timings.get(f"{phase}_s", 0.0) for phase in phases) / budget.wall_seconds)
    return _QUARTERS[min(3, int(4 * share))]


def _best(scores: Sequence[Score]) -> str:
    found = best_of(scores)
    if found.status != "ok":
        return "Best so far: none is valid"
    return f"Best so far: val_bpb {found.metrics['val_bpb']:.5f} (attempt {found.metrics['best_attempt']:.0f})"
