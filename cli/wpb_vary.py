"""``weightgym wpb vary``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: weightgym wpb vary wall_rally --per-game 3 -o variants.txt")
@click.argument("games", nargs=-1, metavar="[GAME]...")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Names go here, one a line."
)
@click.option("--per-game", type=click.IntRange(min=1), default=1, show_default=True, help="Variants of each game.")
@click.option("--generations", type=click.IntRange(min=1), default=120, show_default=True, help="Of the solver, each.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Which variants.")
@click.option("--workers", type=click.IntRange(min=1), help="Threads.  [default: all cores]")
def vary(games: tuple[str, ...], output: Path, per_game: int, generations: int, seed: int, workers: int | None) -> None:
    """Make variants of the built-in GAMEs (all by default): other speeds, sizes, rates; each with a cap of its own.

    A game declares what may vary. Each variant is solved to find its cap; what gives too much to chance is left out.
    A name is a task: weightgym prompt variant/NAME. OUTPUT is added to (what was left out as comments), and what stands
    in it is not made again, so a run that was broken off goes on with the same command.
    """
    from rich.console import Console
    from rich.progress import Progress

    from weightgym.rewards.machine import cores
    from weightgym.rewards.weight_program import variants
    from weightgym.rewards.weight_program.games import GAMES
    from weightgym.trainers.vary import candidates, derive

    unknown = sorted(set(games) - set(GAMES))
    if unknown:
        raise click.BadParameter(f"there is no built-in game {unknown[0]!r}", param_hint="GAME")
    made, refused = _read(output)
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("variants", total=per_game * len(games or GAMES))
        for game in games or GAMES:
            have = sum(variants.split(name)[0] == game for name in made)
            progress.advance(bar, min(have, per_game))
            for name in candidates(game, seed):
                if have >= per_game:
                    break
                if name in made or name in refused:
                    continue
                derived = derive(name, generations=generations, threads=workers or cores())
                with output.open("a") as file:
                    file.write(f"# {name}: {derived.refused}\n" if derived.refused else derived.name + "\n")
                if derived.refused:
                    click.echo(f"{name}: left out, {derived.refused}", err=True)
                    continue
                click.echo(f"{derived.name}: skilled play {derived.skilled:.2f}, uniform {derived.uniform:.2f}")
                have += 1
                progress.advance(bar)
            if have < per_game:
                click.echo(f"{game}: only {have} variants", err=True)


def _read(output: Path) -> tuple[list[str], list[str]]:
    """Names (without caps) that an earlier run made, and those that it left out; half a last line is cut off."""
    from weightgym.rewards.weight_program import variants

    if not output.exists():
        return [], []
    text = output.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        output.write_text(whole)
    made, refused = [], []
    for line in whole.splitlines():
        if line.startswith("# "):
            refused.append(line[2:].partition(":")[0])
        else:
            made.append(variants.without_cap(line))
    return made, refused
