"""GRPO: roll out groups, compare within each, take optimiser steps on a policy-gradient loss, sync the weights, again.

Reads from top to bottom. A step takes ``rollout.groups`` groups from the mixture of environments (``mixture.py``), has
the sampler complete and score each ``group_size`` times (``sampler.py``, ``collect.py``), gives every completion the
advantage over its group's mean (``advantage.py``), and minimises a loss (``loss.py``, ``update.py``) over all of them.

What a step samples depends on the seed and what came before alone: in synchronous mode with the transformers backend a
run that was killed and resumed ends with the same bits (float32, CPU). In mode ``async`` the next batch is sampled
while one trains, by a policy that is one version old.

Left out of what the literature has: critics, entropy bonus, reward shaping, curricula that look at success.
"""

from __future__ import annotations

import collections
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import torch

from weightgym.envs import registry
from weightgym.rewards.contracts import canonical_json, sha256_hex
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer
from weightgym.rollouts.run import jobs
from weightgym.rollouts.store import Appender
from weightgym.rollouts.trajectory import Trajectory
from weightgym.rollouts.transformers_backend import load_model
from weightgym.trainers import checkpoint, health, parameters
from weightgym.trainers.advantage import group_advantages
from weightgym.trainers.batch import Row, from_bytes, rows, to_bytes
from weightgym.trainers.claim import check_folder, lock_folder
from weightgym.trainers.collect import Collected, Collector, has_spread
from weightgym.trainers.config import Config
from weightgym.trainers.distributed import ALONE, World
from weightgym.trainers.health import UnhealthyRun
from weightgym.trainers.loss import LossConfig
from weightgym.trainers.metrics import MetricsFile, loss_metrics, replace_text, rollout_metrics
from weightgym.trainers.mixture import Mixture
from weightgym.trainers.optimiser import adamw, learning_rate, set_rate
from weightgym.trainers.policy import Policy
from weightgym.trainers.sampler import Sampler
from weightgym.trainers.update import update

__all__ = ["Trainer", "UnhealthyRun"]

Metrics = dict[str, float]


