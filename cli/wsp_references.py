"""``weightgym wsp references``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.console import print_table, table
from weightgym.rewards.wsp.profile import FAMILIES, TIERS

if TYPE_CHECKING:
    from weightgym.rewards.contracts import Score, Task
    from weightgym.rewards.wsp.references import ReferenceRow

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
    tasks = sets.add(public)
    known = {(row.id, row.agent) for row in read_references(public)}
    wanted = [(task, agent) for task in tasks.values() for agent in agents or AGENTS if (task.id, agent) not in known]
    for task, agent in track(wanted, description="episodes", transient=True):
        score = played(task, agent)
        if score.reward is None:
            raise click.ClickException(f"{task.id}, {agent}: {score.reason}")
        row = ReferenceRow(id=task.id, task_hash=task.hash, agent=agent, score=score.metrics["score"])
        add_reference(public, row)
    _show(read_references(public), tasks)


def played(task: Task, agent: str) -> Score:
    """The score of a scripted agent's episode."""
    from weightgym.cli.wsp_play import conversation, script
    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.episode import Episode
    from weightgym.rewards.wsp.scorer import Ended, scored

    truth = sets.truth_of(task)
    subject = sets.subject_of(truth)
    episode = Episode(subject.engine, sets.data_of(task))
    for _ in conversation(episode, script(task, agent, 0)):
        pass
    return scored(Ended.of(episode), truth, subject)


def _show(rows: Sequence[ReferenceRow], tasks: Mapping[str, Task]) -> None:
    """Means by family, tier and agent, and each agent's extremes."""
    agents = [name for name in AGENTS if any(row.agent == name for row in rows)]
    kinds = {id: (str(task.data["family"]), str(task.data["tier"])) for id, task in tasks.items()}
    shown = table("family", "tier", "instances", *agents, right=("instances", *agents))
    groups = [(family, tier) for family in FAMILIES for tier in TIERS] + [("all", tier) for tier in (*TIERS, "all")]
    for family, tier in groups:
        ids = {id for id, kind in kinds.items() if family in (kind[0], "all") and tier in (kind[1], "all")}
        if ids:
            cells = [[row.score for row in rows if row.agent == agent and row.id in ids] for agent in agents]
            shown.add_row(family, tier, str(len(ids)), *(_mean(cell) for cell in cells))
    print_table(shown)
    for agent in agents:
        scores = [row.score for row in rows if row.agent == agent]
        click.echo(f"{agent}: lowest {min(scores):.2f}, highest {max(scores):.2f}")


def _mean(scores: Sequence[float]) -> str:
    return f"{math.fsum(scores) / len(scores):.2f}" if scores else "—"
