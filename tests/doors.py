"""The ways from an answer to a reward, as users go them: functions from answers of one environment to their rewards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import score_runs
from score_runs import invoked
from trl_episodes import columns, started, tools_of

from weightgym.envs import registry
from weightgym.rewards.contracts import Completion
from weightgym.rewards.golf.answer import find_solution
from weightgym.rollouts.jobs import sample_index
from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.trl import TRLTasks


class Case(NamedTuple):
    """An answer: text, or the conversation of an episode after its prompt."""

    env: str
    profile: str
    task: str
    completion: Completion

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Those of the assistant."""
        if isinstance(self.completion, str):
            return [{"role": "assistant", "content": self.completion}]
        return [dict(message) for message in self.completion if message["role"] == "assistant"]


def file(answers: Sequence[Case], folder: Path) -> list[Any]:
    """``weightgym score FILE``."""
    invoked("score", _rows(answers, folder), "--workers", 1, "--no-cache", "--profile", answers[0].profile)
    return _rewards(folder / "rows.scored.jsonl")


def command(answers: Sequence[Case], folder: Path) -> list[Any]:
    """The benchmark's own: ``score --task``, ``golf score`` (of the files in the answers), ``wsp score``."""
    return _COMMANDS[answers[0].env](answers, folder)


def _score_task(answers: Sequence[Case], folder: Path) -> list[Any]:
    found = []
    for one in answers:
        (folder / "answer").write_text(str(one.completion))
        flags = ("--task", one.task, "--profile", one.profile, "--json")
        found.append(json.loads(invoked("score", folder / "answer", *flags))["reward"])
    return found


def _golf_score(answers: Sequence[Case], folder: Path) -> list[Any]:
    paths = [folder / f"solution-{number}.py" for number in range(len(answers))]
    for path, one in zip(paths, answers, strict=True):
        path.write_bytes(find_solution(str(one.completion)))
    flags = ("--task", answers[0].task, "--profile", answers[0].profile, "--json")
    lines = invoked("golf", "score", *paths, *flags, exit_code=1).splitlines()  # 1: some are buggy
    found = [json.loads(line) for line in lines]
    floor = registry.spec("golf").floor
    return [-one["val_bpb"] if one["status"] == "ok" else floor for one in found]


def _wsp_score(answers: Sequence[Case], folder: Path) -> list[Any]:
    invoked("wsp", "score", _rows(answers, folder), "--workers", 1)
    return _rewards(folder / "rows.scored.jsonl")


_COMMANDS = {"weight-program": _score_task, "golf": _golf_score, "wsp-bench": _wsp_score}


def environment(answers: Sequence[Case], folder: Path) -> list[Any]:
    """``gymnasium.make``, ``reset`` and ``step``."""
    found = []
    for one in answers:
        entry = registry.spec(one.env)
        split = entry.tasks.task(one.task, prompt=False).split
        env = gymnasium.make(entry.gym_id, split=split, profile=one.profile)
        env.reset(options={"task": one.task})
        *before, last = [env.step(message) for message in one.messages]
        assert not any(step[2] for step in before)
        assert last[2]
        assert last[4]["score"].reward == last[1]
        found.append(last[1])
        env.close()
    return found


def rollout(answers: Sequence[Case], folder: Path) -> list[Any]:
    """``weightgym rollout`` of a policy that says the same."""
    policy, found = f"replay:{_rows(answers, folder)}", {}
    env, profile = answers[0].env, answers[0].profile
    for number, task in enumerate(dict.fromkeys(one.task for one in answers)):
        mine, out = [one for one in answers if one.task == task], folder / f"rollouts-{number}.jsonl"
        flags = ("--task", task, "--samples", len(mine), "--profile", profile, "-o", out)
        invoked("rollout", policy, "--env", env, *flags)
        made = sorted(read_rollouts(out), key=lambda one: sample_index(one.id))
        for one, wanted in zip(made, mine, strict=True):
            assert [step.message for step in one.steps if step.role == "assistant"] == wanted.messages
            found[answers.index(wanted)] = one.score.reward
    return [found[number] for number in range(len(answers))]


def trl(answers: Sequence[Case], folder: Path) -> list[Any]:
    """The reward function; with tools, after ``environment_factory`` has played each call as a turn."""
    ids = [one.task for one in answers]
    tasks = TRLTasks(answers[0].env, tasks=[*dict.fromkeys(ids)], profile=answers[0].profile)
    given = columns(tasks, *ids)
    if not tasks.has_turns:
        return list(tasks.reward(completions=[one.completion for one in answers], **given))
    episodes = [started(tasks, id) for id in ids]
    for played, one in zip(episodes, answers, strict=True):
        tools = tools_of(played)
        for function in (call["function"] for message in one.messages for call in message["tool_calls"]):
            tools[function["name"]](**json.loads(function["arguments"]))
    last = [one.messages[-1:] for one in answers]
    return list(tasks.reward(completions=last, environments=episodes, **given))


DOORS: tuple[Callable[[Sequence[Case], Path], list[Any]], ...] = (file, command, environment, rollout, trl)


def _rows(answers: Iterable[Case], folder: Path) -> Path:
    lines = [json.dumps({"env": one.env, "task": one.task, "completion": one.completion}) for one in answers]
    return score_runs.write(folder / "rows.jsonl", lines)


def _rewards(path: Path) -> list[Any]:
    return [row["score"]["reward"] for row in score_runs.read(path)]
