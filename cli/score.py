"""``weightgym score``."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import click

from weightgym.cli.console import DEFAULT_ENV
from weightgym.cli.score_answer import score_answer
from weightgym.cli.score_file import FileOptions, score_file
from weightgym.cli.snapshot_options import snapshot_options
from weightgym.cli.unsafe_option import unsafe_option
from weightgym.rewards.machine import cores
from weightgym.rewards.score_cache import default_path
from weightgym.rollouts.readers.detect import FORMATS

_EPILOG = """\b
Examples:
  weightgym score answer.txt --task original/breakout
  weightgym score answers.jsonl --workers 8 --timeout 600
  weightgym score answers.jsonl --resume
  generate | weightgym score - -o scored.jsonl
  weightgym score outputs/my-run/traces.jsonl --diff          # of verifiers: were its rewards right?
  weightgym score trained/completions -o trl.jsonl            # TRL's completions_*.parquet, of all steps
"""


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise click.BadParameter(f"must be more than 0 seconds, not {value:g}")
    return value


@click.command(epilog=_EPILOG)
@click.argument("input", metavar="INPUT")
@click.option("-o", "--out", metavar="OUT", help="Where rows go; - for stdout. Default: INPUT with .scored.jsonl.")
@click.option(
    "--profile",
    help="The set of scoring choices, such as wpb-v1-e20 (20 episodes only, for a quick look); each environment's "
    "default otherwise. Scores compare only within one profile.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes to score in. Default: the cores of this machine."
)
@click.option(
    "--timeout",
    type=float,
    callback=_seconds,
    metavar="SECONDS",
    help="Give up on a row after this wall time: its process is killed and the row gets status timeout, no reward. "
    "Default: no limit but the benchmark's own.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with OUT after an interruption: rows that have a reward stay, if their input line and task are "
    "unchanged; error and timeout are tried again.",
)
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Of INPUT; found out by its first row otherwise. plain: rows as above. rollouts: of this package. verifiers: "
    "traces.jsonl of v1. verifiers-legacy: results.jsonl. trl: completions_*.parquet, or a folder of them.",
)
@click.option(
    "--diff",
    is_flag=True,
    help="Tell how the new rewards differ from the recorded ones, by task and row by row. Exit code 1 if any does.",
)
@click.option(
    "--reward",
    metavar="NAME",
    help="Which of several recorded rewards is the environment's. Default: the one named after it, or the only one.",
)
@click.option(
    "--cache",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where scores are kept from run to run. Default: scores.sqlite3 in WEIGHTGYM_CACHE or ~/.cache/weightgym.",
)
@click.option("--no-cache", is_flag=True, help="Score every row anew, and keep nothing.")
@snapshot_options
@unsafe_option
@click.option(
    "--scorer",
    type=click.Choice(["native", "snapshot"]),
    help="With --snapshot: grade with our own loop and policy (native, the default) or with the snapshot's verify.py "
    "(profile wpb-published).",
)
@click.option("--task", help="INPUT is one plain answer to this task, scored here and printed.")
@click.option("--env", help=f"The environment of --task. Default: {DEFAULT_ENV}.")
@click.option("--json", "as_json", is_flag=True, help="With --task: print the score as a JSON object.")
def score(
    input: str,
    out: str | None,
    profile: str | None,
    workers: int | None,
    timeout: float | None,
    resume: bool,
    force: bool,
    format: str | None,
    diff: bool,
    reward: str | None,
    cache: Path | None,
    no_cache: bool,
    scorer: str | None,
    task: str | None,
    env: str | None,
    as_json: bool,
) -> None:
    """Score answers: a file of rows, or one plain answer with --task. INPUT may be - for stdin.

    A row is a JSON object on one line: {"env": "weight-program", "task": "original/breakout", "completion": "…"}.
    The completion is the whole response, or a list of chat messages; other fields are kept. The output is the same
    row with a "score" (a "score" that it had becomes "previous_score"): status, reward, reason, metrics, info,
    profile, seconds, line and row_sha256 of the input line, and task_sha256 of the task without its prompt.

    Files of verifiers and TRL, and rollouts of this package, are read, too. A row whose env and task aren't named is
    matched by its prompt. What it recorded stays: the score's "recorded" has the old reward and the difference, and
    names rewards of other functions, which are kept and not recomputed.

    Status ok and invalid (the answer is at fault: the environment's floor) have a reward; error and timeout are ours
    and have none. Bad rows are told on stderr and left out.

    Exit code: 0 if every row got a reward (with --diff: the recorded one), 1 if some did not, 2 if the command was
    wrong.
    """
    profile = _profile(profile, scorer)
    if task is not None:
        given = {
            "-o": out, "--workers": workers, "--timeout": timeout, "--resume": resume, "--force": force,
            "--format": format, "--diff": diff, "--reward": reward, "--cache": cache, "--no-cache": no_cache,
        }  # fmt: skip
        _refuse(given, "goes with a file of rows, not with one answer (--task)")
        raw = sys.stdin.buffer.read() if input == "-" else Path(input).read_bytes()
        good = score_answer(raw, _name(input), env=env or DEFAULT_ENV, task=task, profile=profile, as_json=as_json)
    else:
        _refuse({"--env": env, "--json": as_json}, "goes with one answer (--task), not with a file of rows")
        if resume and force:
            raise click.UsageError("--resume and --force exclude each other: go on with OUT, or replace it")
        target = _target(input, out)
        if target is None:
            _refuse({"--resume": resume, "--force": force}, "needs an output file (-o)")
        if cache and no_cache:
            raise click.UsageError("--cache and --no-cache exclude each other")
        kept = None if no_cache else cache or default_path()
        options = FileOptions(
            target, profile, workers or cores(), timeout, resume, force, reward, diff, kept, format
        )  # fmt: skip
        with ExitStack() as stack:
            source = Path(input) if input != "-" and Path(input).is_dir() else _rewindable(input, stack)
            good = score_file(source, _name(input), options)
    if not good:
        raise click.exceptions.Exit(1)


def _profile(profile: str | None, scorer: str | None) -> str | None:
    """The profile that --scorer means."""
    if scorer is None:
        return profile
    from weightgym.rewards.weight_program.snapshot import layout
    from weightgym.rewards.weight_program.snapshot.process import require_sandbox

    if layout.current() is None:
        raise click.UsageError(f"--scorer {scorer} needs --snapshot DIR")
    require_sandbox()
    wanted, other = ("wpb-v1", "wpb-published") if scorer == "native" else ("wpb-published", "wpb-v1")
    if profile is None:
        return wanted
    if profile.startswith(other) and scorer == "native":
        raise click.UsageError(f"--profile {profile} is not what --scorer native gives: leave one out")
    return profile.replace(other, wanted, 1)


def _refuse(given: Mapping[str, object], why: str) -> None:
    for name, value in given.items():
        if value not in (None, False):
            raise click.UsageError(f"{name} {why}")


def _name(input: str) -> str:
    return "<stdin>" if input == "-" else input


def _target(input: str, out: str | None) -> Path | None:
    """The output file; None for stdout, the default where the input has no name."""
    if out == "-" or (out is None and input == "-"):
        return None
    if out is not None:
        return Path(out)
    return Path(input.rstrip("/").removesuffix(".jsonl").removesuffix(".parquet") + ".scored.jsonl")


def _rewindable(input: str, stack: ExitStack) -> BinaryIO:
    """The input as a file that can be read twice: a pipe is copied to disk first."""
    source = sys.stdin.buffer if input == "-" else stack.enter_context(open(input, "rb"))  # noqa: SIM115
    if source.seekable():
        return source
    spool = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(source, spool)
    return spool
