"""``weightgym train``."""

from __future__ import annotations

from pathlib import Path

import click

_EPILOG = """\b
Examples:
  weightgym train run.toml
  weightgym train run.toml --steps 50 --rollout.groups 4 --output runs/short
  weightgym train run.toml --resume
"""


@click.command(epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[--FIELD VALUE]...")
@click.option("--resume", is_flag=True, help="Go on from the run's last checkpoint.")
def train(config: Path, flags: tuple[str, ...], resume: bool) -> None:
    """Fine-tune a language model with GRPO as CONFIG (a TOML file) says.

    Every field is also a flag with its dotted name. The run's folder gets config.json, metrics.jsonl (a line a step),
    rollouts.jsonl (every rollout with its tokens), checkpoint/ (a model folder) and rewards.png. Needs the extra
    `train`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from weightgym.trainers.config import ConfigError, load

    try:
        wanted = load(config, flags)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    try:
        from weightgym.trainers.grpo import Trainer, UnhealthyRun
    except ImportError as error:
        raise click.ClickException(f"training needs {error.name}: pip install 'weightgym[train]'") from error
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    try:
        with (
            Trainer(wanted, resume=resume) as trainer,
            Progress(*columns, console=console, transient=True) as progress,
        ):
            bar = progress.add_task("step", total=wanted.steps, completed=trainer.step)
            for metrics in trainer.train():
                console.print(_line(metrics), highlight=False, markup=False)
                progress.update(bar, completed=metrics["step"])
    except (ValueError, UnhealthyRun) as error:
        raise click.ClickException(str(error)) from error
    _plot(wanted.output)
    click.echo(f"{wanted.output}: trained to step {trainer.step}; the model is in {wanted.output / 'checkpoint'}")


def _line(metrics: dict[str, float]) -> str:
    """A step in one line."""
    step = f"step {metrics['step']:.0f}:"
    if "eval/reward" in metrics:
        return f"{step} evaluation: reward {metrics['eval/reward']:.4f}, {metrics['eval/invalid']:.0%} invalid"
    return (
        f"{step} reward {metrics['reward/mean']:.4f} (best {metrics['reward/max']:.3f}), "
        f"{metrics['rollout/invalid']:.0%} invalid, {metrics['rollout/truncated']:.0%} cut, "
        f"{metrics['group/zero_spread']:.0%} of groups without spread, "
        f"log-probability gap {metrics.get('sampling/logp_diff_mean', 0):.1e}, "
        f"{metrics['seconds/rollout']:.1f} + {metrics['seconds/train']:.1f} s"
    )


def _plot(folder: Path) -> None:
    from weightgym.trainers.curves import plot_rewards

    try:
        plot_rewards(folder / "metrics.jsonl", folder / "rewards.png", title=folder.name)
    except ImportError:
        click.echo("no picture of the rewards without matplotlib: pip install 'weightgym[plots]'", err=True)
    else:
        click.echo(f"{folder / 'rewards.png'}: the rewards")
