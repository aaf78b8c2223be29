"""``weightgym docs``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: weightgym docs --check")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path("docs"))
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a page in FOLDER is out of date.")
def docs(folder: Path, check: bool) -> None:
    """Make the pages that follow from the code: one an environment, the metrics, and the index.

    They go to FOLDER (docs by default), beside those that people write: environments/NAME.md, metrics.md and README.md.
    """
    from weightgym.cli import docs_pages

    if check:
        if outdated := list(docs_pages.stale(folder)):
            raise click.ClickException(f"out of date in {folder}: {', '.join(outdated)}; run `weightgym docs`")
        return
    try:
        names = docs_pages.write(folder)
    except FileExistsError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{folder}: {len(names)} pages")
