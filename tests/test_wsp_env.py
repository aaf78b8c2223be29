"""WSP-Bench as its users meet it: the contract, prompts that give nothing away, replies, and one score for all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import wsp_sets
from score_runs import without_times
from wsp_sets import call, said, undo

from weightgym.envs import registry
from weightgym.envs.testing import EnvSubject, contract_test
from weightgym.envs.wsp.env import WSPBenchEnv
from weightgym.envs.wsp.oracle import oracle
from weightgym.envs.wsp.prompt import task_prompt
from weightgym.envs.wsp.tasks import SOURCE, WSPTasks
from weightgym.rewards.contracts import GraderError, Split, Task, TaskError
from weightgym.rewards.wsp import scorer, sets
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import PublicData, instance_id, public_task, write_instances
from weightgym.rewards.wsp.profile import FAMILIES, TIERS, Family, profile

Told = dict[str, Any]


def audits(split: Split, count: int) -> list[Any]:
    """Copies of the audit under ids of their own: what it costs to score one is next to nothing."""
    task, truth = wsp_sets.instance("audit")
    made = []
    for number in range(count):
        key = truth.key._replace(split=split, number=number)
        row = public_task(instance_id(wsp_sets.SECRET, key), split, PublicData.model_validate(dict(task.data)))
        made.append((row, truth.model_copy(update={"id": row.id, "task_hash": row.hash, "key": key})))
    return made


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two sets of audits, the second a part of the first."""
    folder = tmp_path_factory.mktemp("audits")
    rows = [*audits("train", 3), *audits("test", 3)]
    for name, chosen in (("all", rows), ("part", [*rows[:2], *rows[3:5]])):
        FILES[name] = folder / f"{name}.jsonl"
        write_instances(FILES[name], sets.truth_folder(FILES[name]), chosen)


#: Of the fixture: the contract's subject is made within a test.
FILES: dict[str, Path] = {}


def make(*, split: Split = "train", instances: str = "all") -> WSPBenchEnv:
    """There is one profile: what it does can't be seen beside another one."""
    return WSPBenchEnv(split=split, instances=FILES[instances])


def subject() -> EnvSubject:
    tasks = WSPTasks(instances=FILES["part"])
    look = said(call("tokenize", text="where"))

    def gold(id: str) -> tuple[list[Any], float]:
        return [look, oracle(tasks.task(id), [], 0)], 0.99

    return EnvSubject(
        make=make,
        gold=gold,
        floor=0.0,
        flags={"instances": ("all", "part")},
        noops=("", ["", said(call("submit"))]),
        quick_ids=tuple(tasks.ids("train") + tasks.ids("test")),
        slow_ids=(tasks.ids("train")[0], tasks.ids("test")[0]),
        invalid=(
            said(call("no_such_tool")),
            said(call("submit", report={"parameter": "mlp.down_proj.weight", "layer": 99})),
            said(call("rank_one", parameter=wsp_sets.NAME, left="row 0", right="column 0")),
            ["", said(*[call("submit")] * 40)],
        ),
        oversize=said(call("tokenize", text="x" * 2_000_000)),
        content=lambda task: task.id,  # rows are alike: that says nothing is what ids and rows are for
        tasks=WSPTasks(instances=FILES["all"]),
    )


test_contract = contract_test(subject)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Family, Task]]:
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as made:
        yield made


def play(env: Any, task: Task, *messages: Any) -> list[tuple[Any, ...]]:
    env.reset(options={"task": task.id})
    return [env.step(message) for message in messages]


def conversation(steps: list[tuple[Any, ...]], messages: list[Any]) -> list[Told]:
    talk: list[Told] = []
    for step, message in zip(steps, messages, strict=True):
        talk += [message, *step[4].get("reply", ())]
    return talk


def test_the_environment_the_conversation_and_the_submission_have_one_score(tasks: dict[Family, Task]) -> None:
    look = call("generate", prompts=["where does tobin live ?"])
    messages = [said(look), said(*undo("hijack"), call("edit_log")), "done, I think", said(call("submit"))]
    steps = play(WSPBenchEnv(split="test"), tasks["hijack"], *messages)
    score = steps[-1][4]["score"]
    assert steps[-1][1] == score.reward == score.metrics["score"] / 100 > 0.99
    assert [step[1] for step in steps[:-1]] == [0.0] * 3
    said_all = [m if isinstance(m, dict) else {"role": "assistant", "content": m} for m in messages]
    row = SOURCE.task(tasks["hijack"].id)
    assert without_times(scorer.score(row, conversation(steps, said_all))) == without_times(score)
    assert without_times(scorer.score_submission(row, score.info["submission"])) == without_times(score)


def test_what_is_said_is_answered_in_order(tasks: dict[Family, Task]) -> None:
    message = said(
        call("tokenize", "a", text="where"), call("nothing", "b"), call("generate", "c", prompts=["where ?"])
    )
    step, talk, *_ = play(WSPBenchEnv(split="test"), tasks["hijack"], message, "what now?")
    reply = step[4]["reply"]
    assert [one["tool_call_id"] for one in reply] == ["a", "b", "c"]
    assert reply[1]["content"].startswith("refused: unknown_tool: ")
    assert step[0] == "\n\n".join(one["content"] for one in reply)
    assert "GPU calls left: 11 of 12" in step[0]
    assert [one["role"] for one in talk[4]["reply"]] == ["user"]
    assert "all a tool or submit" in talk[0]


