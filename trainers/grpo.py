"""GRPO, synchronous, in one process: roll out, compare within groups, take one optimiser step, again.

Reads from top to bottom. A step asks the policy for ``groups × group_size`` completions, scores them, gives each the
advantage over its group's mean (``advantage.py``), and minimises a policy-gradient loss (``loss.py``) over all of them
at once. Which tasks a step trains on, and what is sampled, depends on the seed and the step's number alone; so a run
that was killed and resumed ends with the same weights (float32, CPU).

Left out so far: other backends than transformers, LoRA and partly frozen models, a KL term, several optimiser steps a
batch, dynamic sampling, asynchrony, several processes.
"""

from __future__ import annotations

import functools
import json
import operator
import time
from collections.abc import Iterator
from typing import Any

import torch

from weightgym.envs import registry
from weightgym.rewards.contracts import canonical_json, sha256_hex
from weightgym.rollouts.backend import Sampling
from weightgym.rollouts.run import Job, jobs, run
from weightgym.rollouts.store import line
from weightgym.rollouts.trajectory import Trajectory
from weightgym.rollouts.transformers_backend import TransformersBackend
from weightgym.trainers import checkpoint
from weightgym.trainers.advantage import GroupAdvantages, group_advantages
from weightgym.trainers.batch import Batch, make_batch, rows
from weightgym.trainers.config import Config
from weightgym.trainers.logprobs import completion_logprobs
from weightgym.trainers.loss import LossConfig, LossStatistics, count_batch, policy_loss
from weightgym.trainers.metrics import MetricsFile, rollout_metrics

Metrics = dict[str, float]


class UnhealthyRun(RuntimeError):
    """A step is outside of the configuration's limits; the message names limit and value."""


