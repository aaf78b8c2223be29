"""``weightgym golf``: commands of Mini Parameter Golf alone."""

from __future__ import annotations

import click

from weightgym.cli.main import LazyGroup

_COMMANDS = {
    "check": ("weightgym.cli.golf_static:check", "Check the form and the config of a solution."),
    "gate": ("weightgym.cli.golf_static:gate", "Judge a solution: legal, for review, or illegal."),
}


@click.group(cls=LazyGroup, table=_COMMANDS)
def golf() -> None:
    """Mini Parameter Golf: check, judge and score one file solution.py."""
