"""What is worth a second look in a run, in words: each finding says what was seen and where to look next."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from weightgym.trainers.jumps import Jump, Series, jumps
from weightgym.trainers.run_folder import Run, series

#: Field of the configuration's ``limits`` → the metric that it bounds at every step.
BOUNDED: Mapping[str, str] = {
    "truncated": "rollout/truncated",
    "invalid": "rollout/invalid",
    "faults": "rollout/faults",
    "stale": "rollout/stale",
    "logp_gap": "sampling/logp_diff_mean",
}
#: Share of a limit from which on it is near.
NEAR = 0.5
#: Steps that first and last values are means of.
WINDOW = 10


@dataclass(frozen=True)
class Finding:
    """``warning``: the run may be not what it seems; ``note``: good to know."""

    level: Literal["warning", "note"]
    text: str
    look: str


@dataclass(frozen=True)
class LimitUse:
    """How near a metric came to its limit."""

    limit: str
    metric: str
    value: float  #: of the limit
    worst: float
    step: int

    @property
    def near(self) -> bool:
        """Whether over half of the limit was used; a fraction may be anything where the limit is 1."""
        return self.value != 1 and self.worst > 0 and self.worst >= NEAR * self.value


@dataclass(frozen=True)
class Trend:
    """Means over ten steps of a metric, or over half of the steps where there are fewer than twenty."""

    first: float
    last: float
    best: float
    best_step: int  #: the last step of the best mean
    steps: int  #: that each is a mean of


def trend(run: Run, name: str) -> Trend | None:
    """Of a metric of training; None where no step has it."""
    steps, values = series(run.steps, name)
    if not values:
        return None
    size = min(WINDOW, max(1, len(values) // 2))
    means = [statistics.fmean(values[end - size : end]) for end in range(size, len(values) + 1)]
    best = max(range(len(means)), key=means.__getitem__)
    return Trend(means[0], means[-1], means[best], int(steps[best + size - 1]), size)


def limits(run: Run) -> list[LimitUse]:
    """How near each limit came, of those whose metric was written."""
    used = []
    for limit, value in run.limits().items():
        metric = BOUNDED.get(limit)
        steps, values = series(run.steps, metric) if metric else ([], [])
        if metric and values:
            worst = max(values)
            used.append(LimitUse(limit, metric, value, worst, int(steps[values.index(worst)])))
    return used


def findings(run: Run) -> list[Finding]:
    """Everything, warnings first."""
    return warnings_first([finding for rule in _RULES for finding in rule(run)])


def warnings_first(found: list[Finding]) -> list[Finding]:
    """The same, warnings before notes."""
    return sorted(found, key=lambda finding: finding.level != "warning")


def _unfinished(run: Run) -> Iterator[Finding]:
    stop = run.events[-1] if run.events and run.events[-1].kind == "stopped" else None
    if stop:
        look = "fix the cause, then weightgym train CONFIG --resume goes on from the last checkpoint"
        yield Finding("warning", f"stopped at step {stop.step}: {stop.text or 'no reason was given'}", look)
    elif run.done < run.planned:
        text = f"{run.done} of {run.planned} steps are done; the last metric is {_age(run.age)} old"
        yield Finding("note", text, "still going, or killed: then weightgym train CONFIG --resume goes on")


def _reward(run: Run) -> Iterator[Finding]:
    reward = trend(run, "reward/mean")
    if reward is None or 2 * reward.steps > len(run.steps):
        return
    least = 0.02 * max(abs(reward.first), abs(reward.last), 1e-9)
    if reward.best - reward.first > least and reward.best - reward.last > 0.25 * (reward.best - reward.first):
        text = f"the reward fell from {reward.best:.4g} (step {reward.best_step}) to {reward.last:.4g}"
        yield Finding("warning", text, "gradient norm, log-probability gap and KL around that step")
    elif reward.last - reward.first <= least:
        text = f"the reward does not rise: {reward.first:.4g} at first, {reward.last:.4g} at last"
        look = "learning rate, zero-spread groups and the samples: can the policy write a better answer at all?"
        yield Finding("warning", text, look)


def _hacking(run: Run) -> Iterator[Finding]:
    reward, invalid = trend(run, "reward/mean"), trend(run, "rollout/invalid")
    if reward is None or reward.last <= reward.first:
        return
    if invalid is not None and invalid.last - invalid.first > 0.05:
        text = (
            f"the reward rises while validity falls: invalid {invalid.first:.0%} at first, {invalid.last:.0%} at last"
        )
        yield Finding("warning", text, "the invalid reasons, and whether a few lucky answers carry the mean")
    yield from _held_out(run)


def _held_out(run: Run) -> Iterator[Finding]:
    """The reward rose since the best evaluation, and the last one is worse."""
    steps, scores = series(run.evaluations, "eval/reward")
    places, rewards = series(run.steps, "reward/mean")
    if len(scores) < 2:
        return
    best = max(range(len(scores)), key=scores.__getitem__)
    fall = scores[best] - scores[-1]
    if fall <= max(0.1 * abs(scores[best]), 0.25 * (scores[best] - scores[0])):
        return
    size = min(WINDOW, max(1, len(rewards) // 2))
    then = [reward for place, reward in zip(places, rewards, strict=True) if place > steps[best] - size][:size]
    if then and statistics.fmean(rewards[-size:]) > statistics.fmean(then):
        before = "before" if steps[best] == 0 else f"at step {steps[best]:.0f}"
        text = f"the reward rises while the evaluation falls: {scores[best]:.4g} {before}, {scores[-1]:.4g} at last"
        yield Finding("warning", text, "the best samples: is it the task that is solved, or the reward?")


def _jumps(run: Run) -> Iterator[Finding]:
    """Where in the run the reward came away from what should follow it."""
    for name in ("rollout/invalid", "loss/kl"):
        rows = [row for row in run.steps if "reward/mean" in row and name in row]
        steps, rewards = series(rows, "reward/mean")
        _, values = series(rows, name)
        other = invalid_series(values) if name == "rollout/invalid" else kl_series(values)
        yield from (jump_finding(one) for one in jumps(steps, rewards, {name: other}))


def invalid_series(shares: list[float]) -> Series:
    """The share of invalid answers should not rise with the reward."""
    return Series(shares, "up", least=0.05)


def kl_series(values: list[float]) -> Series:
    """The KL rises in every training: suspicious is that it does so at once."""
    return Series(values, "up", factor=0.5, sudden=3.0)


def jump_finding(one: Jump, of: str = "step") -> Finding:
    """A jump in words."""
    rose = f"the reward rises from {one.reward[0]:.4g} to {one.reward[1]:.4g}"
    text = f"around {of} {one.place:.0f} {rose} while {one.name} goes from {one.other[0]:.4g} to {one.other[1]:.4g}"
    return Finding(
        "warning", text, f"the answers before and after {of} {one.place:.0f}: what did the policy learn there?"
    )


def _health(run: Run) -> Iterator[Finding]:
    for name, most, what, look in (
        ("group/zero_spread", 0.5, "of groups have equal rewards and teach nothing", "tasks that are too easy or hard"),
        ("rollout/truncated", 0.3, "of completions are cut at max_tokens", "rollout.max_tokens, and the random sample"),
        ("rollout/invalid", 0.5, "of answers can't be read", "the invalid reasons; does the model know the form?"),
        ("loss/capped", 0.1, "of tokens are cut by the mismatch correction", "the log-probability gap"),
    ):
        now = trend(run, name)
        if now is not None and now.last > most:
            yield Finding("warning", f"{now.last:.0%} {what} ({name}, last {now.steps} steps)", look)
    distinct = trend(run, "rollout/distinct")
    if distinct is not None and distinct.last < 0.5:
        text = f"only {distinct.last:.0%} of completions differ: the policy collapses onto few answers"
        yield Finding("warning", text, "temperature, KL and learning rate")


def _faults(run: Run) -> Iterator[Finding]:
    for name, what in (("rollout/faults", "no reward through our fault"), ("rollout/stale", "a policy too old")):
        steps, values = series(run.steps, name)
        hit = [int(step) for step, value in zip(steps, values, strict=True) if value > 0]
        if hit:
            where = f"in {len(hit)} of {len(steps)} steps (first: {hit[0]}, at most {max(values):.0%})"
            look = "the sample of a fault, and score.info of such lines in rollouts.jsonl"
            look = look if name == "rollout/faults" else "rollout.max_staleness and mode"
            yield Finding("warning", f"rollouts have {what} {where}", look)


def _gap(run: Run) -> Iterator[Finding]:
    gap = trend(run, "sampling/logp_diff_mean")
    if gap is None:
        return
    floor = 0.1 * run.limits().get("logp_gap", 1e-3)
    if gap.last > max(3 * gap.first, floor):
        text = f"trainer and sampler drift apart: {gap.first:.1e} nats a token at first, {gap.last:.1e} at last"
        yield Finding("warning", text, "weight sync, dtype and temperature of the sampler")


def _gradient(run: Run) -> Iterator[Finding]:
    steps, values = series(run.steps, "optimiser/norm")
    if len(values) < 4:
        return
    usual, worst = statistics.median(values), max(values)
    if worst > 20 * usual > 0:
        text = f"optimiser/norm jumps to {worst:.3g} at step {steps[values.index(worst)]:.0f}; usual is {usual:.3g}"
        yield Finding("note", text, "the rollouts of that step; clipping keeps the update small")


def _near(run: Run) -> Iterator[Finding]:
    for used in limits(run):
        if used.near:
            text = f"{used.metric} came to {used.worst:.3g} (step {used.step}); limits.{used.limit} is {used.value:g}"
            yield Finding("note", text, "past the limit the run stops")


def _age(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


_RULES: tuple[Callable[[Run], Iterator[Finding]], ...] = (
    _unfinished,
    _reward,
    _hacking,
    _jumps,
    _health,
    _faults,
    _gap,
    _gradient,
    _near,
)
