"""Rollouts without a model: trajectories, their store, the run that makes them, the command."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import toy_scorers
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.envs.weight_program.references import reference_answer
from weightgym.rewards.batch import PENDING, ScoreItem, score_batch
from weightgym.rewards.contracts import BackendError, Score
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.run import Job, jobs, run
from weightgym.rollouts.scripted import SCRIPTS, ScriptedBackend, garbage
from weightgym.rollouts.store import Store, StoreError, line, read
from weightgym.rollouts.trajectory import Step, Trajectory

WPB = registry.spec("weight-program")
PROFILE = "wpb-v1-e4"
GAMES = ("builtin/deep_drill", "builtin/wall_rally", "builtin/lane_gunner")


def gold(request: Request) -> str:
    return reference_answer(request.task.id.split("/")[1])


def planned(samples: int = 2, seed: int = 0) -> list[Job]:
    return jobs([WPB.tasks.task(id) for id in GAMES], samples, seed)


def content(trajectory: Trajectory) -> dict[str, Any]:
    """All that must not depend on how it was run."""
    return trajectory.model_dump(exclude={"seconds": True, "score": {"seconds"}})


def made(backend: Any, todo: Sequence[Job], **options: Any) -> dict[str, Trajectory]:
    results = list(run(todo, backend, WPB, sampling=Sampling(), profile=PROFILE, **options))
    assert len({one.id for one in results}) == len(results)
    return {one.id: one for one in results}


def test_every_job_gets_its_own_score() -> None:
    todo = planned()
    done = made(ScriptedBackend("gold", gold), todo, workers=2)
    assert list(done) != [] and done.keys() == {job.id for job in todo}  # noqa: PT018
    for job in todo:
        one = done[job.id]
        assert (one.task, one.group, one.seed, one.score.status) == (job.task.id, job.group, job.seed, "ok")
        direct = WPB.score(job.task, reference_answer(job.task.id.split("/")[1]), profile=PROFILE)
        assert one.score.reward == direct.reward
        assert one.completion == [{"role": "assistant", "content": gold(Request("", job.task, (), (), 0))}]
        assert [message.model_dump() for message in one.prompt] == job.task.messages


def test_neither_order_nor_workers_nor_batches_matter() -> None:
    todo = planned()
    backend = ScriptedBackend("garbage", garbage)
    wanted = {id: content(one) for id, one in made(backend, todo).items()}
    backend.batch_size = 1
    assert {id: content(one) for id, one in made(backend, todo[::-1], workers=3).items()} == wanted


def test_seeds_share_nothing() -> None:
    seeds = [job.seed for seed in range(5) for job in planned(samples=5, seed=seed)]
    assert len(set(seeds)) == len(seeds)
    assert [job.seed for job in planned(seed=3)] == [job.seed for job in planned(seed=3)]


class Odd:
    """A backend that misbehaves at its second batch."""

    name = "odd"
    tokenizer = None
    batch_size = 2
    lanes = 1
    context = None

    def __init__(self, how: str) -> None:
        self.how = how
        self.batches = 0
        self.release = threading.Event()

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        self.batches += 1
        samples = [Sample(request.id, "?", "stop") for request in requests]
        if self.batches < 2:
            return samples
        if self.how == "raise":
            raise RuntimeError("out of memory")
        if self.how == "hang":
            self.release.wait(20)
        return {"short": samples[:1], "swapped": samples[::-1]}.get(self.how, samples)

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.release.set()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("raise", "out of memory"),
        ("short", "2 requests gave 1 samples"),
        ("swapped", "others than were asked for"),
        ("hang", r"took more than 0\.5 s"),
    ],
)
def test_a_backend_that_fails_is_an_error_that_names_the_rollout(how: str, why: str) -> None:
    backend, todo = Odd(how), planned()
    results: list[Trajectory] = []
    started = time.monotonic()
    with pytest.raises(BackendError, match=f"batch of {todo[2].id}.*{why}|{why}.*batch of {todo[2].id}"):
        results.extend(run(todo, backend, WPB, sampling=Sampling(), profile=PROFILE, generate_timeout=0.5))
    assert time.monotonic() - started < 10
    backend.close()


def test_scores_come_while_generation_goes_on() -> None:
    backend = Odd("hang")
    results = run(planned(), backend, WPB, sampling=Sampling(), profile=PROFILE)
    first = [next(results), next(results)]
    assert backend.batches == 2
    assert not backend.release.is_set()
    backend.close()
    assert len(first + list(results)) == 6


def test_a_scorer_that_hangs_is_a_timeout_without_a_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    with registry.override(toy_scorers.SPEC):
        task = toy_scorers.SPEC.tasks.task("easy/one")
        backend = ScriptedBackend("slow", lambda request: "sleep 60" if request.id.endswith("#0") else "b")
        todo = jobs([task], 3, 0)
        profile = toy_scorers.SPEC.default_profile
        results = run(
            todo, backend, toy_scorers.SPEC, sampling=Sampling(), profile=profile, workers=2, score_timeout=1.0
        )
        statuses = {one.id: (one.score.status, one.score.reward is None) for one in results}
    assert statuses == {todo[0].id: ("timeout", True), todo[1].id: ("ok", False), todo[2].id: ("ok", False)}


def test_pending_items_let_results_through() -> None:
    task = WPB.tasks.task(GAMES[0])
    seen: list[Any] = []

    def items() -> Any:
        yield ScoreItem("one", task, "?")
        while not seen:
            yield PENDING
        yield ScoreItem("two", task, "?")

    for key, _ in score_batch(items(), scorer=WPB.scorer, profile=PROFILE, workers=2):
        seen.append(key)
    assert seen == ["one", "two"]


# --- trajectories and their store


def a_trajectory(id: str = "a", **changes: Any) -> Trajectory:
    steps = (
        Step(role="user", content="hé", token_ids=(1, 2), logprobs=(0.0, 0.0), mask=(False, False)),
        Step(role="assistant", content="x", token_ids=(3, 0), logprobs=(-0.1, -1 / 3), mask=(True, True)),
    )
    score = Score(status="ok", reward=0.1 + 0.2)
    fields: dict[str, Any] = {
        "id": id,
        "env": "weight-program",
        "task": "builtin/x",
        "task_sha256": "0" * 64,
        "group": "g",
        "seed": 1,
        "policy": "p",
        "steps": steps,
        "finish_reason": "stop",
        "score": score,
    }
    return Trajectory(**(fields | changes))


def test_the_sequence_is_the_steps_put_together() -> None:
    (one,) = a_trajectory().branches
    assert one.token_ids == (1, 2, 3, 0)
    assert one.mask == (False, False, True, True)
    assert one.logprobs == (0.0, 0.0, -0.1, -1 / 3)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValidationError, match="2 token_ids, 1 logprobs and 2 mask entries"):
        Step(role="assistant", content="x", token_ids=(1, 2), logprobs=(0.0,), mask=(True, True))


@given(st.text(), st.floats(allow_nan=False, max_value=0, min_value=-1e300))
def test_lines_keep_every_digit_and_character(text: str, logprob: float) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair: no model's tokenizer makes one
    step = Step(role="assistant", content=text, token_ids=(1,), logprobs=(logprob,), mask=(True,))
    one = a_trajectory(steps=(step,))
    written = line(one)
    assert written.count(b"\n") == 1
    assert Trajectory.model_validate_json(written) == one


def test_a_killed_store_goes_on_without_repeats(tmp_path: Path) -> None:
    path = tmp_path / "store.jsonl"
    ours = Score(status="error", reward=None, reason="grader_error: x")
    with Store(path, resume=False) as store:
        for id in ("a", "b", "c"):
            store.add(a_trajectory(id))
        store.add(a_trajectory("d", score=ours))
    with path.open("ab") as file:
        file.write(line(a_trajectory("e"))[:-20])  # killed while it wrote
    with Store(path, resume=True) as store:
        assert store.kept.keys() == {"a", "b", "c"}  # our own faults are tried again
        store.add(a_trajectory("d"))
        store.add(a_trajectory("e"))
    assert [one.id for one in read(path)] == ["a", "b", "c", "d", "e"]


def test_a_store_is_not_overwritten_nor_shared(tmp_path: Path) -> None:
    path = tmp_path / "store.jsonl"
    with Store(path, resume=False) as store, pytest.raises(StoreError, match="being written by another run"):
        Store(path, resume=True)
    del store
    with pytest.raises(StoreError, match="--resume goes on with it"):
        Store(path, resume=False)
    path.write_text('{"id": "a"}\n')
    with pytest.raises(StoreError, match=r"store\.jsonl:1 is no trajectory: env"):
        Store(path, resume=True)
    assert path.read_text() == '{"id": "a"}\n'


# --- the command


def rollout(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["rollout", *map(str, args)], prog_name="weightgym")


def test_the_command_makes_resumes_and_says_what_came_out(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = ("scripted:garbage", "--task", GAMES[0], "--task", GAMES[1], "--samples", "2", "--profile", PROFILE)
    done = rollout(*command, "-o", out)
    assert done.exit_code == 0, done.output
    assert "4 rollouts (0 kept): 4 invalid; mean reward 0.0000 of 4" in done.output
    whole = {one.id: content(one) for one in read(out)}
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:3]) + lines[3][:100])
    again = rollout(*command, "-o", out, "--resume")
    assert "4 rollouts (3 kept)" in again.output
    assert {one.id: content(one) for one in read(out)} == whole
    assert rollout(*command, "-o", out).exit_code == 1
    assert all(json.loads(row)["score"]["profile"] == PROFILE for row in out.read_text().splitlines())


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("scripted:garbage",), "either --task"),
        (("scripted:garbage", "--task", "x", "--split", "train"), "either --task"),
        (("scripted:garbag", "--task", GAMES[0]), "did you mean 'garbage'"),
        (("scripted:garbage", "--task", "builtin/wall_raly"), "did you mean 'builtin/wall_rally'"),
        (("./no-such-model", "--task", GAMES[0]), "can't load the tokenizer of './no-such-model'"),
    ],
)
def test_wrong_commands_are_told(tmp_path: Path, args: tuple[str, ...], why: str) -> None:
    done = rollout(*args, "-o", tmp_path / "r.jsonl")
    assert done.exit_code != 0
    assert why in done.output


@pytest.mark.parametrize(("name", "most"), [("empty", 0.0), ("echo", 0.15)])
def test_doing_nothing_and_echoing_the_prompt_earn_little(name: str, most: float) -> None:
    """The prompt holds an example block, which plays as badly as a constant action may."""
    todo = jobs([WPB.tasks.task(id) for id in WPB.tasks.ids("train")], 1, 0)
    for one in made(ScriptedBackend(name, SCRIPTS[name]), todo, workers=2).values():
        assert one.score.reward is not None
        assert one.score.reward <= most, one.task
