"""WSP-Bench as TRL plays it: the score of a conversation is that of every other door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import wsp_sets
from click.testing import CliRunner
from transformers.utils.chat_template_utils import get_json_schema
from trl_episodes import columns, started, tools_of

from weightgym.cli.main import cli
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp.profile import Family
from weightgym.rewards.wsp.scorer import score
from weightgym.trainers.trl import TRLTasks
from weightgym.trainers.trl.environment import ENDED, final_score


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Family, Task]]:
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as tasks:
        yield tasks


def test_an_episode_has_the_bits_of_the_command(made: dict[Family, Task], tmp_path: Path) -> None:
    tasks = TRLTasks("wsp-bench", tasks=[made["hijack"].id, made["audit"].id])
    (repair,) = wsp_sets.undo("hijack")
    played = started(tasks, made["hijack"].id)
    tools = tools_of(played)
    assert "refused" in tools["tensor_stats"](parameter="no.such.parameter")
    assert "refused" in tools["read_slice"](rows="all")  # arguments are the environment's business
    tools["rank_one"](**json.loads(repair["function"]["arguments"]))
    assert "elements changed: 768" in tools["edit_log"]()
    tools["reset"]()  # a tool's name, which TRL keeps for its own method
    assert "elements changed: 0 " in tools["edit_log"]()
    tools["rank_one"](**json.loads(repair["function"]["arguments"]))
    assert tools["submit"]() == ENDED

    idle = started(tasks, made["audit"].id)
    chosen = [made["hijack"], made["audit"]]
    given = columns(tasks, *(task.id for task in chosen))
    said = [[{"role": "assistant", "content": "done"}], [{"role": "assistant", "content": "I give up."}]]
    rewards = tasks.reward(completions=said, environments=[played, idle], **given)
    assert rewards[0] is not None
    assert rewards[0] > 0.5
    assert rewards[1] == 0.0

    talks = [played.messages, idle.messages]
    for task, one, environment in zip(chosen, talks, (played, idle), strict=True):
        clock = {"seconds", "timings"}
        assert score(task, one).model_dump(exclude=clock) == final_score(environment, "").model_dump(exclude=clock)
    lines = [
        json.dumps({"env": "wsp-bench", "task": task.id, "completion": one})
        for task, one in zip(chosen, talks, strict=True)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(cli, ["score", str(tmp_path / "rows.jsonl"), "--workers", "1"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    scored = [json.loads(line) for line in (tmp_path / "rows.scored.jsonl").read_text().splitlines()]
    assert [row["score"]["reward"] for row in scored] == rewards


def test_the_model_sees_every_tool(made: dict[Family, Task]) -> None:
    tasks = TRLTasks("wsp-bench", tasks=[made["audit"].id])
    tools = tools_of(started(tasks, made["audit"].id))
    ours = [tool["function"]["name"] for tool in tasks._tools[made["audit"].id]]
    assert list(tools) == ours
    assert [get_json_schema(tool)["function"]["name"] for tool in tools.values()] == ours
