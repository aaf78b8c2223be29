"""``weightgym wsp report``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.console import echo_json, print_table, printable, table

if TYPE_CHECKING:
    from weightgym.cli.wsp_results import Result
    from weightgym.rewards.statistics import Interval
    from weightgym.rewards.wsp.overall import Overall

_EPILOG = """\b
Examples:
  weightgym rollout openai:my-model --urls http://localhost:8000/v1 --env wsp-bench --split test -o mine.jsonl
  weightgym wsp report mine.jsonl
  weightgym wsp report mine.jsonl --cards cards
"""


@click.command(epilog=_EPILOG)
@click.argument("files", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True)
@click.option(
    "--track", type=click.Choice(["fixed", "open"]), help="The episodes of one track only: the two are never mixed."
)
@click.option(
    "--cards",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a page for each episode into this folder: what was planted, what was found, what the edit did. They "
    "tell the truth of instances: keep them from agents.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def report(files: tuple[Path, ...], track: str | None, cards: Path | None, as_json: bool) -> None:
    """Overall result of scored episodes, by family and tier, beside reference rows.

    FILES are rollouts (`weightgym rollout --env wsp-bench`), scored rows (`weightgym wsp score`) or what the lab wrote
    (`weightgym wsp serve`). Several episodes of an instance count as one, their mean; an episode without a score, which
    is our fault, makes the result partial and is no 0.

    Exit code: 0 if every episode has a score, 1 if some have none.
    """
    from weightgym.cli.wsp_results import read_results

    results = read_results(files)
    if track is not None:
        results = [one for one in results if one.scored.track == track]
    found = print_results(results, as_json=as_json)
    if cards is not None:
        _write_cards(results, cards)
    if found.partial:
        raise click.exceptions.Exit(1)


def print_results(results: Sequence[Result], *, as_json: bool = False) -> Overall:
    """Print what came of some episodes of one track, beside the reference rows.

    Raises:
        click.ClickException: they are of two tracks or profiles, or none has a score.
    """
    from weightgym.rewards.wsp.overall import overall
    from weightgym.rewards.wsp.profile import profile
    from weightgym.rewards.wsp.references import means

    if len({one.scored.track for one in results}) > 1:
        raise click.ClickException("these episodes are of both tracks, which are never mixed: choose one with --track")
    profiles = sorted({one.score.profile for one in results if one.score.reward is not None})
    if len(profiles) != 1:
        told = f"these scores are of several profiles: {', '.join(profiles)}" if profiles else "no episode has a score"
        raise click.ClickException(told)
    found = overall([one.scored for one in results], profile(profiles[0]))
    references = means({one.task.id for one in results})
    if as_json:
        echo_json(dataclasses.asdict(found) | {"partial": found.partial, "references": references})
    else:
        print_overall(found, references)
    return found


def print_overall(found: Overall, references: dict[str, float]) -> None:
    """The result of a track as tables; what makes it partial is told on stderr."""
    rows = table("", "score", "95 % interval", right=("score",))
    parts: list[tuple[str, Interval | None]] = [(f"all {found.instances} instances", found.mean)]
    parts += [(f"family {name}", interval) for name, interval in found.families.items()]
    parts += [(f"tier {name}", interval) for name, interval in found.tiers.items()]
    for name, interval in parts:
        shown = (f"{interval.mean:.2f}", f"{interval.low:.2f} to {interval.high:.2f}") if interval else ("—", "—")
        rows.add_row(name, *shown, end_section=name.startswith("all"))
    click.echo(f"track {found.track}, profile {found.profile}")
    print_table(rows)
    if references:
        told = ", ".join(f"{name} {mean:.2f}" for name, mean in references.items())
        click.echo(f"on the same instances: {told}")
    if found.invalid:
        click.echo(f"{found.invalid} submissions could not be measured and count as 0", err=True)
    if found.failed:
        names = ", ".join(map(printable, found.failed[:5])) + (", …" if len(found.failed) > 5 else "")
        click.echo(
            f"partial: episodes of {len(found.failed)} instances have no score, which is our fault: {names}", err=True
        )


def _write_cards(results: Sequence[Result], folder: Path) -> None:
    from rich.progress import track as progress

    from weightgym.cli.wsp_card import write_card
    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.card import card
    from weightgym.rewards.wsp.scorer import replayed

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number, one in enumerate(progress(results, description="cards", transient=True)):
        if one.score.reward is None:
            continue
        truth = sets.truth_of(one.task)
        subject = sets.subject_of(truth)
        episode = replayed(subject, sets.data_of(one.task), one.completion)
        try:
            write_card(card(episode, truth, subject, one.score), folder / f"{one.task.id}-{number}.html")
        except ImportError as error:
            raise click.ClickException(f"--cards needs {error.name}: pip install 'weightgym[plots]'") from error
    click.echo(f"{folder}: a page for each episode", err=True)
