"""Environments with tools, as TRL calls them: methods from schemas, episodes, faults."""

from __future__ import annotations

import gc
import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import toy_tools_env
import trl_episodes
from hypothesis import given, settings
from hypothesis import strategies as st
from score_runs import without_times
from transformers.utils.chat_template_utils import get_json_schema
from trl_episodes import columns, tools_of

from weightgym.envs import registry
from weightgym.rewards.batch_worker import score_one
from weightgym.rewards.contracts import GraderError, TaskError
from weightgym.rewards.wsp.profile import DEFAULT, profile
from weightgym.rewards.wsp.tools.catalogue import schemas
from weightgym.rollouts.env_episode import EnvEpisode
from weightgym.trainers.trl import TRLTasks, environment
from weightgym.trainers.trl.environment import ENDED, FAILED, ToolEnvironment, final_score
from weightgym.trainers.trl.tool_methods import tool_method

WSP_TOOLS = [tool for tier in profile(DEFAULT).tiers.values() for tool in schemas(tier)]


@pytest.fixture(autouse=True)
def _toy() -> Iterator[None]:
    with registry.override(toy_tools_env.SPEC):
        toy_tools_env.RELEASE.clear()
        yield
        toy_tools_env.RELEASE.set()


def started(id: str, **options: Any) -> tuple[Any, TRLTasks]:
    """An environment at the start of a task's episode."""
    tasks = TRLTasks("toy-tools", tasks=[id], **options)
    return trl_episodes.started(tasks, id), tasks


def reward(played: ToolEnvironment, tasks: TRLTasks, said: str = "") -> float | None:
    """What the reward function says of the rollout."""
    completions = [[{"role": "assistant", "content": said}]]
    return tasks.reward(None, completions, None, environments=[played], **columns(tasks, *tasks.tasks))[0]


def test_the_methods_are_the_tools() -> None:
    played, _ = started("plain/3")
    tools = tools_of(played)
    assert list(tools) == ["add", "submit"]
    assert tools["add"](a=1, b=2) == "3"
    told = get_json_schema(tools["add"])["function"]
    want = toy_tools_env.TOOLS[0]["function"]
    assert (told["name"], told["description"]) == (want["name"], want["description"])
    assert told["parameters"]["required"] == ["a", "b"]
    assert {name: one["type"] for name, one in told["parameters"]["properties"].items()} == {
        "a": "integer", "b": "integer",
    }  # fmt: skip


@pytest.mark.parametrize("tool", WSP_TOOLS, ids=lambda tool: tool["function"]["name"])
def test_the_prompt_shows_the_schemas_of_wsp_bench(tool: dict[str, Any]) -> None:
    """Name, descriptions, what is required; every limit is in the schema or told in words."""
    told, want = get_json_schema(tool_method(tool))["function"], tool["function"]
    assert told.keys() == want.keys()
    assert told["name"] == want["name"]
    assert told["description"] == want["description"]
    mine, theirs = told["parameters"], want["parameters"]
    assert list(mine["properties"]) == list(theirs["properties"])
    assert mine.get("required", []) == theirs.get("required", [])
    for name, one in theirs["properties"].items():
        rest = {key: value for key, value in one.items() if key != "description"}
        found = dict(mine["properties"][name])
        description = found.pop("description")
        assert description.startswith(one.get("description", name))
        assert found == rest or json.loads(description.split(" JSON schema: ")[1]) == rest


JSON = st.recursive(
    st.sampled_from([{}, {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "null"}, {"enum": ["a", 1]},
                     {"const": True}, {"type": ["string", "null"]}, {"enum": [[1]]}, {"type": "object"}]),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
    ),
    max_leaves=4,
)  # fmt: skip
TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ["Args:\n    x: y", "Returns:", "a\nb: c", "Raises: no", "(choices: [1)", "  "]
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["a", "b", "args", "k", "returns"]), st.tuples(JSON, TEXT)), TEXT)
def test_any_schema_becomes_a_method_that_the_prompt_can_show(
    arguments: Mapping[str, tuple[Any, str]], description: str
) -> None:
    properties = {name: {**schema, "description": text} for name, (schema, text) in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": sorted(properties)[:1]}
    told = get_json_schema(
        tool_method({"function": {"name": "t", "description": description, "parameters": parameters}})
    )
    found = told["function"]["parameters"]
    assert list(found["properties"]) == list(properties)
    assert found.get("required", []) == sorted(properties)[:1]
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    "properties", [{"from": {}}, {"self": {}}, {"a b": {}}, {"Returns": {}}, {"a": {"type": "float"}}, {"a": 1}]
)
def test_what_is_no_argument_is_refused(properties: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="no method can be made of tool"):
        tool_method({"function": {"name": "t", "parameters": {"properties": properties}}})