class Trainer:
    """One run.

    Raises:
        BackendError: the model can't be loaded. TaskError: a task is unknown.
        ValueError: ``resume``, and the checkpoint is of another configuration; or not, and the folder holds a run.
    """

    def __init__(self, config: Config, *, resume: bool = False) -> None:
        self.config = config
        if config.threads:
            torch.set_num_threads(config.threads)
        self.entry = registry.spec(config.env)
        self.tasks = [self.entry.tasks.task(id) for id in config.tasks]
        self.eval_tasks = [self.entry.tasks.task(id) for id in config.evaluation.tasks]
        found = checkpoint.find(config.output)
        if found and not resume:
            raise ValueError(f"{config.output} holds a run already: --resume goes on with it, --output names another")
        self.backend = TransformersBackend(str(found or config.model), batch_size=config.rollout.batch_size)
        self.model = self.backend.model
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=config.optimiser.learning_rate,
            betas=(config.optimiser.beta1, config.optimiser.beta2),
            weight_decay=config.optimiser.weight_decay,
        )
        self.loss = LossConfig(
            loss=config.loss.name,
            clip_low=config.loss.clip_low,
            clip_high=config.loss.clip_high,
            delta=config.loss.delta,
            max_tokens=config.rollout.max_tokens if config.loss.name == "dr_grpo" else None,
            correction=config.loss.correction,
            correction_cap=config.loss.correction_cap,
        )
        self.step = checkpoint.restore(found, optimiser=self.optimiser, identity=self._identity) if found else 0
        self.backend.version = self.step
        config.output.mkdir(parents=True, exist_ok=True)
        (config.output / "config.json").write_text(config.model_dump_json(indent=1) + "\n")
        self.metrics = MetricsFile(config.output / "metrics.jsonl", keep=self.step if found else -1)
        self._cut_rollouts()

    @property
    def _identity(self) -> str:
        """What may not change between the parts of a run (its length and its folder may)."""
        return canonical_json(self.config.model_dump(mode="json", exclude={"output", "steps", "checkpoint_every"}))

    def train(self) -> Iterator[Metrics]:
        """Train to the end; yields the metrics of every step, and of evaluations (which have ``eval/reward``).

        Raises:
            UnhealthyRun: a step is outside of the limits. The last checkpoint stays.
        """
        if self.step == 0:
            yield from self._evaluate()
        while self.step < self.config.steps:
            yield self._step()
            last = self.step == self.config.steps
            if last or self.step % self.config.checkpoint_every == 0:
                checkpoint.save(
                    self.config.output,
                    step=self.step,
                    model=self.model,
                    tokenizer=self.backend.tokenizer.hf,
                    optimiser=self.optimiser,
                    identity=self._identity,
                )
            every = self.config.evaluation.every
            if last or (every and self.step % every == 0):
                yield from self._evaluate()

    def _step(self) -> Metrics:
        started = time.monotonic()
        trajectories = self._roll_out(self._jobs(), self.config.profile)
        self._store(trajectories)
        rolled = time.monotonic()
        advantages = self._advantages(trajectories)
        metrics = rollout_metrics(trajectories) | {
            "group/zero_spread": len(advantages.zero_spread) / advantages.groups,
            "seconds/rollout": rolled - started,
        }
        self._check(metrics)
        metrics |= self._update(trajectories, advantages)
        self.step += 1
        self.backend.version = self.step
        metrics |= {"step": self.step, "seconds/train": time.monotonic() - rolled}
        self.metrics.write(metrics)
        return metrics

    def _jobs(self) -> list[Job]:
        """This step's rollouts: each group a task of the configuration, chosen by a hash of seed, step and group."""
        rollout, seed, todo = self.config.rollout, self.config.seed, []
        for group in range(rollout.groups):
            pick = int(sha256_hex(canonical_json(["group", seed, self.step, group])), 16) % len(self.tasks)
            todo += jobs([self.tasks[pick]], rollout.group_size, seed, label=f"{self.step}.{group}")
        return todo

    def _roll_out(self, todo: list[Job], profile: str | None) -> list[Trajectory]:
        """The trajectories in the order of the jobs, whatever order they came in."""
        rollout = self.config.rollout
        self.model.eval()
        results = run(
            todo,
            self.backend,
            self.entry,
            sampling=Sampling(rollout.max_tokens, rollout.temperature),
            profile=profile or self.entry.default_profile,
            workers=rollout.workers,
        )
        done = {one.id: one for one in results}
        return [done[job.id] for job in todo]

    def _advantages(self, trajectories: list[Trajectory]) -> GroupAdvantages[str]:
        rewards: dict[str, list[float | None]] = {}
        for one in trajectories:
            rewards.setdefault(one.group, []).append(one.score.reward)
        return group_advantages(rewards, self.config.rollout.group_size, scale=self.config.loss.advantage)

    def _update(self, trajectories: list[Trajectory], advantages: GroupAdvantages[str]) -> Metrics:
        """One optimiser step over all rollouts that have a reward, in micro-batches."""
        flat = [value for group in advantages.advantages.values() for value in group]
        pairs = [(one, value) for one, value in zip(trajectories, flat, strict=True) if one.score.reward is not None]
        made = rows([one for one, _ in pairs], [value for _, value in pairs])
        size = self.config.optimiser.micro_batch
        batches = [make_batch(made[begin : begin + size]) for begin in range(0, len(made), size)]
        normaliser = count_batch(batch.mask for batch in batches)
        self.model.train()
        self.optimiser.zero_grad()
        losses, statistics = [], []
        for batch in batches:
            logp = self._logprobs(batch)
            result = policy_loss(
                logp,
                logp.detach(),  # this is the first update with these rollouts
                batch.sampler_logp,
                batch.advantages,
                batch.mask,
                config=self.loss,
                normaliser=normaliser,
            )
            result.loss.backward()  # type: ignore[no-untyped-call]
            losses.append(float(result.loss.detach()))
            statistics.append(result.statistics)
        whole = functools.reduce(operator.add, statistics)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimiser.clip_norm)
        self._check_gap(whole)
        self.optimiser.step()
        return {"loss": sum(losses), "gradient/norm": float(norm)} | _loss_metrics(whole)

    def _logprobs(self, batch: Batch) -> torch.Tensor:
        """Of the scored positions, float32 (rows, scored); logits are computed for these positions only."""
        scored = batch.targets.shape[1]
        places = (batch.attention.cumsum(1) - 1).clamp(min=0)
        out: Any = self.model(
            input_ids=batch.ids, attention_mask=batch.attention, position_ids=places, logits_to_keep=scored + 1
        )
        temperature = self.config.rollout.temperature
        return completion_logprobs(out.logits[:, :-1], batch.targets, batch.mask, temperature=temperature)

    def _evaluate(self) -> Iterator[Metrics]:
        if not self.eval_tasks:
            return
        todo = jobs(self.eval_tasks, self.config.evaluation.samples, self.config.seed, label="evaluation")
        found = rollout_metrics(self._roll_out(todo, self.config.evaluation.profile))
        metrics = {
            "step": float(self.step),
            "eval/reward": found["reward/mean"],
            "eval/invalid": found["rollout/invalid"],
        }
        self.metrics.write(metrics)
        yield metrics

    def _check(self, metrics: Metrics) -> None:
        limits, rollout = self.config.limits, self.config.rollout
        for name, limit in (("rollout/truncated", limits.truncated), ("rollout/faults", limits.faults)):
            if metrics[name] > limit:
                field = f"limits.{name.partition('/')[2]}"
                raise UnhealthyRun(f"step {self.step + 1}: {name} is {metrics[name]:.3f}, {field} is {limit:g}")
        if metrics["rollout/faults"] == 1:
            count = rollout.groups * rollout.group_size
            raise UnhealthyRun(f"step {self.step + 1}: not one of {count} rollouts has a reward")

    def _check_gap(self, statistics: LossStatistics) -> None:
        gap = statistics.logp_diff_mean
        if not gap <= self.config.limits.logp_gap:
            raise UnhealthyRun(
                f"step {self.step + 1}: trainer and sampler differ by {gap:.2e} nats a token on average, "
                f"limits.logp_gap is {self.config.limits.logp_gap:g}: are their weights the same?"
            )

    def _store(self, trajectories: list[Trajectory]) -> None:
        with (self.config.output / "rollouts.jsonl").open("ab") as file:
            file.write(b"".join(line(one) for one in trajectories))

    def _cut_rollouts(self) -> None:
        """Remove rollouts of steps after the checkpoint: they will be made again."""
        path = self.config.output / "rollouts.jsonl"
        if not path.exists():
            return
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [raw for raw in lines if raw.endswith(b"\n") and json.loads(raw)["policy_version"] < self.step]
        path.write_bytes(b"".join(kept))


def _loss_metrics(statistics: LossStatistics) -> Metrics:
    return {
        "loss/clip_low": statistics.clip_low,
        "loss/clip_high": statistics.clip_high,
        "loss/capped": statistics.capped,
        "sampling/logp_diff_mean": statistics.logp_diff_mean,
        "sampling/logp_diff_max": statistics.logp_diff_max,
    }
