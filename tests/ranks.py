"""What test_distributed.py runs under torchrun: a few steps of training on rollouts that are made up, per kind."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from weightgym.envs import registry
from weightgym.rollouts.trajectory import Branch
from weightgym.trainers import checkpoint, parameters
from weightgym.trainers.batch import Row, from_bytes, to_bytes
from weightgym.trainers.config import check
from weightgym.trainers.distributed import World, end_process, join
from weightgym.trainers.grpo import Trainer
from weightgym.trainers.loss import LossConfig
from weightgym.trainers.policy import Policy
from weightgym.trainers.update import update

STEPS = 3
CASES: dict[str, dict[str, Any]] = {
    "all": {"kind": "all"},
    "last": {"kind": "last", "blocks": 1},
    "lora": {"kind": "lora", "lora_rank": 4, "lora_alpha": 8.0},
    "bfloat16": {"kind": "all"},
}


class Run:
    """A model of two blocks with tied embeddings, its optimiser, and 7 rows a step."""

    def __init__(self, world: World, case: str, folder: Path, *, micro_batch: int, resume: bool = False) -> None:
        import tiny_models

        self.world, self.folder, self.micro_batch, self.identity = world, folder, micro_batch, case
        dtype = "bfloat16" if case == "bfloat16" else "float32"
        self.tokenizer = tiny_models.tokenizer()
        self.model = parameters.select(tiny_models.model(tied=True), **CASES[case])
        self.policy = Policy(self.model, temperature=0.9, dtype=dtype)
        world.shard(self.model, parameters.decoder_blocks(self.model), dtype=dtype)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.AdamW(trained, lr=1e-3, weight_decay=0.01)
        self.step = 0
        if resume:
            state = {"model": self.model, "optimiser": self.optimiser, "identity": case}
            self.step = checkpoint.restore(folder / "checkpoint", **state).step

    def update(self) -> dict[str, float]:
        made = from_bytes(self.world.from_main(self._rows))
        gaps: list[float] = []
        done = update(
            self.policy,
            self.optimiser,
            sorted(made, key=lambda row: -len(row.branch.token_ids)),
            config=LossConfig("dapo"),
            updates=1,
            micro_batch=self.micro_batch,
            clip_norm=0.5,
            check=gaps.append,
            world=self.world,
        )
        self.step += 1
        return {
            "loss": done.loss,
            "norm": done.norm,
            "gap": gaps[0],
            "largest": done.statistics.logp_diff_max,
        }

    def _rows(self) -> bytes:
        assert self.world.is_main
        draw = random.Random(self.step)
        return to_bytes([_row(draw) for _ in range(7)])

    def save(self) -> None:
        parts = {"model": self.model, "tokenizer": self.tokenizer, "optimiser": self.optimiser}
        state = checkpoint.State(self.step, [self.step], 0)
        checkpoint.save(self.folder, state, identity=self.identity, world=self.world, **parts)

    def write(self, name: str) -> None:
        """What a sampler would get."""
        weights = {name: tensor.clone() for name, tensor in parameters.trained_weights(self.model)}
        if self.world.is_main:
            save_file(weights, self.folder / f"{name}.safetensors")


def train(world: World, case: str, folder: Path, *, micro_batch: int) -> None:
    """Three steps with a checkpoint after the second; then the third again from there."""
    if world.is_main:
        folder.mkdir(parents=True)
    run = Run(world, case, folder, micro_batch=micro_batch)
    metrics = []
    for step in range(STEPS):
        metrics.append(run.update())
        if step == STEPS - 2:
            run.save()
    run.write("unbroken")
    if world.is_main:
        (folder / "metrics.json").write_text(json.dumps(metrics))
    again = Run(world, case, folder, micro_batch=micro_batch, resume=True)
    again.update()
    again.write("resumed")


def grpo(world: World, folder: Path, mode: str) -> None:
    """The whole trainer: KL, several updates a batch, an evaluation; synchronous: begun anew after two steps."""
    import digits_env
    import tiny_models

    if world.is_main:
        tiny_models.model().save_pretrained(folder / "model")
        tiny_models.tokenizer().save_pretrained(folder / "model")
    world.barrier()
    fields: dict[str, Any] = {
        "model": str(folder / "model"),
        "output": str(folder / "run"),
        "mode": mode,
        "environments": [{"env": "digits", "tasks": ["one", "two"]}],
        "checkpoint_every": 1,
        "rollout": {"groups": 2, "group_size": 4, "max_tokens": 8},
        "loss": {"kl": 0.1},
        "optimiser": {"learning_rate": 1e-3, "updates": 2, "micro_batch": 3},
        "evaluation": {"tasks": ["three"], "samples": 2},
        "limits": {"truncated": 1.0, "zero_spread": 1.0},
    }
    with registry.override(digits_env.SPEC):
        for steps in (2, 3) if mode == "sync" else (3,):
            with Trainer(
                check(fields | {"steps": steps}, "test"), resume=mode == "sync" and steps == 3, world=world
            ) as trainer:
                for _ in trainer.train():
                    pass


def _row(draw: random.Random) -> Row:
    prompt, completion = draw.randint(3, 20), draw.randint(2, 15)
    ids = tuple(draw.randrange(256) for _ in range(prompt + completion))
    logprobs = (0.0,) * prompt + tuple(draw.uniform(-8, -4) for _ in range(completion))
    return Row(Branch(ids, logprobs, (False,) * prompt + (True,) * completion), draw.uniform(-1, 1))


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with join(timeout=120) as world:
        for case in CASES:
            train(world, case, folder / case, micro_batch=1)
        for mode in ("sync", "async"):
            grpo(world, folder / mode, mode)
        world.barrier()
        end_process(0)  # as `weightgym train` ends: gloo's threads may abort what comes after


if __name__ == "__main__":
    main(Path(sys.argv[1]))