class Trainer:
    """One run. Use it in a ``with`` block, or ``close()`` it.

    Every rank of ``world`` has one; all make the same calls. The main one alone samples, scores and writes.

    Raises:
        BackendError: the model can't be loaded, or the sampler can't be opened. TaskError: a task is unknown.
        ValueError: ``resume``, and the checkpoint is of another configuration; or not, and the folder holds a run.
    """

    def __init__(self, config: Config, *, resume: bool = False, world: World = ALONE) -> None:
        self.config = config
        self.world = world
        if config.threads:
            torch.set_num_threads(config.threads)
        found = checkpoint.find(config.output)
        world.from_main(lambda: check_folder(config.output, resume=resume))  # the others might see what it makes
        self.mixture = Mixture(config.environments, config.seed)
        self.eval_entry = registry.spec(config.evaluation.env or config.environments[0].env)
        self.eval_profile = self.eval_entry.checked_profile(config.evaluation.profile)
        self.eval_tasks = self._eval_tasks()
        self.tokenizer = HFChatTokenizer.load(config.model, chat_template=config.backend.chat_template)
        chosen = config.parameters
        self.model = parameters.select(
            load_model(config.model, "float32"),
            chosen.kind,
            blocks=chosen.blocks,
            lora_rank=chosen.lora_rank,
            lora_alpha=chosen.lora_alpha,
            lora_targets=chosen.lora_targets,
        )
        self.policy = Policy(
            self.model,
            temperature=config.rollout.temperature,
            dtype=chosen.dtype,
            reference=config.loss.kl > 0,
            device=world.device,
            share_prompts=chosen.share_prompts and world.size == 1,
        )
        blocks = parameters.decoder_blocks(self.model) if world.size > 1 else ()
        world.shard(self.model, blocks, dtype=chosen.dtype)
        self.optimiser = adamw(self.model, config.optimiser)
        self.loss = _loss_config(config)
        self.step, stored = 0, 0
        if found:
            state = checkpoint.restore(found, model=self.model, optimiser=self.optimiser, identity=self._identity)
            self.step, self.mixture.drawn, stored = state.step, state.drawn, state.stored
        self.takes_adapters = bool(world.from_main(lambda: self._open(stored, resumed=found is not None)))
        self._ahead = ThreadPoolExecutor(1, "rollouts")  # one thread: the sampler is never used twice at once
        self._next: Future[Collected] | None = None
        self._synced = -1  # version of the sampler's weights
        self._checks: list[float] = []  # gaps of the self-checks, nats
        self._updated = False  # the weights are no longer those that this process began with

    def _open(self, stored: int, *, resumed: bool) -> bytes:
        """What the main rank alone has: sampler and files. Whether the sampler takes adapters."""
        config = self.config
        shares = config.backend.kind == "transformers" and config.mode == "sync" and self.world.size == 1
        with contextlib.ExitStack() as opened:  # what is open is closed again if the rest can't be
            self._lock = lock_folder(config.output)  # first: a folder in use is told before a sampler starts
            opened.callback(self._lock.release)
            self.sampler = Sampler(
                config,
                model=parameters.base(self.model) if shares else None,
                tokenizer=self.tokenizer if shares else None,
            )
            opened.callback(self.sampler.close)
            self.metrics = MetricsFile(config.output / "metrics.jsonl", keep=self.step if resumed else -1)
            replace_text(config.output / "config.json", config.model_dump_json(indent=1) + "\n")
            self.collector = Collector(self.sampler, self.mixture, config.output / "rollouts.jsonl", stored=stored)
            opened.pop_all()
        return b"1" if self.sampler.takes_adapters else b""

    @property
    def _identity(self) -> str:
        """What may not change between the parts of a run: not its length and folder, nor what changes nothing."""
        free: dict[str, Any] = dict.fromkeys(
            ("output", "checkpoint_every", "trackers", "threads", "limits", "evaluation"), True
        )
        free |= {"rollout": {"workers", "score_timeout"}, "optimiser": {"micro_batch"}, "parameters": {"share_prompts"}}
        free["backend"] = set(type(self.config.backend).model_fields) - {"dtype"}
        if self.config.optimiser.decay == "none":
            free["steps"] = True
        template = {"chat_template": sha256_hex(str(self.tokenizer.hf.chat_template))}
        return canonical_json(self.config.model_dump(mode="json", exclude=free) | template)

    def train(self) -> Iterator[Metrics]:
        """Train to the end; yields the metrics of every step, and of evaluations (which have ``eval/reward``).

        Raises:
            UnhealthyRun: a step is outside of the limits. BackendError: generation failed. The last checkpoint stays.
        """
        if self.step >= self.config.steps and not self._is_due():
            return
        self._sync()
        if self._is_due():
            yield from self._evaluate()
        while self.step < self.config.steps:
            yield self._step()
            last = self.step == self.config.steps
            if last or self.step % self.config.checkpoint_every == 0:
                self._save()
            if self._is_due():
                yield from self._evaluate()

    def _is_due(self) -> bool:
        """Whether the policy as it is now is to be evaluated, and was not yet: a kill may have come between."""
        every = self.config.evaluation.every
        wanted = self.step in (0, self.config.steps) or (every > 0 and self.step % every == 0)
        if not (wanted and self.eval_tasks):
            return False
        return not self.world.from_main(lambda: b"1" if self.step in self.metrics.evaluated else b"")

    def _step(self) -> Metrics:
        metrics: Metrics = {}
        made = self._from_main(lambda: self._prepare(metrics))
        self._begin_next()
        collected = time.monotonic()
        rate = learning_rate(self.config.optimiser, self.step, self.config.steps)
        if made:
            metrics |= self._update(made, rate)
            self._updated = True
        self.step += 1
        trained = time.monotonic()
        if self.config.mode == "sync" or self.step == self.config.steps:
            self._sync()
        if self._checks:
            metrics["sampling/self_check"] = self._checks[-1]
        metrics |= {
            "step": self.step,
            "optimiser/rate": rate,
            "seconds/train": trained - collected,
            "seconds/sync": time.monotonic() - trained,
        }
        if self.world.is_main:
            self.metrics.write(metrics)
        return metrics

    def _prepare(self, metrics: Metrics) -> list[Row]:
        """This step's rows; ``metrics`` get what there is to say of its rollouts."""
        batch = self._trained = self._batch()
        metrics |= self._rollout_metrics(batch) | {"seconds/rollout": batch.seconds}
        health.check_rollouts(metrics, self.config.limits, step=self.step + 1, first=self.step == 0)
        return self._rows(batch)

    def _from_main(self, make: Callable[[], list[Row]]) -> list[Row]:
        """The rows that the main rank makes, on every rank."""
        return make() if self.world.size == 1 else from_bytes(self.world.from_main(lambda: to_bytes(make())))

    def _batch(self) -> Collected:
        """This step's rollouts. In mode async they were made meanwhile."""
        batch, self._next = (self._next or self._collect()).result(), None
        return batch

    def _collect(self) -> Future[Collected]:
        rollout = self.config.rollout
        return self._ahead.submit(self.collector.collect, rollout.groups, rollout.refill)

    def _begin_next(self) -> None:
        """In mode async: have the next step's rollouts made, by the policy as it is now, while this step trains."""
        if self.config.mode == "async" and self.step + 1 < self.config.steps:
            self._sync()
            if self.world.is_main:
                self._next = self._collect()

    def _rollout_metrics(self, batch: Collected) -> Metrics:
        first = [one for group in batch.first for one in group]
        everything = [one for group in batch.groups for one in group]
        ages = [self.step - one.policy_version for one in first if one.sampled]
        return rollout_metrics(first) | {
            "rollout/stale": sum(map(self._is_stale, everything)) / max(1, len(everything)),
            "rollout/staleness": sum(ages) / max(1, len(ages)),
            "group/zero_spread": 1 - sum(map(has_spread, batch.first)) / len(batch.first),
            "group/refilled": batch.refilled,
            "group/trained": len(batch.groups),
            "speed/tokens": sum(one.sampled for one in first) / batch.seconds,
        }

    def _is_stale(self, one: Trajectory) -> bool:
        """A rollout that failed before its first token has no age."""
        return one.sampled > 0 and self.step - one.policy_version > self.config.rollout.max_staleness

    def _rows(self, batch: Collected) -> list[Row]:
        """What to train on: rollouts that are fresh and have a reward, with their advantages."""
        fresh = [[None if self._is_stale(one) else one.score.reward for one in group] for group in batch.groups]
        size, loss = self.config.rollout.group_size, self.config.loss
        found = group_advantages(dict(enumerate(fresh)), size, scale=loss.advantage)
        pairs = [
            (one, advantage)
            for index, group in enumerate(batch.groups)
            for one, reward, advantage in zip(group, fresh[index], found.advantages[index], strict=True)
            if reward is not None
            and not (loss.mask_truncated and one.finish_reason == "length")
            and not (loss.positive_only and advantage <= 0)
        ]
        return rows([one for one, _ in pairs], [advantage for _, advantage in pairs])

    def _update(self, made: list[Row], rate: float) -> Metrics:
        optimiser = self.config.optimiser
        set_rate(self.optimiser, rate)
        done = update(
            self.policy,
            self.optimiser,
            made,
            config=self.loss,
            updates=optimiser.updates,
            micro_batch=optimiser.micro_batch,
            clip_norm=optimiser.clip_norm,
            check=self._check_gap,
            world=self.world,
        )
        return {"loss/total": done.loss, "optimiser/norm": done.norm} | loss_metrics(done.statistics)

    def _check_gap(self, gap: float) -> None:
        """Before an update: in synchronous mode sampler and trainer are the same policy, so that any gap is a fault."""
        if self.config.mode == "sync":
            health.check_gap(gap, self.config.logp_gap, when=f"step {self.step + 1}")

    def _sync(self) -> None:
        """Hand the weights to the sampler; what it writes from now on is of this version."""
        if self._synced == self.step:
            return
        if self.takes_adapters:
            adapter = parameters.adapter_weights(self.model)
            self.world.from_main(lambda: self._swap(adapter))
        elif self.world.is_main:
            self.sampler.sync(parameters.trained_weights(self.model), self.step)
        else:
            collections.deque(parameters.trained_weights(self.model), maxlen=0)  # takes part in gathering them
        self._synced = self.step
        # At the start and after the first update: a sync that does nothing would pass once. In mode async always: there
        # no step's own gap tells, as rollouts are a version old.
        if len(self._checks) <= self._updated or self.config.mode == "async":
            self._self_check()

    def _swap(self, adapter: dict[str, Any]) -> bytes:
        folder = self.config.output / "adapter"
        parameters.save_adapter(self.model, folder, adapter)
        self.sampler.sync_adapter(folder, self.step)
        return b""

    def _self_check(self) -> None:
        """Sampler and trainer must agree on a long prompt, whatever the rollouts are like."""
        task = self.mixture.sources[0].tasks[0]
        temperature, seed = self.config.rollout.temperature, self.config.seed
        probe = self._from_main(
            lambda: list(health.probe(self.sampler.backend, task, temperature=temperature, seed=seed))
        )
        self._checks.append(health.gap(probe, self.policy.frozen_logprobs, device=self.policy.device))
        health.check_gap(self._checks[-1], self.config.logp_gap, when=f"self-check after step {self.step}")

    def _evaluate(self) -> Iterator[Metrics]:
        if self._next is not None:
            wait([self._next])  # it is by the policy as it was; the sampler takes one thread at a time
        self._sync()
        yield json.loads(self.world.from_main(lambda: json.dumps(self._evaluation()).encode()))

    def _evaluation(self) -> Metrics:
        evaluation = self.config.evaluation
        todo = jobs(self.eval_tasks, evaluation.samples, self.config.seed, label="evaluation")
        with contextlib.closing(Appender(self.config.output / "evaluations.jsonl")) as file:
            done = self.sampler.roll_out(todo, self.eval_entry, self.eval_profile, file.add)
        found = rollout_metrics(list(done.values()))
        health.check_evaluation(found["rollout/faults"], self.config.limits, step=self.step)
        metrics = {
            "step": float(self.step),
            "eval/reward": found["reward/mean"],
            "eval/invalid": found["rollout/invalid"],
            "eval/faults": found["rollout/faults"],
        }
        self.metrics.write(metrics)
        return metrics

    def _eval_tasks(self) -> list[Any]:
        evaluation = self.config.evaluation
        tasks = self.eval_entry.tasks_under(self.eval_profile)
        ids = evaluation.tasks or (tasks.ids(evaluation.split) if evaluation.split else ())
        return [tasks.task(id) for id in ids]

    def _save(self) -> None:
        trained = self._trained if self.world.is_main else None
        state = checkpoint.State(self.step, trained.drawn if trained else [], trained.stored if trained else 0)
        checkpoint.save(
            self.config.output,
            state,
            model=self.model,
            tokenizer=self.tokenizer.hf,
            optimiser=self.optimiser,
            identity=self._identity,
            world=self.world,
        )

    def close(self) -> None:
        """Give back the sampler; a batch that is being made ahead is dropped."""
        if self.world.is_main:
            self.sampler.close()
        self._ahead.shutdown(wait=True, cancel_futures=True)
        if self.world.is_main:
            self.collector.close()
            self._lock.release()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _loss_config(config: Config) -> LossConfig:
    wanted = config.loss
    return LossConfig(
        loss=wanted.name,
        clip_low=wanted.clip_low,
        clip_high=wanted.clip_high,
        delta=wanted.delta,
        max_tokens=config.rollout.max_tokens if wanted.name == "dr_grpo" else None,
        kl_coefficient=wanted.kl,
        correction=wanted.correction,
        correction_cap=wanted.correction_cap,
    )
