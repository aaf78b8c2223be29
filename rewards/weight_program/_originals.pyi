# SPDX-License-Identifier: GPL-3.0-only
"""The five games of MinAtar 1.0.15 (by Kenny Young and Tian Tian, GPL-3.0), written anew for the fast engine."""

def game(name: str, /) -> object:
    """The original game of that name, as the capsule ``weightgym.game`` that the engine plays.

    Raises:
        KeyError: there is no such game.
        TypeError: the name is not a string.
    """

def names() -> tuple[str, ...]:
    """The names of the five original games, sorted."""
