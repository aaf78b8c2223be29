"""``weightgym wpb``: commands of WeightProgramBench alone."""

from __future__ import annotations

import click

from weightgym.cli.main import LazyGroup

_COMMANDS = {
    "play": ("weightgym.cli.wpb_play:play", "Show an episode of an answer's policy."),
    "solve": ("weightgym.cli.wpb_solve:solve", "Find an answer by evolution strategies or policy gradients."),
    "vary": ("weightgym.cli.wpb_vary:vary", "Make variants of the built-in games."),
    "gallery": ("weightgym.cli.wpb_gallery:gallery", "Make the page that shows all built-in games."),
    "fetch": ("weightgym.cli.wpb_fetch:fetch", "Download the published dataset and check it."),
    "parity": ("weightgym.cli.wpb_parity:parity", "Compare our scorer with the published one."),
    "selftest": ("weightgym.cli.wpb_selftest:selftest", "Check the engine's arithmetic."),
}


@click.group(cls=LazyGroup, table=_COMMANDS)
def wpb() -> None:
    """WeightProgramBench: watch an answer play, find one, compare scorers, check the engine."""
