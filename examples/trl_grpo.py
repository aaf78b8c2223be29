"""GRPO by TRL on WeightProgramBench, with the tiny-writer that the package ships, on a CPU.

Needs the extra trl. Runs as it is:  python examples/trl_grpo.py --steps 3
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from weightgym.rollouts.tiny_writer_path import tiny_writer_path
from weightgym.trainers.trl import TRLTasks

GAMES = ("builtin/deep_drill", "builtin/lava_tiles", "builtin/ridge_bomber", "builtin/tunnel_flyer")


class HealthLine(TrainerCallback):
    """A line a step. Faults are answers that have no reward through our fault; TRL leaves them out of the mean."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **more: Any) -> None:
        """TRL has logged a step."""
        if "reward" in logs:
            invalid, faults = logs["weight-program/invalid"], logs["weight-program/faults"]
            click.echo(
                f"step {state.global_step}: reward {logs['reward']:.4f}, invalid {invalid:.0%}, faults {faults:.0%}"
            )


@click.command()
@click.option("--steps", default=30, help="Optimiser steps.")
@click.option("--group", default=24, help="Answers of a game that are compared with each other.")
@click.option("--output", default="runs/trl", type=click.Path(path_type=Path), help="Where the model goes.")
def main(steps: int, group: int, output: Path) -> None:
    """Train, and print the mean reward of every step."""
    torch.set_num_threads(1)  # two are hardly quicker with so small a model
    tasks = TRLTasks("weight-program", tasks=GAMES, profile="wpb-v1-e64")
    model = AutoModelForCausalLM.from_pretrained(tiny_writer_path(), dtype=torch.float32)
    settings = GRPOConfig(
        output_dir=str(output),
        max_steps=steps,
        num_generations=group,
        per_device_train_batch_size=group * len(GAMES),
        max_completion_length=64,
        learning_rate=8e-4,
        max_grad_norm=0.3,
        scale_rewards="batch",  # games whose answers hardly differ would get as much weight as the others
        use_cpu=True,
        bf16=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model,
        reward_funcs=tasks.reward,
        args=settings,
        train_dataset=tasks.dataset(),
        processing_class=AutoTokenizer.from_pretrained(tiny_writer_path()),
        callbacks=[HealthLine()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model(str(output))
    click.echo(f"next: weightgym eval {output} --against tiny-writer --task builtin/tunnel_flyer --max-tokens 64")


if __name__ == "__main__":
    main()
