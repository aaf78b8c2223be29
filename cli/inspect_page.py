"""Pages need an extra; what is printed does not."""

from __future__ import annotations

from collections.abc import Callable

import click


def write_if_possible(write: Callable[[], None], *, wanted: bool) -> bool:
    """Whether it could be written; that it could not is an error only if it was asked for by name."""
    try:
        write()
    except ImportError as error:
        problem = f"no page without {error.name}: pip install 'weightgym[plots]'"
        if wanted:
            raise click.ClickException(problem) from error
        click.echo(problem, err=True)
        return False
    return True
