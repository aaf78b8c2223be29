"""``weightgym train``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weightgym.trainers.grpo import Trainer
    from weightgym.trainers.trackers import Tracker

_EPILOG = """\b
Examples:
  weightgym train run.toml
  weightgym train run.toml --steps 50 --rollout.groups 4 --output runs/short
  weightgym train run.toml --resume
"""


def _print_fields(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from weightgym.cli.console import print_table, table
    from weightgym.trainers.config import described

    rows = table("field", "default", "meaning")
    for name, default, meaning in described():
        rows.add_row(name, default, meaning)
    print_table(rows)
    context.exit()


@click.command(epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[--FIELD VALUE]...")
@click.option("--resume", is_flag=True, help="Go on from the run's last checkpoint.")
@click.option(
    "--fields",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_fields,
    help="List every field of CONFIG with its default, and end.",
)
def train(config: Path, flags: tuple[str, ...], resume: bool) -> None:
    """Fine-tune a language model with GRPO as CONFIG (a TOML file) says.

    Every field is also a flag with its dotted name; --fields lists them. The run's folder gets config.json,
    metrics.jsonl (a line a step), rollouts.jsonl (every rollout with its tokens), events.jsonl (starts and ends),
    checkpoint/ (a model folder) and rewards.png. Needs the extra `train`. weightgym inspect looks at the folder, while
    it trains, too.
    """
    from weightgym.trainers.config import ConfigError, load
    from weightgym.trainers.trackers import open_trackers

    try:
        wanted = load(config, flags)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    try:
        from weightgym.trainers.checkpoint import CheckpointError
        from weightgym.trainers.distributed import WorldError, end_process, join, place
        from weightgym.trainers.grpo import Trainer, UnhealthyRun
    except ImportError as error:
        raise click.ClickException(f"training needs {error.name}: pip install 'weightgym[train]'") from error
    fields = wanted.model_dump(mode="json")
    try:
        with join() as world:
            names = wanted.trackers.names if world.is_main else ()
            with (
                open_trackers(
                    names, run_folder=wanted.output, project=wanted.trackers.project, config=fields
                ) as tracker,
                Trainer(wanted, resume=resume, world=world) as trainer,
            ):
                _follow(trainer, tracker)
            if world.is_main:
                _tell_end(wanted.output, trainer.step)
            if world.size > 1:  # neither the group's end nor Python's is safe from gloo's threads, which may abort
                world.barrier()
                end_process(0)
    except (ValueError, UnhealthyRun, CheckpointError, WorldError) as error:
        _, size, _ = place()
        if size > 1:
            click.echo(f"Error: {error}", err=True)
            end_process(1)
        raise click.ClickException(str(error)) from error


def _follow(trainer: Trainer, tracker: Tracker) -> None:
    """Train to the end, and show and record how it goes; of several processes, the main one tells."""
    if not trainer.world.is_main:
        for _ in trainer.train():
            pass
        return
    from weightgym.cli.live import LiveView
    from weightgym.trainers.findings import BOUNDED
    from weightgym.trainers.health import warnings
    from weightgym.trainers.run_folder import add_event

    folder, limits = trainer.config.output, trainer.config.limits.model_dump(exclude_none=True)
    bounds = {metric: limits[field] for field, metric in BOUNDED.items() if field in limits}
    add_event(folder, "resumed" if trainer.step else "started", trainer.step)
    told: set[str] = set()
    try:
        with LiveView(trainer.config.steps, done=trainer.step, bounds=bounds) as view:
            for metrics in trainer.train():
                view.update(metrics)
                tracker.log(metrics, int(metrics["step"]))
                for name, text in warnings(metrics).items():
                    if name not in told:  # once is loud, every step is noise
                        view.note(f"step {metrics['step']:.0f}: {text}")
                    told.add(name)
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk must not hide what happened
            add_event(folder, "stopped", trainer.step, str(error) or type(error).__name__)
        if isinstance(error, KeyboardInterrupt):
            click.echo(f"stopped after step {trainer.step}: --resume goes on from the last checkpoint", err=True)
        raise
    add_event(folder, "finished", trainer.step)


def _tell_end(folder: Path, step: int) -> None:
    _plot(folder)
    click.echo(f"{folder}: trained to step {step}; the model is in {folder / 'checkpoint'}")
    click.echo(f"next: weightgym inspect {folder}")


def _plot(folder: Path) -> None:
    from weightgym.trainers.curves import plot_rewards

    try:
        plot_rewards(folder / "metrics.jsonl", folder / "rewards.png", title=folder.name)
    except ImportError:
        click.echo("no picture of the rewards without matplotlib: pip install 'weightgym[plots]'", err=True)
    else:
        click.echo(f"{folder / 'rewards.png'}: the rewards")
