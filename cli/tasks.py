"""``weightgym tasks``, and how commands find a task."""

from __future__ import annotations

import functools

import click

from weightgym.cli.console import DEFAULT_ENV, echo_json, print_table, shown, table
from weightgym.cli.snapshot_options import snapshot_options
from weightgym.envs import registry
from weightgym.rewards.contracts import Split, Task, TaskError
from weightgym.rewards.suggest import unknown_task

_SPLITS: tuple[Split, ...] = ("train", "test")
_WIDEST_CELL = 20


@click.command(epilog="Example: weightgym tasks weight-program --split test --json > tasks.jsonl")
@click.argument("env", default=DEFAULT_ENV)
@click.option("--split", type=click.Choice(_SPLITS), help="Only this split; both by default.")
@click.option(
    "--json", "as_json", is_flag=True, help="One whole task a line (prompt, data, hash), for programs; no table."
)
@snapshot_options
def tasks(env: str, split: Split | None, as_json: bool) -> None:
    """List the tasks of ENV (weight-program by default; see `weightgym envs`).

    HASH is the SHA-256 of the whole task, its prompt included: equal hashes are equal tasks.
    """
    entry = registry.spec(env)
    ids = [(part, id) for part in ([split] if split else _SPLITS) for id in entry.tasks.ids(part)]
    if as_json:
        for _, id in ids:
            echo_json(entry.tasks.task(id).model_dump(mode="json"))
        return
    if not ids:
        click.echo(f"{entry.name}: no tasks in split {split!r}" if split else f"{entry.name}: no tasks", err=True)
        return
    found = [_with_prompt(entry, id) for _, id in ids]
    columns = _data_columns([task for task, _ in found])
    rows = table("task", "split", "hash", *columns)
    for task, problem in found:
        cells = [str(task.data.get(name, "")) for name in columns]
        rows.add_row(task.id, task.split, "—" if problem else task.hash[:16], *cells)
    print_table(rows)
    for line in dict.fromkeys(problem for _, problem in found if problem):
        click.echo(f"no hash where the prompt can't be made: {line}", err=True)


def _with_prompt(entry: registry.EnvSpec, id: str) -> tuple[Task, str]:
    """The task, and why it has no prompt (so that a list needs nothing installed that only prompts need)."""
    try:
        return entry.tasks.task(id), ""
    except TaskError as error:
        return entry.tasks.task(id, prompt=False), str(error)


def _data_columns(rows: list[Task]) -> list[str]:
    """The fields of the tasks' data that are short enough for a table."""
    names = dict.fromkeys(name for task in rows for name in task.data)
    return [name for name in names if all(_is_short(task.data.get(name)) for task in rows)]


def _is_short(value: object) -> bool:
    return value is None or (isinstance(value, (str, int, float)) and len(str(value)) <= _WIDEST_CELL)


@functools.lru_cache(maxsize=1024)
def find_task(env: str, id: str) -> tuple[registry.EnvSpec, Task]:
    """The environment of that name and its task of that id, without the prompt: what scoring needs.

    Raises:
        TaskError: there is no such environment or task (with the nearest name), or it can't be loaded.
    """
    entry = registry.spec(env)
    try:
        return entry, entry.tasks.task(id, prompt=False)
    except ImportError as error:
        raise TaskError(f"environment {env!r} can't be loaded: {error}") from error
    except TaskError as error:
        known = [name for split in _SPLITS for name in entry.tasks.ids(split)]
        if id in known:
            raise
        raise TaskError(unknown_task(entry.name, id, known, what=shown)) from error
