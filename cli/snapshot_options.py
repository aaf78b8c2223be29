"""The options that choose a snapshot of the published dataset, for all commands that read its tasks."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click

from weightgym.cli.unsafe_option import Command, environment_kept


def snapshot_options(function: Command) -> Command:
    """Add ``--snapshot`` and ``--snapshot-sha256``; the command runs with that snapshot chosen."""

    @click.option(
        "--snapshot",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="WEIGHTGYM_SNAPSHOT",
        help="A copy of the published WeightProgramBench dataset (see `weightgym wpb fetch`): its tasks synth/<game> "
        "are the training split, and its prompts are used.",
    )
    @click.option(
        "--snapshot-sha256",
        metavar="HEX",
        envvar="WEIGHTGYM_SNAPSHOT_SHA256",
        help="SHA-256 of the snapshot's task file, if it is another dataset of the same layout.",
    )
    @functools.wraps(function)
    def run(*args: Any, snapshot: Path | None, snapshot_sha256: str | None, **kwargs: Any) -> Any:
        if snapshot is None and snapshot_sha256 is not None:
            raise click.UsageError("--snapshot-sha256 goes with --snapshot DIR")
        if snapshot is None:
            return function(*args, **kwargs)
        from weightgym.cli.tasks import find_task
        from weightgym.rewards.weight_program.snapshot import layout

        with environment_kept():
            layout.choose(snapshot, tasks_sha256=snapshot_sha256)
            find_task.cache_clear()
            try:
                return function(*args, **kwargs)
            finally:
                find_task.cache_clear()

    return run
