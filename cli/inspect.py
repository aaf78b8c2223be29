"""``weightgym inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.snapshot_options import snapshot_options
from weightgym.cli.unsafe_option import unsafe_option

if TYPE_CHECKING:
    from weightgym.cli.inspect_rescore import Check
    from weightgym.trainers.scored_file import ScoredFile

_EPILOG = """\b
Examples:
  weightgym inspect runs/quickstart
  weightgym inspect scored.jsonl -o /tmp/scored.html
  weightgym inspect scored.jsonl --rescore 20
  weightgym inspect scored.jsonl --explain :7
  weightgym inspect runs/quickstart --json | jq .reward
  weightgym inspect --metrics
"""


@click.command(epilog=_EPILOG)
@click.argument("path", metavar="FILE|RUN", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; of a run curves.png comes beside it.  [default: RUN/report.html, or FILE with .report.html]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary (or the explanation) as one JSON object.")
@click.option(
    "--rescore",
    type=click.IntRange(min=1),
    metavar="N",
    help="Score N answers again, chosen by a hash, and compare every number bit for bit.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes for --rescore.  [default: the cores]")
@click.option("--explain", metavar="ID", help="Tell how the score of one answer came about; :7 is the one in line 7.")
@click.option(
    "--tokenizer",
    metavar="DIR",
    default="",
    help="The model whose tokenizer tells what stored tokens say.  [default: the run's model, if it is a folder here]",
)
@click.option("--metrics", is_flag=True, help="List every metric of training with its meaning.")
@snapshot_options
@unsafe_option
def inspect(
    path: Path | None,
    output: Path | None,
    as_json: bool,
    rescore: int | None,
    workers: int | None,
    explain: str | None,
    tokenizer: str,
    metrics: bool,
) -> None:
    """Look at a file of scored answers, or at RUN, the folder of a training run; both may still be growing.

    FILE holds rollouts (`weightgym rollout`) or scored rows (`weightgym score`), a JSON object a line.

    Prints a summary, what is suspicious and where to look next; writes one page that needs no network: rewards and
    their components by task and over time, groups, why answers are invalid, length against reward, duplicates, and
    answers with prompt, tokens, verdict and how the score came about; of a run curves, too. The page needs the extra
    `plots`; the summary does not.

    Exit code: 0; 1 if --rescore found another score, or the file can't be read; 2 if the command was wrong.
    """
    if metrics:
        _list_metrics()
        return
    if path is None:
        raise click.UsageError("missing the file or the run's folder: weightgym inspect FILE|RUN")
    if workers is not None and rescore is None:
        raise click.UsageError("--workers goes with --rescore N")
    if explain is not None:
        if output is not None or rescore is not None:
            raise click.UsageError("--explain tells of one answer: leave out -o and --rescore")
        from weightgym.cli.inspect_explain import print_explanation

        print_explanation(_records(path), explain, as_json=as_json)
        return
    from weightgym.cli.inspect_rescore import Check

    check = None if rescore is None else Check(rescore, workers)
    good = _inspect(path, output, check, tokenizer, as_json=as_json)
    if not good:
        raise click.exceptions.Exit(1)


def _records(path: Path) -> ScoredFile:
    """The file, or the rollouts of a run."""
    from weightgym.trainers.scored_file import ScoredFile

    file = path / "rollouts.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise click.ClickException(f"{path} has no rollouts.jsonl" if path.is_dir() else f"{path} is no regular file")
    return ScoredFile(file)


def _inspect(path: Path, output: Path | None, check: Check | None, tokenizer: str, *, as_json: bool) -> bool:
    """Look at it; whether all scores that were made again are the same."""
    from weightgym.rewards.contracts import GraderError
    from weightgym.rollouts.store import StoreError
    from weightgym.trainers.run_folder import RunError

    try:
        if path.is_dir():
            from weightgym.cli.inspect_run import inspect_run

            rescored = inspect_run(path, output, check, tokenizer, as_json=as_json)
        else:
            from weightgym.cli.inspect_file import inspect_file

            rescored = inspect_file(_records(path), output, check, tokenizer, as_json=as_json)
    except (RunError, StoreError, GraderError) as error:
        raise click.ClickException(str(error)) from error
    return rescored is None or not rescored.different


def _list_metrics() -> None:
    from weightgym.cli.console import print_table, table
    from weightgym.trainers.metrics import MEANINGS
    from weightgym.trainers.report import sections

    rows = table("section", "metric", "meaning")
    for title, names in sections(MEANINGS).items():
        for index, name in enumerate(names):
            rows.add_row("" if index else title, name, MEANINGS[name])
    print_table(rows)
