"""``weightgym golf verify``, ``record`` and ``leaderboard``: runs that count, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.golf_options import STDIN, SolutionFile, contest_options, json_option, read_solution

if TYPE_CHECKING:
    from weightgym.rewards.golf.data.corpus import Corpus
    from weightgym.rewards.golf.output import Output
    from weightgym.rewards.golf.profile import Profile

Contest = Callable[[], "tuple[Profile, Corpus]"]

_root_option = click.option(
    "--root", type=click.Path(file_okay=False, path_type=Path), default=Path("record"), show_default=True,
    help="The folder of all records.",
)  # fmt: skip


@click.command(epilog="Example: weightgym golf verify solution.py")
@click.argument("file", callback=read_solution)
@contest_options
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Where the result is saved. An older result there is replaced.  [default: FILE with .result.json]",
)  # fmt: skip
@json_option
def verify(file: SolutionFile, contest: Contest, output: Path | None, as_json: bool) -> None:
    """Run FILE (a solution.py, - for stdin) afresh, save the result, and judge the file together with what was saved.

    It always runs in the sandbox. Exit code 0 if it is legal, 1 if it or its result is illegal, 2 if a person must look
    at it, 3 if it could not be run.
    """
    from weightgym.cli.console import echo_json
    from weightgym.cli.golf_static import EXIT
    from weightgym.cli.golf_table import print_outputs, print_quality
    from weightgym.rewards.golf.output import OutputError
    from weightgym.rewards.golf.quality import judge_saved
    from weightgym.rewards.golf.saved import check_replaceable, write_output

    if output is None and file.name == STDIN:
        raise click.UsageError("the solution comes from stdin: name the file of its result with -o")
    target = output or Path(file.name).with_suffix(".result.json")
    try:
        check_replaceable(target)
    except OutputError as error:
        raise click.UsageError(str(error)) from None
    made = _run(file.raw, contest)
    write_output(target, made)
    quality = judge_saved(file.raw, target)
    if as_json:
        findings = [asdict(finding) for finding in quality.findings]
        problems = [asdict(problem) for problem in quality.problems]
        head = {"verdict": quality.verdict, "findings": findings, "result_findings": problems, "saved": str(target)}
        echo_json({**head, "result": made.model_dump(mode="json")})
    else:
        print_outputs([(file.name, made)])
        print_quality(quality)
        click.echo(f"{quality.verdict}; the result is in {target}")
    raise click.exceptions.Exit(EXIT[quality.verdict])


@click.command(epilog="Example: weightgym golf record solution.py --id shared-blocks-2")
@click.argument("file", callback=read_solution)
@click.option("--id", required=True, help="The record's name: a-z, 0-9 and -, 60 at most.")
@_root_option
@contest_options
@json_option
def record(file: SolutionFile, id: str, root: Path, contest: Contest, as_json: bool) -> None:
    """Run FILE (a solution.py, - for stdin) afresh, and keep it as the record ROOT/ID if it is legal.

    The folder gets solution.py, result.json, README.md and diff.patch (against the record that it improves on, or the
    baseline); ROOT/README.md, the leaderboard, is made anew. The numbers come from this run alone, in the sandbox.
    Exit code 0 if there is a new record, 1 if the solution is at fault, 2 if a person must look at it first, 3 if it
    could not be run or kept.
    """
    from weightgym.cli.console import echo_json
    from weightgym.cli.golf_static import EXIT
    from weightgym.cli.golf_table import echo_broken, print_outputs, print_quality
    from weightgym.rewards.golf.gate import gate
    from weightgym.rewards.golf.leaderboard import contest as contest_of
    from weightgym.rewards.golf.leaderboard import tables
    from weightgym.rewards.golf.quality import Quality, judge_output
    from weightgym.rewards.golf.records import RecordError, add, check_free

    try:
        check_free(root, id)
        static = gate(file.raw)
        made = _run(file.raw, contest) if static.verdict == "legal" else None
        quality = judge_output(file.raw, made) if made else Quality(static.verdict, static.findings, ())
        shelf = add(root, id, file.raw, made) if made and quality.verdict == "legal" else None
    except RecordError as error:
        raise click.UsageError(str(error)) from None
    if shelf is not None:
        echo_broken(shelf.broken, root)
    if as_json:
        kept = None if shelf is None else str(root / id)
        result = made and made.model_dump(mode="json")
        findings = [asdict(finding) for finding in quality.findings]
        echo_json({"record": kept, "verdict": quality.verdict, "findings": findings, "result": result})
    elif shelf is not None and made is not None:
        print_outputs([(file.name, made)])
        ranked = tables(shelf.records)[contest_of(made)]
        place = [one.id for one in ranked].index(id) + 1
        click.echo(f"{root / id}: number {place} of {len(ranked)}")
    else:
        if made is not None:
            print_outputs([(file.name, made)])
        print_quality(quality)
        click.echo(f"{quality.verdict}: no record was made")
    raise click.exceptions.Exit(EXIT[quality.verdict])


@click.command(epilog="Example: weightgym golf leaderboard --root record")
@_root_option
@json_option
def leaderboard(root: Path, as_json: bool) -> None:
    """Show the records by val_bpb, artifact bytes and runtime, and make ROOT/README.md anew.

    What is shown comes from the result.json files, each checked against its solution. Exit code 0; 1 if a folder was
    left out because it doesn't hold.
    """
    from weightgym.cli.console import echo_json, printable
    from weightgym.cli.golf_table import echo_broken, print_records
    from weightgym.rewards.golf.leaderboard import contest_name, tables
    from weightgym.rewards.golf.records import RecordError, refresh

    try:
        shelf = refresh(root)
    except RecordError as error:
        raise click.UsageError(str(error)) from None
    ranked = tables(shelf.records)
    if as_json:
        rows = [{"id": one.id, **one.output.model_dump(mode="json")} for table in ranked.values() for one in table]
        echo_json({"records": rows, "broken": shelf.broken})
    else:
        for table in ranked.values():
            click.echo(printable(contest_name(table[0].output)))
            print_records(table)
            click.echo()
        count = len(shelf.records)
        click.echo(f"{count} record{'s' * (count != 1)} in {root}")
    echo_broken(shelf.broken, root)
    raise click.exceptions.Exit(1 if shelf.broken else 0)


def _run(raw: bytes, contest: Contest) -> Output:
    """A fresh run in the sandbox, whatever the environment allows."""
    from contextlib import closing

    from weightgym.rewards.golf.evaluators import open_evaluator
    from weightgym.rewards.golf.output import Output

    profile, corpus = contest()
    with closing(open_evaluator(profile, jobs=1)) as evaluator:
        return Output.of(evaluator.evaluate(raw, corpus))