@pytest.mark.parametrize("name", ["reset", "get_reward", "_private", "a-b", "messages", "class"])
def test_a_tool_may_have_any_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL keeps some names for itself; WSP-Bench has a tool ``reset``."""
    monkeypatch.setattr(toy_tools_env, "TOOLS", [*toy_tools_env.TOOLS, toy_tools_env.tool(name, "a")])
    played, _ = started("plain/3")
    assert tools_of(played)[name](a=7) == "7"
    assert get_json_schema(tools_of(played)[name])["function"]["name"] == name
    played.reset(**{key: value for key, value in TRLTasks("toy-tools", tasks=["plain/3"]).dataset()[0].items()
                    if key != "environment"})  # fmt: skip
    assert played.messages == []


def test_an_episode_is_that_of_the_environment() -> None:
    played, tasks = started("plain/3")
    tools = tools_of(played)
    assert tools["add"](a=1, b=2) == "3"
    assert tools["submit"](sum=6) == ENDED
    assert tools["add"](a=1, b=2) == ENDED  # and is no turn
    assert reward(played, tasks) == 1.0
    score = final_score(played, "")

    task = tasks.tasks["plain/3"]
    other = EnvEpisode(tasks.entry, task, tasks.profile)
    other.start()
    own = [message for message in played.messages if message["role"] == "assistant"]
    turns = [other.step(message, number + 1) for number, message in enumerate(own)]
    assert turns[-1].score is not None
    assert without_times(turns[-1].score) == without_times(score)
    again = score_one(tasks.entry.score, task, played.messages, profile=tasks.profile)
    assert without_times(again) == without_times(score)


def test_a_used_environment_is_as_a_new_one() -> None:
    played, tasks = started("plain/3")
    tools_of(played)["submit"](sum=6)
    assert reward(played, tasks) == 1.0
    row = tasks.row(tasks.tasks["plain/3"])
    row.pop("environment")
    played.reset(**row)
    assert reward(played, tasks, "never mind") == 0.0
    assert played.messages == [{"role": "assistant", "content": "never mind"}]
    fresh, _ = started("plain/3")
    assert reward(fresh, tasks, "never mind") == 0.0
    assert without_times(final_score(fresh, "")) == without_times(final_score(played, ""))


@pytest.mark.parametrize("arguments", [{}, {"a": "x"}, {"a": math.nan}, {"a": math.inf}, {"c": []}, {"a": "\ud800"}])
def test_any_arguments_are_answered(arguments: dict[str, Any]) -> None:
    played, tasks = started("plain/3")
    told = tools_of(played)["add"](**arguments)
    told.encode()  # a tokenizer takes it
    tools_of(played)["submit"](sum=6)
    assert reward(played, tasks) == 1.0
    json.dumps(played.messages, allow_nan=False)
    if any(isinstance(value, float) for value in arguments.values()):
        assert "was not run" in told


def test_the_environment_ends_an_endless_model() -> None:
    played, tasks = started("plain/3")
    told = [tools_of(played)["add"](a=1, b=1) for _ in range(9)]
    assert told == ["2"] * (toy_tools_env.MAX_TURNS - 1) + [ENDED] * 5
    assert reward(played, tasks) == 0.0


@pytest.mark.parametrize("kind", ["unicode", "huge"])
def test_any_answer_reaches_the_model(kind: str) -> None:
    played, _ = started(f"{kind}/3")
    tools_of(played)["add"](a=1, b=1).encode()


@pytest.mark.parametrize(("kind", "status"), [
    ("raise_step", "error"),
    ("exit_step", "error"),
    ("hang_step", "timeout"),
    ("bad_reply", "error"),
    ("raise_close", None),
    ("hang_close", None),
])  # fmt: skip
def test_a_fault_is_no_reward(kind: str, status: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_CLOSE", 0.5)
    options = {"timeout": 1.0} if kind.startswith("hang") else {}
    played, tasks = started(f"{kind}/3", most_faults=1.0, **options)
    before = time.monotonic()
    told = [tools_of(played)["add"](a=1, b=2), tools_of(played)["submit"](sum=6)]
    found = reward(played, tasks)
    assert time.monotonic() - before < 20
    if status is None:
        assert (told, found) == (["3", ENDED], 1.0)
        return
    assert found is None
    assert final_score(played, "").status == status
    assert told[-1] in (FAILED, ENDED)
    assert tasks.faults == 1
    strict = TRLTasks("toy-tools", tasks=[f"{kind}/3"])
    with pytest.raises(GraderError, match="1 of 1 answers have no reward, through our fault"):
        reward(played, strict)


def test_what_nobody_holds_any_more_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        played, tasks = started("plain/3")
        del played, tasks
    gc.collect()
    end = time.monotonic() + 10
    while not set(threading.enumerate()) <= before:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_environment_that_hangs_is_closed_when_it_comes_back() -> None:
    played, tasks = started("hang_step/3", timeout=0.5, most_faults=1.0)
    toy_tools_env.CLOSED.clear()
    tools_of(played)["add"](a=1, b=2)
    assert tools_of(played)["add"](a=1, b=2) == FAILED
    assert reward(played, tasks) is None
    assert toy_tools_env.CLOSED == []  # it is still at work
    toy_tools_env.RELEASE.set()
    end = time.monotonic() + 10
    while not toy_tools_env.CLOSED and time.monotonic() < end:
        time.sleep(0.01)
    assert toy_tools_env.CLOSED == ["hang_step"]


@pytest.mark.parametrize(("kind", "words"), [
    ("raise_reset", "failed: no lab"),
    ("other_task", "failed: toy-tools started"),
    ("hang_reset", "took more than 1 s"),
])  # fmt: skip
def test_an_environment_that_never_starts_is_told_at_once(kind: str, words: str) -> None:
    """Its tools are needed before TRL begins."""
    with pytest.raises(GraderError, match=f"{words}.* at the start of task"):
        started(f"{kind}/3", timeout=1.0)


def test_a_reset_that_fails_later_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    played, tasks = started("plain/3", most_faults=1.0)
    row = tasks.row(tasks.tasks["plain/3"])
    row.pop("environment")
    monkeypatch.setattr(toy_tools_env.ToolEnv, "reset", None)
    played.reset(**row)
    assert tools_of(played)["add"](a=1, b=2) in (ENDED, FAILED)
    assert reward(played, tasks) is None
    with pytest.raises(TaskError, match="not of this data set"):
        played.reset(**(row | {"task": "plain/4"}))


def test_the_reward_needs_the_environments() -> None:
    tasks = TRLTasks("toy-tools")
    with pytest.raises(TaskError, match=r"environment_factory=tasks\.environments"):
        tasks.reward(completions=["text"], **columns(tasks, "plain/1"))


def test_tasks_with_other_tools_get_a_class_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = toy_tools_env.ToolEnv._info

    def info(self: Any, task: Any) -> dict[str, Any]:
        found = tools(self, task)
        return found | {"tools": found["tools"][: 2 if task.id == "plain/2" else 1]}

    monkeypatch.setattr(toy_tools_env.ToolEnv, "_info", info)
    tasks = TRLTasks("toy-tools", tasks=["plain/1", "plain/2", "plain/3"])
    assert tasks.environments is not None
    kinds = [row["environment"] for row in tasks.dataset()]
    assert kinds == ["toy-tools", "toy-tools-2", "toy-tools"]
    assert [list(tools_of(tasks.environments[kind]())) for kind in kinds] == [["add"], ["add", "submit"], ["add"]]
