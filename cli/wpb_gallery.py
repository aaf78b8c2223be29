"""``weightgym wpb gallery``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click


@click.command(epilog="Example: weightgym wpb gallery --check")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path("docs/games"))
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the page in FOLDER is out of date.")
def gallery(folder: Path, check: bool) -> None:
    """Make the page that shows all games: pictures from play, rules, caps, scores.

    It goes to FOLDER (docs/games by default), as README.md and a picture a game.
    """
    from rich.console import Console
    from rich.progress import track

    from weightgym.envs.weight_program import gallery as pages
    from weightgym.rewards.machine import cores

    if importlib.util.find_spec("PIL") is None:
        raise click.ClickException("pictures need Pillow: pip install 'weightgym[games]'")
    ids = track(pages.ids(), "playing", console=Console(stderr=True), transient=True)
    entries = [pages.entry(id, threads=cores()) for id in ids]
    if not check:
        try:
            pages.write(folder, entries)
        except FileExistsError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{folder / pages.PAGE}: {len(entries)} games")
    elif outdated := list(pages.stale(folder, entries)):
        raise click.ClickException(f"out of date in {folder}: {', '.join(outdated)}; run `weightgym wpb gallery`")
