"""``weightgym envs``."""

from __future__ import annotations

import click

from weightgym.cli.console import print_table, table
from weightgym.envs import registry
from weightgym.rewards.contracts import Split, TaskError


@click.command(epilog="Next: weightgym tasks weight-program")
def envs() -> None:
    """List the environments: those of this package, and those that other packages bring along.

    FLOOR is the reward of an answer that can't be read. A PROFILE names a set of scoring choices; scores compare only
    within one. The first profile shown is the default.
    """
    rows = table("env", "gymnasium id", "profiles", "floor", "train", "test", right=("floor", "train", "test"))
    problems = []
    for entry in registry.all_specs():
        counts = []
        for split in ("train", "test"):
            try:
                counts.append(str(_count(entry, split)))
            except (ImportError, TaskError) as error:
                counts.append("?")
                problems.append(f"{entry.name}: {split} tasks can't be listed: {error}")
        rows.add_row(entry.name, entry.gym_id, entry.profiles, f"{entry.floor:g}", *counts)
    print_table(rows)
    problems += [f"{name} can't be loaded: {why}" for name, why in registry.installed().problems.items()]
    for problem in problems:
        click.echo(problem, err=True)


def _count(entry: registry.EnvSpec, split: Split) -> int:
    return len(entry.tasks.ids(split))
