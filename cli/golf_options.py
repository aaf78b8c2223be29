"""What the commands of Golf that run solutions share: options, and what they mean."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from weightgym.cli.unsafe_option import Command

if TYPE_CHECKING:
    from weightgym.rewards.golf.data.corpus import Corpus
    from weightgym.rewards.golf.profile import Profile

#: The profile of a command without --profile; said here so that --help is quick.
DEFAULT_PROFILE = "golf-cpu-v1"

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON and nothing else.")


def contest_options(function: Command) -> Command:
    """Add ``--profile``, ``--task``, ``--train-bytes`` and ``--val-bytes``. The command gets ``contest``, which
    when called finds the profile and the bytes that they mean."""

    @click.option("--profile", default=DEFAULT_PROFILE, show_default=True, help="The budgets and sizes to score under.")
    @click.option("--task", help="The language to train and score on.  [default: lang/24, which is held out]")
    @click.option(
        "--train-bytes", type=click.Path(path_type=Path), help="Train on the bytes of this file instead of a task's."
    )
    @click.option("--val-bytes", type=click.Path(path_type=Path), help="Score on the bytes of this file.")
    @functools.wraps(function)
    def run(
        *args: Any, profile: str, task: str | None, train_bytes: Path | None, val_bytes: Path | None, **kwargs: Any
    ) -> Any:
        if (train_bytes is None) != (val_bytes is None):
            raise click.UsageError("--train-bytes and --val-bytes go together")
        if task and train_bytes:
            raise click.UsageError("--task and --train-bytes exclude each other: a language, or files")
        return function(*args, contest=lambda: find_contest(profile, task, train_bytes, val_bytes), **kwargs)

    return run


def find_contest(
    name: str, task: str | None = None, train: Path | None = None, val: Path | None = None
) -> tuple[Profile, Corpus]:
    """The profile, and the bytes that it trains and scores on: those of the files, of the task, or of a fixed task.

    Raises:
        TaskError: there is no such profile, task or file.
    """
    from weightgym.envs.golf.tasks import SOURCE
    from weightgym.rewards.golf.data.corpus import file_corpus, language_corpus
    from weightgym.rewards.golf.profile import profile

    found = profile(name)
    if train is not None and val is not None:
        return found, file_corpus(found, train, val)
    return found, language_corpus(found, SOURCE.task(task or SOURCE.ids("test")[0], prompt=False).id)


#: The name of a solution that was given as -.
STDIN = "<stdin>"


class SolutionFile(NamedTuple):
    """A solution as it was given: the name of its file, and its bytes."""

    name: str
    raw: bytes


def read_solution(ctx: click.Context, param: click.Parameter, name: str) -> SolutionFile:
    """The callback of an argument that names a solution: the file is read and closed at once; ``-`` is stdin."""
    from weightgym.rewards.golf.source import MAX_BYTES

    most = MAX_BYTES + 1  # too many, which the check then says
    if name == "-":
        return SolutionFile(STDIN, sys.stdin.buffer.read(most))
    try:
        with open(name, "rb") as file:
            return SolutionFile(name, file.read(most))
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise click.BadParameter(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def read_solutions(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[SolutionFile, ...]:
    """The callback of an argument that names several.

    Raises:
        click.UsageError: two are stdin, which can be read once.
    """
    if names.count("-") > 1:
        raise click.UsageError("- (stdin) can be given once")
    return tuple(read_solution(ctx, param, name) for name in names)
