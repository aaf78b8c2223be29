"""``weightgym rollout``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.console import DEFAULT_ENV
from weightgym.cli.snapshot_options import snapshot_options, unsafe_option

if TYPE_CHECKING:
    from weightgym.rollouts.trajectory import Trajectory

_EPILOG = """\b
Examples:
  weightgym rollout ./my-model --task builtin/wall_rally --samples 8 -o rollouts.jsonl
  weightgym rollout ./my-model --split test -o test.jsonl --resume
  weightgym rollout scripted:garbage --split train -o garbage.jsonl
"""


@click.command(epilog=_EPILOG)
@click.argument("policy")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="One JSON line each."
)
@click.option("--env", default=DEFAULT_ENV, show_default=True, help="The environment.")
@click.option("--task", "tasks", multiple=True, help="A task id; may be given several times.")
@click.option("--split", type=click.Choice(["train", "test"]), help="All tasks of a split.")
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Rollouts of each task.")
@click.option("--profile", help="Scoring profile, such as wpb-v1-e64.  [default: the environment's]")
@click.option("--max-tokens", type=click.IntRange(min=1), default=1024, show_default=True, help="Of an answer.")
@click.option("--temperature", type=click.FloatRange(0, 100), default=1.0, show_default=True, help="0: greedy.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=16, show_default=True, help="Sequences at once.")
@click.option("--workers", type=click.IntRange(min=1), help="Scoring processes.  [default: all cores]")
@click.option("--resume", is_flag=True, help="Go on with OUTPUT: what has a reward is kept, the rest is made.")
@snapshot_options
@unsafe_option
def rollout(
    policy: str,
    output: Path,
    env: str,
    tasks: tuple[str, ...],
    split: str | None,
    samples: int,
    profile: str | None,
    max_tokens: int,
    temperature: float,
    seed: int,
    batch_size: int,
    workers: int | None,
    resume: bool,
) -> None:
    """Let POLICY answer tasks, and score its answers.

    POLICY is a model's folder, a Hub name or tiny-writer (these need the extra `train`), or scripted:empty,
    scripted:garbage or scripted:echo. Each rollout is written as it ends, with its tokens and log-probabilities, so
    that a broken off run goes on with --resume. Exit code: 0 if every rollout got a reward, else 1.
    """
    from rich.console import Console
    from rich.progress import track

    from weightgym.cli.console import cores
    from weightgym.envs import registry
    from weightgym.rollouts.backend import Sampling
    from weightgym.rollouts.backends import BackendOptions, open_backend
    from weightgym.rollouts.run import jobs, run
    from weightgym.rollouts.store import Store, StoreError

    if bool(tasks) == (split is not None):
        raise click.UsageError("say which tasks: either --task (once or more) or --split")
    entry = registry.spec(env)
    ids = tasks or entry.tasks.ids("train" if split == "train" else "test")
    planned = jobs([entry.tasks.task(id) for id in ids], samples, seed)
    try:
        store = Store(output, resume=resume)
    except StoreError as error:
        raise click.ClickException(str(error)) from error
    with store:
        todo = [job for job in planned if job.id not in store.kept]
        made = list(store.kept.values())
        if todo:
            backend = open_backend(policy, BackendOptions(batch_size=batch_size))
            sampling = Sampling(max_tokens=max_tokens, temperature=temperature)
            results = run(
                todo,
                backend,
                entry,
                sampling=sampling,
                profile=profile or entry.default_profile,
                workers=workers or cores(),
            )
            for one in track(results, "rollouts", total=len(todo), console=Console(stderr=True), transient=True):
                store.add(one)
                made.append(one)
            backend.close()
    _report(made, len(store.kept), output)


def _report(made: list[Trajectory], kept: int, output: Path) -> None:
    statuses = Counter(one.score.status for one in made)
    rewards = [one.score.reward for one in made if one.score.reward is not None]
    mean = f"mean reward {sum(rewards) / len(rewards):.4f} of {len(rewards)}" if rewards else "no rewards"
    cut = sum(one.finish_reason == "length" for one in made)
    told = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    click.echo(f"{output}: {len(made)} rollouts ({kept} kept): {told}; {mean}")
    if cut:
        click.echo(f"{cut} of {len(made)} answers were cut at --max-tokens", err=True)
    if len(rewards) < len(made):
        raise click.exceptions.Exit(1)
