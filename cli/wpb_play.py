"""``weightgym wpb play``."""

from __future__ import annotations

import importlib.util
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

if TYPE_CHECKING:
    from rich.console import Console

    from weightgym.envs.weight_program.render import Frame
    from weightgym.rewards.weight_program.network import Weights
    from weightgym.rewards.weight_program.simulate import EpisodeTrace

_PROFILE = "wpb-v1"
_SNAPSHOTS = 6
#: Steps of an animation or a GIF that gives neither --steps nor --every: an episode may have 10,000.
_MOVIE_STEPS = 200
#: Each frame of a GIF takes about 10 ms and 1.5 kB, each of a PNG 200 kB of memory: the most that is still handy.
_MOST_FRAMES = {".gif": 2000, ".png": 240}


@click.command(epilog="Example: weightgym wpb play answer.md --task builtin/wall_rally -o rally.gif")
@click.argument("answer", type=click.File("rb"))
@click.option("--task", "task_id", required=True, help="Whose game to play, such as original/breakout.")
@click.option("--episode", type=click.IntRange(0, 999), default=0, show_default=True, help="Number of the episode.")
@click.option("--steps", type=click.IntRange(min=1), help="Show the first N steps.  [default: all; 200 in a movie]")
@click.option("--every", type=click.IntRange(min=1), help="Show every K-th step.  [default: 1; 6 frames in a strip]")
@click.option("--fps", type=click.IntRange(1, 50), default=8, show_default=True, help="Frames a second.")
@click.option("--no-animation", is_flag=True, help="Print a strip of frames, as when the output is not a terminal.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write a .gif or .png instead.")
def play(
    answer: BinaryIO,
    task_id: str,
    episode: int,
    steps: int | None,
    every: int | None,
    fps: int,
    no_animation: bool,
    output: Path | None,
) -> None:
    """Show an episode of an answer's policy.

    ANSWER is a file that holds a model's whole response (- for stdin). Each frame is what the network sees, with the
    step, the action that it chooses there (and the one executed, where stickiness repeated the one before), the score
    so far and the reward that just came in.
    """
    from rich.console import Console

    from weightgym.envs.weight_program import render

    if output is not None:
        _check_output(output)
    trace = _play(_read(answer), task_id, episode)
    console = Console(highlight=False)
    animate = output is None and not no_animation and console.is_terminal and not console.is_dumb_terminal
    strip = not animate and (output is None or output.suffix.lower() == ".png")
    if steps is None and every is None and not strip:
        steps = _MOVIE_STEPS
    last = len(trace.actions) if steps is None else min(steps, len(trace.actions))
    shown = render.spread(last, _SNAPSHOTS) if strip and every is None else render.every(last, every or 1)
    frames = render.frames(trace, shown)
    summary = _summary(trace, task_id, episode)
    if last < len(trace.actions):
        summary += f"; shown: the first {last:,} steps (--steps)"
    if output is not None:
        _write(output, frames, f"{task_id}, episode {episode}", fps)
        summary += f"; wrote {output} ({len(frames)} frames)"
    elif animate:
        _animate(console, frames, fps)
    else:
        console.print(render.text_strip(frames, console.width))
        console.print(render.text_legend())
    console.print(summary, soft_wrap=True, markup=False)


def _check_output(output: Path) -> None:
    """Say what is wrong with ``--output`` before anything is played."""
    if output.suffix.lower() not in _MOST_FRAMES:
        raise click.BadParameter(f"{output.name!r} ends in neither .gif nor .png", param_hint="--output")
    if not output.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(output.parent)!r}", param_hint="--output")
    if importlib.util.find_spec("PIL") is None:
        raise click.ClickException("pictures need Pillow: pip install 'weightgym[games]'")


def _read(answer: BinaryIO) -> Weights:
    from weightgym.rewards.contracts import ModelError
    from weightgym.rewards.weight_program.edits import parse_edits

    try:
        return parse_edits(answer.read().decode("utf-8-sig")).weights
    except UnicodeDecodeError as error:
        raise click.ClickException(f"ANSWER is not UTF-8 text: {error}") from error
    except ModelError as error:
        raise click.ClickException(f"invalid answer: {error}") from error


def _play(weights: Weights, task_id: str, episode: int) -> EpisodeTrace:
    from weightgym.envs import registry
    from weightgym.rewards.weight_program.profile import profile
    from weightgym.rewards.weight_program.simulate import record_episode

    task = registry.spec("weight-program").tasks.task(task_id, prompt=False)
    if task.data["source"] == "synth":
        raise click.ClickException(f"{task_id}: games of a snapshot can be scored, not shown")
    return record_episode(str(task.data["game"]), weights, profile(_PROFILE), episode)


def _summary(trace: EpisodeTrace, task_id: str, episode: int) -> str:
    length = len(trace.actions)
    end = "the game ended" if trace.terminal else f"cut at the limit of {length:,} actions"
    steps = "1 step" if length == 1 else f"{length:,} steps"
    return f"{task_id}, episode {episode} of {_PROFILE}: score {trace.rewards.sum()} in {steps}; {end}"


def _write(output: Path, frames: list[Frame], title: str, fps: int) -> None:
    from weightgym.envs.weight_program import pictures

    suffix = output.suffix.lower()
    most = _MOST_FRAMES[suffix]
    if len(frames) > most:
        raise click.ClickException(
            f"{len(frames):,} frames are too many for a {suffix} file, which takes {most:,}: "
            "give --steps or a larger --every"
        )
    try:
        if suffix == ".gif":
            pictures.save_gif(output, frames, title, fps=fps)
        else:
            pictures.save_strip(output, frames, title)
    except OSError as error:
        raise click.ClickException(f"can't write {output}: {error}") from error


def _animate(console: Console, frames: list[Frame], fps: int) -> None:
    from rich.live import Live

    from weightgym.envs.weight_program.render import text_screen

    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        for frame in frames:
            live.update(text_screen(frame), refresh=True)
            time.sleep(1 / fps)
