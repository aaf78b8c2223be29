"""Whether a step is one to go on from: limits of the configuration, and what is worth a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weightgym.rewards.contracts import BackendError, Task
from weightgym.rollouts.backend import Backend, Request, Sampling
from weightgym.rollouts.trajectory import Branch
from weightgym.trainers.batch import Batch, Row, make_batch
from weightgym.trainers.config import Limits
from weightgym.trainers.findings import BOUNDED

#: Tokens of the self-check: the prompt is longer than a block of any prefix cache.
_PROMPT, _COMPLETION = 160, 16

#: Metric → above what it is worth a warning, and why.
_SUSPICIOUS = {
    "rollout/truncated": (0.5, "most completions are cut at rollout.max_tokens"),
    "rollout/invalid": (0.9, "hardly an answer can be read: the model doesn't know the form"),
    "rollout/faults": (0.0, "some rollouts have no reward through our fault: see their scores in rollouts.jsonl"),
    "rollout/stale": (0.0, "some rollouts were too old and are not trained on"),
    "group/zero_spread": (0.5, "most groups have equal rewards: there is little to learn from"),
    "loss/capped": (0.1, "sampler and trainer disagree on many tokens"),
}


class UnhealthyRun(RuntimeError):
    """A step is outside of the configuration's limits; the message names limit and value."""


def check_rollouts(metrics: Mapping[str, float], limits: Limits, *, step: int, first: bool) -> None:
    """Look at a step's rollouts before they are trained on. ``first``: it is the first step of the run.

    Raises:
        UnhealthyRun: see there.
    """
    if metrics["rollout/faults"] == 1:
        raise UnhealthyRun(f"step {step}: not one rollout has a reward, through our fault: see rollouts.jsonl")
    bounded = dict(BOUNDED) | ({"zero_spread": "group/zero_spread"} if first else {})
    for field, name in bounded.items():
        limit = getattr(limits, field)
        if limit is not None and metrics.get(name, 0.0) > limit:
            raise UnhealthyRun(f"step {step}: {name} is {metrics[name]:.3f}, limits.{field} is {limit:g}")


def check_evaluation(faults: float, limits: Limits, *, step: int) -> None:
    """An evaluation of which too much failed through our fault is no number.

    Raises:
        UnhealthyRun: see there.
    """
    if faults == 1 or faults > limits.faults:
        raise UnhealthyRun(
            f"evaluation after step {step}: {faults:.0%} of its rollouts have no reward, through our fault: see "
            "evaluations.jsonl"
        )


def check_gap(gap: float, limit: float, *, when: str) -> None:
    """See that trainer and sampler have the same weights and the same arithmetic. NaN is a gap, too.

    Raises:
        UnhealthyRun: see there.
    """
    if not gap <= limit:
        raise UnhealthyRun(
            f"{when}: trainer and sampler differ by {gap:.2e} nats a token on average, limits.logp_gap is "
            f"{limit:g}: are their weights, temperature and dtype the same?"
        )


def warnings(metrics: Mapping[str, float]) -> dict[str, str]:
    """What is suspicious about a step, though within the limits, in words, by metric."""
    return {
        name: f"{name} is {metrics[name]:.2f}: {why}"
        for name, (most, why) in _SUSPICIOUS.items()
        if metrics.get(name, 0.0) > most
    }


def probe(backend: Backend, task: Task, *, temperature: float, seed: int) -> Sequence[Row]:
    """A short completion of a long prompt, for a comparison of log-probabilities.

    The same prompt every time: what a prefix cache kept of older weights would show.

    Raises:
        BackendError: the backend gave no tokens.
    """
    tokenizer = backend.tokenizer
    if tokenizer is None:
        raise BackendError(f"{backend.name} gives no tokens: it can't be trained with")
    text = tokenizer.encode(tokenizer.render(task.messages))
    ids = (text * (_PROMPT // len(text) + 1))[:_PROMPT]
    request = Request("self-check", task, tuple(task.messages), ids, seed)
    (sample,) = backend.generate([request], Sampling(_COMPLETION, temperature))
    if len(sample.logprobs) != len(sample.token_ids) or not sample.token_ids:
        raise BackendError(f"{backend.name} gave {len(sample.logprobs)} logprobs for {len(sample.token_ids)} tokens")
    zeros, count = (0.0,) * len(ids), len(sample.token_ids)
    branch = Branch(ids + sample.token_ids, zeros + sample.logprobs, (False,) * len(ids) + (True,) * count)
    return [Row(branch, 0.0)]


def gap(rows: Sequence[Row], logprobs: Callable[[Batch], object], *, device: object = "cpu") -> float:
    """Mean |log-probability of the trainer - of the sampler| over the trained tokens of the rows, nats."""
    batch = make_batch(rows, device=str(device))
    mine = logprobs(batch)
    return float((mine - batch.sampler_logp)[batch.mask].abs().mean())  # type: ignore[operator]
