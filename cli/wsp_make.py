"""``weightgym wsp make``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from weightgym.rewards.wsp.make.set_file import Counts


@click.command(epilog="Example: weightgym wsp make --families fact,topic --tier hard -n 3 -o my/set.jsonl")
@click.option("--model", default="tiny-world", show_default=True, help="tiny-world, smollm2, or a folder or Hub name.")
@click.option("--families", default="all", show_default=True, help="Which, with commas between them.")
@click.option("--tier", "tiers", default="all", show_default=True, help="easy, medium, hard: with commas between them.")
@click.option("-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Of each family and tier.")
@click.option("--split", type=click.Choice(["train", "test"]), default="test", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--secret-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="What makes the set, beside the rest; 16 bytes at least.  [default: a random one]")  # fmt: skip
@click.option("--masking", is_flag=True, help="Hide the difference to the base model under a benign delta.")
@click.option("--report", is_flag=True, help="Print what candidates were rejected for.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True,
              help="NAME.jsonl; the truth goes into the folder NAME.truth beside it.")  # fmt: skip
def make(
    model: str,
    families: str,
    tiers: str,
    count: int,
    split: Literal["train", "test"],
    seed: int,
    secret_file: Path | None,
    masking: bool,
    report: bool,
    output: Path,
) -> None:
    """Make instances of WSP-Bench: a language model with one planted defect each.

    An instance is kept if its defect shows, is local where it has to be, can be undone, and can't be undone by chance.
    OUTPUT gets what is missing in it, so a run that was broken off goes on with the same command.
    """
    from rich.console import Console
    from rich.progress import Progress

    from weightgym.rewards.wsp.language_model import load
    from weightgym.rewards.wsp.make.set_file import SetFile, Wanted, make_set
    from weightgym.rewards.wsp.profile import DEFAULT, FAMILIES, TIERS, profile

    chosen = _chosen(families, FAMILIES, "--families"), _chosen(tiers, TIERS, "--tier")
    wanted = Wanted(chosen[0], chosen[1], count, split, seed)  # type: ignore[arg-type]
    file = SetFile(output)
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("instances", total=count * len(chosen[0]) * len(chosen[1]))
        make_set(
            file,
            load(model),
            wanted,
            profile(DEFAULT),
            secret=secret_file.read_bytes() if secret_file else None,
            masking=masking,
            done=lambda key: progress.advance(bar),
            rejected=lambda key, reason: progress.console.print(
                f"{key.family} {key.tier} {key.number}: a candidate was rejected for {reason}", highlight=False
            ),
        )
    if report:
        _print_report(file.counts)
    click.echo(f"{output}: {len(file.pairs)} instances")


def _chosen(text: str, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    from weightgym.rewards.suggest import suggest

    names = known if text == "all" else tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in known:
            raise click.BadParameter(f"there is no {name!r}{suggest(name, known)}", param_hint=option)
    return names


def _print_report(counts: Counts) -> None:
    """Rejected candidates by family, tier and reason, beside those that were kept."""
    from weightgym.cli.console import print_table, table

    rows = table("family", "tier", "candidates", "count", right=("count",))
    for (family, tier, reason), number in sorted(counts.items()):
        rows.add_row(family, tier, reason, str(number))
    print_table(rows)
