"""``weightgym wsp references``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.console import print_table, table

if TYPE_CHECKING:
    from weightgym.rewards.contracts import Score, Task

#: Scripted agents that results are shown beside.
AGENTS = ("oracle", "no-op", "random", "spectral", "budget")


@click.command(epilog="Example: weightgym wsp references --instances my-set.jsonl")
@click.option(
    "--instances",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file of public rows, with the truth beside it.  [default: the set that the package ships]",
)
@click.option("--agents", multiple=True, type=click.Choice(AGENTS), help="Repeat it for several.  [default: all]")
def references(instances: Path | None, agents: tuple[str, ...]) -> None:
    """Let scripted agents play every instance of a set, and keep their scores beside it (NAME.references.jsonl).

    `weightgym wsp report` shows them with other results. Each score is written as it comes; what is there already is
    not made again.
    """
    from rich.progress import track

    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.references import ReferenceRow, add_reference, read_references

    public = sets.shipped() if instances is None else instances.resolve()
    sets.add(public)
    tasks = {id: task for id, task in sets.tasks(public).items()}
    known = {(row.id, row.agent) for row in read_references(public)}
    wanted = [(task, agent) for task in tasks.values() for agent in agents or AGENTS if (task.id, agent) not in known]
    for task, agent in track(wanted, description="episodes", transient=True):
        score = played(task, agent)
        if score.reward is None:
            click.echo(f"{task.id}, {agent}: {score.reason}", err=True)
            continue
        row = ReferenceRow(id=task.id, task_hash=task.hash, agent=agent, score=score.metrics["score"])
        add_reference(public, row)
    _show(public)


def played(task: Task, agent: str) -> Score:
    """The score of a scripted agent's episode."""
