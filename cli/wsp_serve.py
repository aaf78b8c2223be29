"""``weightgym wsp serve``."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weightgym.rewards.contracts import Score, Task
    from weightgym.rewards.wsp.episode import Episode
    from weightgym.rewards.wsp.lab.loaded import Instance
    from weightgym.rewards.wsp.profile import Track

TOKEN = "WEIGHTGYM_LAB_TOKEN"
_EPILOG = """\b
Examples:
  weightgym wsp serve --results results.jsonl
  weightgym wsp serve --track open --instances masked.jsonl --results open.jsonl
  weightgym wsp report results.jsonl
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--results",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add a line for each episode to this file. It tells the scores: keep it from agents.",
)
@click.option("--track", type=click.Choice(["fixed", "open"]), default="fixed", show_default=True)
@click.option(
    "--instances",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file of public rows, with the truth beside it.  [default: all sets that are known]",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="[default: any free one]")
@click.option(
    "--lease",
    type=click.FloatRange(1, 86400),
    default=900,
    show_default=True,
    help="Seconds after which an episode whose client is silent is closed, and counted as it is.",
)
@click.option("--episodes", type=click.IntRange(1, 4096), default=256, show_default=True, help="At a time.")
@click.option("--in-memory", type=click.IntRange(1), default=8, show_default=True, help="Instances at a time.")
def serve(
    results: Path, track: Track, instances: Path | None, port: int, lease: float, episodes: int, in_memory: int
) -> None:
    """Serve episodes over HTTP on this machine, for agents of your own, until Ctrl-C.

    Clients need the token, which is taken from the environment variable WEIGHTGYM_LAB_TOKEN, or made and printed. On
    the open track a client has to run as another user than this server, and not as root: whoever can read the server's
    files and memory can read the truth. Instances of that track are masked.
    """
    from weightgym.rewards.wsp.lab import peers
    from weightgym.rewards.wsp.lab.lab import Lab
    from weightgym.rewards.wsp.lab.server import LabServer

    if track == "open" and not peers.available():
        raise click.ClickException("--track open needs Linux, whose kernel tells which user a client runs as")
    served = _tasks(track, instances)
    token = os.environ.pop(TOKEN, "") or secrets.token_urlsafe(32)
    lab = Lab(
        lambda id: _instance(served[id]) if id in served else None,
        lambda task, episode: _score(task, episode, track),
        results,
        track=track,
        lease=lease,
        most_episodes=episodes,
        most_instances=in_memory,
    )
    try:
        server = LabServer(lab, token, port=port)
    except BaseException:
        lab.close()
        raise
    click.echo(f"{server.url} serves {len(served)} instances on the {track} track; token {token}")
    try:
        _wait()
    finally:
        click.echo("closing: episodes that have ended are being scored", err=True)
        server.close()
        lab.close()


def _wait() -> None:
    """Until somebody asks to stop."""
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    while not asked.wait(1.0):
        pass


def _tasks(track: Track, instances: Path | None) -> Mapping[str, Task]:
    """The tasks that can be served on a track, with their prompts, by id."""
    from weightgym.envs.wsp.tasks import SOURCE, WSPTasks
    from weightgym.rewards.wsp import sets

    source = SOURCE if instances is None else WSPTasks(instances=instances)
    masked = source.profile.masking[track]
    ids = (*source.ids("train"), *source.ids("test"))
    bare = {id: source.task(id, prompt=False) for id in ids}
    served = [id for id, row in bare.items() if not masked or sets.truth_of(row).recipe.get("masking")]
    if not served:
        what = "masked instance: make some with `weightgym wsp make --masking`" if masked else "instance"
        raise click.ClickException(f"there is no {what} to serve on the {track} track")
    return {id: source.task(id) for id in served}


def _instance(task: Task) -> Instance:
    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.lab.loaded import Instance

    return Instance(task, sets.subject_of(sets.truth_of(task)).engine)


def _score(task: Task, episode: Episode, track: Track) -> Score:
    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.scorer import Ended, scored

    truth = sets.truth_of(task)
    return scored(Ended.of(episode), truth, sets.subject_of(truth), track=track)
