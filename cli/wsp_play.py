"""``weightgym wsp play``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weightgym.cli.console import echo_json, printable
from weightgym.rewards.one_line import one_line

if TYPE_CHECKING:
    from weightgym.rewards.contracts import Score, Task
    from weightgym.rewards.wsp.episode import Episode

#: From the conversation so far to the next assistant message; None: the player leaves.
Player = Callable[[list[dict[str, Any]]], dict[str, Any] | None]
#: Is shown a message and its replies.
Sight = Callable[[Mapping[str, Any], list[dict[str, Any]]], None]

_SHOWN = 300
_EPILOG = """\b
Examples:
  weightgym wsp play ID                                  one of `weightgym tasks wsp-bench`
  weightgym wsp play ID --agent spectral --card card.html
  weightgym wsp play ID --agent oracle -o conversation.jsonl

\b
A line of yours is a call, which is one message:
  singular_values {"parameter": "model.layers.2.mlp.down_proj.weight"}
  generate {"prompts": ["where does tobin live ?"]}
  submit {}
"""


@click.command(epilog=_EPILOG)
@click.argument("task")
@click.option(
    "--agent", help="Let a script play: no-op, random, spectral, budget, or oracle (which knows the truth).  [you]"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of a scripted agent's random choices.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add the conversation to this file, as a row for `weightgym wsp score`.",
)
@click.option(
    "--card",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report card: it tells the truth of the instance.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the score as a JSON object, and nothing else.")
def play(task: str, agent: str | None, seed: int, output: Path | None, card: Path | None, as_json: bool) -> None:
    """Play the episode of TASK (an id), and see how it is scored.

    The budgets are those of any agent. Without --agent the calls are yours: `help` lists the tools, `prompt` shows the
    task again, and an empty line or the end of input leaves without a score.
    """
    from weightgym.envs.wsp.tasks import SOURCE
    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.card import card as report_card
    from weightgym.rewards.wsp.episode import Episode
    from weightgym.rewards.wsp.scorer import Ended, scored

    asked = SOURCE.task(task)
    truth = sets.truth_of(asked)
    subject = sets.subject_of(truth)
    episode = Episode(subject.engine, sets.data_of(asked))
    player = _person(asked, episode) if agent is None else script(asked, agent, seed)
    talk = list(conversation(episode, player, see=None if as_json else _show_turn))
    if not episode.done:
        click.echo("left without a score", err=True)
        raise click.exceptions.Exit(1)
    score = scored(Ended.of(episode), truth, subject)
    if output is not None:
        with output.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"env": asked.env, "task": asked.id, "completion": talk}) + "\n")
    if card is not None:
        _write_card(report_card(episode, truth, subject, score), card)
    if as_json:
        echo_json(score.model_dump(mode="json"))
    else:
        _show_score(score)


def conversation(episode: Episode, player: Player, *, see: Sight | None = None) -> Iterator[dict[str, Any]]:
    """The messages of an episode, until it ends or the player leaves; ``see`` is shown each turn."""
    said: list[dict[str, Any]] = []
    while not episode.done and (message := player(said)) is not None:
        replies = [dict(reply) for reply in episode.message(message).messages]
        if see is not None:
            see(message, replies)
        said += [message, *replies]
        yield from (message, *replies)


def script(task: Task, name: str, seed: int) -> Player:
    """A scripted agent at play.

    Raises:
        click.BadParameter: there is none of that name.
    """
    from weightgym.envs.wsp.agents import AGENTS
    from weightgym.envs.wsp.oracle import oracle
    from weightgym.rewards.suggest import suggest

    agents = {**AGENTS, "oracle": oracle}
    if name not in agents:
        raise click.BadParameter(f"no agent {name!r}{suggest(name, agents)}", param_hint="--agent")
    return lambda said: agents[name](task, said, seed)


def _person(task: Task, episode: Episode) -> Player:
    tools = {tool["function"]["name"]: tool["function"] for tool in episode.tools}
    prompt = "\n\n".join(message.content for message in task.prompt)
    click.echo(prompt)

    def ask(said: list[dict[str, Any]]) -> dict[str, Any] | None:
        while line := click.prompt("", prompt_suffix="> ", default="", show_default=False).strip():
            if line == "prompt":
                click.echo(prompt)
            elif line.split()[0] == "help":
                _help(tools, line.split()[1:])
            else:
                name, _, arguments = line.partition(" ")
                function = {"name": name, "arguments": arguments.strip() or "{}"}
                return {"role": "assistant", "content": "", "tool_calls": [
                    {"id": f"call_{len(said)}", "type": "function", "function": function}]}  # fmt: skip
        return None

    return ask


def _help(tools: Mapping[str, Mapping[str, Any]], names: list[str]) -> None:
    for name in names or tools:
        if name not in tools:
            click.echo(f"no tool {name}")
        elif names:
            click.echo(json.dumps(tools[name], indent=1, ensure_ascii=False))
        else:
            click.echo(f"{name:16} {tools[name]['description']}")
    click.echo("help TOOL shows a tool's arguments")


def _show_turn(message: Mapping[str, Any], replies: list[dict[str, Any]]) -> None:
    for call in message.get("tool_calls", ()):
        function = call["function"]
        click.echo(f"→ {function['name']} {one_line(function['arguments'], _SHOWN)}")
    for reply in replies:
        click.echo("\n".join(f"  {printable(line)}" for line in reply["content"].splitlines()))


def _show_score(score: Score) -> None:
    from weightgym.cli.console import print_table, table

    rows = table("", "", right=("",), header=False)
    for name, value in score.metrics.items():
        rows.add_row(name, f"{value:.4g}")
    click.echo(f"{score.status}" + (f": {score.reason}" if score.reason else ""))
    print_table(rows)


def _write_card(card: Any, page: Path) -> None:
    from weightgym.cli.wsp_card import write_card

    try:
        write_card(card, page)
    except ImportError as error:
        raise click.ClickException(f"--card needs {error.name}: pip install 'weightgym[plots]'") from error
    click.echo(f"{page}: the report card; it tells the truth of this instance", err=True)
