"""``weightgym golf smoke`` and ``weightgym golf score``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.golf import FAULT
from weightgym.cli.golf_options import (
    SolutionFile,
    contest_options,
    find_contest,
    json_option,
    read_solution,
    read_solutions,
)
from weightgym.cli.unsafe_option import unsafe_option

if TYPE_CHECKING:
    from weightgym.rewards.golf.data.corpus import Corpus
    from weightgym.rewards.golf.profile import Profile

_EPILOG = """\b
Examples:
  weightgym golf score solution.py
  weightgym golf score *.py --output scores.jsonl --jobs 4
  weightgym golf score - --task lang/30 --json < solution.py
"""


@click.command(epilog="Example: weightgym golf smoke solution.py")
@click.argument("file", callback=read_solution)
@json_option
@unsafe_option
def smoke(file: SolutionFile, as_json: bool) -> None:
    """Train FILE (a solution.py, - for stdin) for a few steps, pack and score it: does it run at all?

    Its val_bpb means nothing. Exit code 0 if it ran, 1 if it is at fault, 3 if it could not be tried.
    """
    from weightgym.rewards.golf.profile import SMOKE

    _score((file,), find_contest(SMOKE), None, None, as_json)


@click.command(epilog=_EPILOG)
@click.argument("files", callback=read_solutions, nargs=-1, required=True, metavar="FILE...")
@contest_options
@click.option("--jobs", type=click.IntRange(min=1), help="Solutions at work at once.  [default: the cores]")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Save each result as a line of JSON as it comes. A run that the file has already (same solution, profile, "
    "bytes, evaluator and machine) is not made again.",
)  # fmt: skip
@json_option
@unsafe_option
def score(
    files: tuple[SolutionFile, ...],
    contest: Callable[[], tuple[Profile, Corpus]],
    jobs: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Train and score each FILE (a solution.py, - for stdin) in a sandbox; results come in their order.

    With --json, one file gives one object and several give a line each. Exit code 0 if all are ok, 1 if one is buggy,
    3 if one could not be scored (ours: nothing is said of it, or saved).
    """
    _score(files, contest(), jobs, output, as_json)


def _score(
    files: tuple[SolutionFile, ...],
    contest: tuple[Profile, Corpus],
    jobs: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    from contextlib import ExitStack, closing

    from weightgym.cli.console import echo_json
    from weightgym.cli.golf_table import error_json, print_outputs
    from weightgym.cli.score_journal import only_writer
    from weightgym.cli.score_report import ScoringProgress
    from weightgym.rewards.contracts import SandboxError
    from weightgym.rewards.golf.evaluators import open_evaluator
    from weightgym.rewards.golf.output import Output, OutputError
    from weightgym.rewards.golf.saved import Saved, outputs
    from weightgym.rewards.sandbox import unsafe_allowed

    profile, corpus = contest
    found: list[Output | SandboxError] = []
    with ExitStack() as stack:
        saved = None
        if output:
            stack.enter_context(only_writer(output))
            try:
                saved = stack.enter_context(Saved(output))
            except OutputError as error:
                raise click.UsageError(str(error)) from None
        evaluator = stack.enter_context(closing(open_evaluator(profile, unsafe=unsafe_allowed(), jobs=jobs)))
        progress = stack.enter_context(ScoringProgress(len(files)))
        results = stack.enter_context(closing(outputs(evaluator, [file.raw for file in files], corpus, saved)))
        stack.callback(evaluator.close)  # first: whoever stops here waits for nothing that has begun
        for one in results:
            found.append(one)
            if isinstance(one, SandboxError):
                status, shown = "error", error_json(one)
            else:
                status, shown = "ok" if one.status == "ok" else "invalid", one.model_dump(mode="json")
            progress.update(status)
            if as_json:
                echo_json(shown)
    names = [file.name for file in files]
    if not as_json:
        print_outputs(list(zip(names, found, strict=True)))
    counts = Counter("error" if isinstance(one, SandboxError) else one.status for one in found)
    for name, one in zip(names, found, strict=True):
        if isinstance(one, SandboxError):
            click.echo(f"{name} could not be scored: {' '.join(str(one).split())}", err=True)
    if code := FAULT if counts["error"] else 1 if counts["buggy"] else 0:
        raise click.exceptions.Exit(code)
