"""What the trainer's own code costs: one of its steps against the same step written in a screenful.

    python benchmarks/grpo_step.py [--rounds 5] [--groups 4] [--group-size 32]

Both do GRPO on the quickstart's games with tiny-writer on one CPU core: they generate the same number of completions
with the same backend, score them with the same scorer, and take one AdamW step on the same loss. Rounds are
interleaved; printed are medians of both sides' seconds, and their ratio, for the whole step and for the update alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from weightgym.envs import registry
from weightgym.rewards.contracts import Task
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.transformers_backend import TransformersBackend
from weightgym.trainers.config import Config, load
from weightgym.trainers.grpo import Trainer

EXAMPLE = Path(__file__).parents[1] / "examples" / "quickstart.toml"


class Minimal:
    """GRPO without options: no store, no metrics, no limits, no correction of a mismatch."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.backend = TransformersBackend(config.model, batch_size=config.backend.batch_size)
        self.model: Any = self.backend.model
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=config.optimiser.learning_rate, weight_decay=0.0)
        source = config.environments[0]
        self.entry = registry.spec(source.env)
        self.profile = source.profile or self.entry.default_profile
        self.tasks = [self.entry.tasks.task(id) for id in source.tasks]
        self.seed = 0
        self.update_seconds = 0.0

    def step(self) -> None:
        size = self.config.rollout.group_size
        tasks = [self.tasks[group % len(self.tasks)] for group in range(self.config.rollout.groups)]
        prompts = {task.id: self._prompt(task) for task in tasks}
        asked = []
        for task in [task for task in tasks for _ in range(size)]:
            self.seed += 1
            asked.append(Request(str(self.seed), task, (), prompts[task.id], self.seed))
        sampling = Sampling(self.config.rollout.max_tokens, self.config.rollout.temperature)
        width = self.config.backend.batch_size
        samples = [
            sample
            for begin in range(0, len(asked), width)
            for sample in self.backend.generate(asked[begin : begin + width], sampling)
        ]
        rewards = torch.tensor(
            [
                self.entry.score(request.task, sample.content, profile=self.profile).reward or 0.0
                for request, sample in zip(asked, samples, strict=True)
            ]
        ).view(-1, size)
        centred = rewards - rewards.mean(1, keepdim=True)
        advantages = (centred / (centred.std() + 1e-6)).flatten()
        started = time.perf_counter()
        self._update(asked, samples, advantages)
        self.update_seconds = time.perf_counter() - started

    def _prompt(self, task: Task) -> tuple[int, ...]:
        return self.backend.tokenizer.encode(self.backend.tokenizer.render(task.messages))

    def _update(self, asked: list[Request], samples: list[Sample], advantages: torch.Tensor) -> None:
        tokens = sum(len(sample.token_ids) for sample in samples)
        width = self.config.optimiser.micro_batch
        self.optimiser.zero_grad()
        for begin in range(0, len(asked), width):
            part = slice(begin, begin + width)
            rows = [
                request.token_ids + sample.token_ids for request, sample in zip(asked[part], samples[part], strict=True)
            ]
            longest, scored = max(map(len, rows)), max(len(sample.token_ids) for sample in samples[part])
            ids = torch.tensor([(0,) * (longest - len(row)) + row for row in rows])
            attention = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
            mask = torch.tensor(
                [[0] * (scored - len(s.token_ids)) + [1] * len(s.token_ids) for s in samples[part]], dtype=torch.bool
            )
            places = (attention.cumsum(1) - 1).clamp(min=0)
            logits = self.model(
                input_ids=ids, attention_mask=attention, position_ids=places, logits_to_keep=scored + 1, use_cache=False
            ).logits[:, :-1]
            logp = torch.log_softmax(logits, -1).gather(-1, ids[:, -scored:, None])[..., 0]
            ratio = torch.exp(logp - logp.detach())
            loss = -(torch.where(mask, ratio, 0.0) * advantages[part, None]).sum() / tokens
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimiser.clip_norm)
        self.optimiser.step()


def seconds(call: Callable[[], object]) -> float:
    """Of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=32)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--output", f"{folder}/run", "--steps", str(args.rounds + 1), "--evaluation.tasks", "[]"]
        flags += ["--rollout.groups", str(args.groups), "--rollout.group_size", str(args.group_size)]
        flags += ["--rollout.refill", "0", "--checkpoint_every", "1000", "--optimiser.updates", "1"]
        config = load(EXAMPLE, [*flags, "--optimiser.learning_rate", "1e-6"])  # both sides keep sampling alike
        torch.set_num_threads(1)
        minimal = Minimal(config)
        minimal.step()
        rows = []
        with Trainer(config) as trainer:
            steps = trainer.train()
            next(steps)
            for _ in range(args.rounds - 1):
                started = time.perf_counter()
                metrics = next(steps)
                whole = time.perf_counter() - started
                rows.append((whole, seconds(minimal.step), metrics["seconds/train"], minimal.update_seconds))
    for name, ours, theirs in (("whole step", 0, 1), ("update alone", 2, 3)):
        mine, other = (statistics.median(row[column] for row in rows) for column in (ours, theirs))
        print(f"{name}: trainer {mine:.3f} s, minimal {other:.3f} s, ratio {mine / other:.3f} ({len(rows)} rounds)")


if __name__ == "__main__":
    main()