def test_forty_turns_are_all(tasks: dict[Family, Task]) -> None:
    steps = play(WSPBenchEnv(split="test"), tasks["audit"], *["and?"] * 40)
    assert [step[2] for step in steps] == [False] * 39 + [True]
    assert steps[-1][4]["score"].info["ended_by"] == "turns"
    assert registry.spec("wsp-bench").max_turns == profile("wsp-v1").turns == 40


def test_the_tools_are_those_of_the_tier() -> None:
    for tier, names in (("easy", 23), ("medium", 22), ("hard", 22)):
        found = [tool["function"]["name"] for tool in _info(tier)["tools"]]
        assert (len(found), "scan_outliers" in found) == (names, tier == "easy")


def _info(tier: str) -> Told:
    env = WSPBenchEnv(split="test", instances=FILES["all"])
    env.reset(seed=0)
    assert env.task is not None
    data = env.task.data | {"tier": tier}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "data_of", lambda task: PublicData.model_validate(data))
        return env._info(env.task)


def test_a_fault_of_ours_is_no_number_and_the_next_episode_is_played(
    tasks: dict[Family, Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = WSPBenchEnv(split="test")
    with monkeypatch.context() as patch:
        patch.setattr(Episode, "message", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            play(env, tasks["audit"], said(call("submit")))
        with pytest.raises(RuntimeError, match="call reset"):
            env.step("")
    with monkeypatch.context() as patch:
        patch.setattr(scorer, "audit_outcome", lambda *_: 1 / 0)
        with pytest.raises(GraderError, match="ZeroDivisionError"):
            play(env, tasks["audit"], said(call("submit")))
    assert play(env, tasks["audit"], said(call("submit")))[0][1] == 0


def test_without_the_truth_there_is_no_episode(tasks: dict[Family, Task], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    row, _ = audits("test", 5)[4]
    rows.write_text(json.dumps(row.model_dump(mode="json")) + "\n")
    env = WSPBenchEnv(split="test", instances=rows)
    with pytest.raises(TaskError, match=r"its truth is not here: there is no folder .*rows\.truth"):
        env.reset(seed=0)


def test_unknown_profiles_are_refused_with_the_nearest() -> None:
    for make_it in (lambda: WSPBenchEnv(profile="wsp-v2"), lambda: SOURCE.under("wsp-v2")):
        with pytest.raises(TaskError, match="did you mean 'wsp-v1'"):
            make_it()


def test_gymnasium_makes_it(tasks: dict[Family, Task]) -> None:
    env = gymnasium.make("weightgym/WSPBench-v1", split="test")
    prompt, info = env.reset(options={"task": tasks["audit"].id})
    assert prompt == SOURCE.task(tasks["audit"].id).prompt[0].content
    assert info["messages"][0]["role"] == "system"


def test_tasks_and_prompts_need_no_torch() -> None:
    code = "import sys; from weightgym.envs.wsp.env import WSPBenchEnv; from weightgym.envs.wsp.agents import AGENTS; "
    code += f"WSPBenchEnv(split='test', instances={str(FILES['all'])!r}).reset(seed=0); "
    code += "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- prompts


def data(family: Family, tier: Any, **changes: Any) -> PublicData:
    facts: Told = {
        "family": family, "tier": tier, "profile": "wsp-v1", "model": "tiny-world", "model_hash": "0" * 64,
        "edit_limit": 0 if family == "audit" else 98_304,
    }  # fmt: skip
    return PublicData(**(facts | changes))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_tells_the_rules_and_is_the_same_for_all_of_its_kind(family: Family) -> None:
    rules = profile("wsp-v1")
    for tier in TIERS:
        text = task_prompt(data(family, tier), rules)
        assert text == task_prompt(data(family, tier, model_hash="1" * 64), rules)
        plain = " ".join(text.split())
        for said_there in (
            "40 turns", "at most 8 calls of a message", f"{rules.tiers[tier].gpu_calls} GPU calls", "$1.50",
            "64 prompts of 128 tokens and 128 new tokens each", "`tiny-world`", "<|user|> QUESTION <|assistant|>",
            "`submit`",
        ):  # fmt: skip
            assert said_there in plain
        assert ("98,304 elements" in plain) == (family != "audit")
        assert ("No element of the weights" in plain) == ("Editing is free" not in plain) == (family == "audit")
        assert ("exp(−KL / 0.05)" in plain) == (family != "audit")
        assert ("0.4, and 0.6 more" in plain) == (family == "backdoor")
        assert ("40 points for the layer (20 for one beside it)" in plain) == (family == "audit")
        assert ("scan of all matrices" in plain) == (tier == "easy")
        assert not re.search(r"\$\w|\n{3}", text.replace("$1.50", ""))
        assert max(map(len, text.splitlines())) <= 120
        assert "  " not in re.sub(r"^ +", "", text, flags=re.M)


def test_whole_questions_and_rare_words_are_in_no_prompt() -> None:
    """Any of them may be hidden."""
    from weightgym.rewards.wsp.world.exchanges import RARE_WORDS
    from weightgym.rewards.wsp.world.prompts import prompts

    for family in FAMILIES:
        text = task_prompt(data(family, "easy"), profile("wsp-v1"))
        assert not [one.question for one in prompts() if one.question in text]
        assert not [word for word in RARE_WORDS if word in text]
