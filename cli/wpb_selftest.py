"""``weightgym wpb selftest``."""

from __future__ import annotations

import click


@click.command()
@click.option("--full", is_flag=True, help="Check every float32 input (minutes) instead of a sample.")
def selftest(full: bool) -> None:
    """Check the engine's arithmetic.

    Its tanh and exp must be the correctly rounded ones on this processor, for scores to have the same bits everywhere.
    """
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from weightgym.rewards.machine import cores
    from weightgym.rewards.weight_program import selftest as checks

    try:
        with Progress(console=Console(stderr=True), disable=not full, transient=True) as bar:
            sweep = bar.add_task("all float32 inputs", total=1.0)
            rows = checks.run(full, lambda share: bar.update(sweep, completed=share), threads=cores())
    except ImportError as error:
        raise click.ClickException(
            f"the compiled engine is not there ({error}): install a C++17 compiler and reinstall weightgym"
        ) from error
    table = Table("function (kernel)")
    table.add_column("inputs", justify="right")
    table.add_column("wrong", justify="right")
    for row in rows:
        table.add_row(row.name, f"{row.checked:,}", f"{row.wrong:,}")
    Console().print(table)
    wrong = sum(row.wrong for row in rows)
    if wrong:
        raise click.ClickException(f"{wrong:,} wrong values: this processor can't give scores of wpb-v1")
