"""``weightgym golf``: commands of Mini Parameter Golf alone."""

from __future__ import annotations

import traceback
from typing import Any

import click

from weightgym.cli.main import LazyGroup

#: Every exit that says nothing of a solution: 1 and 2 mean that it is illegal, or that a person must look at it.
FAULT = 3

_COMMANDS = {
    "check": ("weightgym.cli.golf_static:check", "Check the form and the config of a solution."),
    "gate": ("weightgym.cli.golf_static:gate", "Judge a solution: legal, for review, or illegal."),
    "smoke": ("weightgym.cli.golf_score:smoke", "Run a solution in seconds, to see whether it works."),
    "score": ("weightgym.cli.golf_score:score", "Train and score solutions."),
    "verify": ("weightgym.cli.golf_record:verify", "Run a solution again, and judge it with its result."),
    "record": ("weightgym.cli.golf_record:record", "Run a solution, and keep it as a record."),
    "leaderboard": ("weightgym.cli.golf_record:leaderboard", "Show the records, and make their page anew."),
}


class _GolfGroup(LazyGroup):
    """Whatever goes wrong on our side, or in the call, ends with the same code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["exit_code"] = FAULT
            raise
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
        except Exception:  # a bug of ours; Python would end with 1
            traceback.print_exc()
        raise click.exceptions.Exit(FAULT)


@click.group(cls=_GolfGroup, table=_COMMANDS)
def golf() -> None:
    """Mini Parameter Golf: check, judge, score and record one file solution.py.

    Exit codes: 0 legal or ok, 1 illegal or buggy, 2 a person must look at it, 3 something else went wrong.
    """
