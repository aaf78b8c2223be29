"""``weightgym prompt``."""

from __future__ import annotations

import click

from weightgym.cli.console import DEFAULT_ENV, echo_json
from weightgym.cli.score_file import checked_profile
from weightgym.cli.snapshot_options import snapshot_options
from weightgym.cli.tasks import find_task
from weightgym.envs import registry


@click.command(epilog="Example: weightgym prompt weight-program original/breakout --json > messages.json")
@click.argument("env", metavar="[ENV]")
@click.argument("task", required=False)
@click.option(
    "--json", "as_json", is_flag=True, help="The chat messages as one JSON list, as a chat request takes them."
)
@click.option("--profile", help="Whose budgets the prompt tells, where it tells any.  [default: the environment's]")
@snapshot_options
def prompt(env: str, task: str | None, as_json: bool, profile: str | None) -> None:
    """Print what the model is shown for TASK: the system prompt, then the user's.

    ENV is weight-program when it is left out. Task ids are listed by `weightgym tasks`.
    """
    if task is None:
        if any(env in (entry.name, entry.gym_id) for entry in registry.all_specs()):
            raise click.UsageError(f"missing the task: weightgym prompt {env} TASK (see `weightgym tasks {env}`)")
        env, task = DEFAULT_ENV, env
    entry, _ = find_task(env, task)
    messages = entry.tasks_under(checked_profile(entry, profile)).task(task).messages
    if as_json:
        echo_json(messages)
        return
    for message in messages:
        click.echo(f"[{message['role']}]\n{message['content']}\n")
