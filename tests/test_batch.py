"""Batch scoring under attack: scorers that spin, crash, leave or lie, workers killed at random, early exits."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from toy_scorers import ENDS, PROFILE, SCORER, SOURCE

from weightgym.rewards.batch import ScoreItem, score_batch
from weightgym.rewards.contracts import GraderError, Score

TASK = SOURCE.task("easy/one")


def items(answers: Sequence[Any]) -> list[ScoreItem]:
    return [ScoreItem(index, TASK, answer) for index, answer in enumerate(answers)]


def scores(answers: Sequence[Any], **options: Any) -> list[Score]:
    """The scores in the order of the answers."""
    defaults: dict[str, Any] = {"scorer": SCORER, "profile": PROFILE, "workers": 2}
    found = list(score_batch(items(answers), **defaults | options))
    assert sorted(key for key, _ in found) == list(range(len(answers)))
    by_key = dict(found)
    return [by_key[index] for index in range(len(answers))]


def worker_pids() -> set[int]:
    return {child.pid for child in multiprocessing.active_children() if child.pid is not None}


def test_order_and_workers_never_change_a_score() -> None:
    answers = [f"answer {index}" for index in range(12)] + ["", "raise", "return none"]
    shuffled = random.Random(1).sample(items(answers), k=len(answers))
    runs = [
        dict(score_batch(batch, scorer=SCORER, profile=PROFILE, workers=workers))
        for batch, workers in ((items(answers), 1), (shuffled, 3))
    ]
    for key in range(len(answers)):
        one, two = (run[key].model_dump(exclude={"seconds"}) for run in runs)
        assert one == two
    assert len({run.reward for run in runs[0].values()}) > 5


def test_eight_that_spin_on_eight_workers_take_one_limit() -> None:
    started = time.monotonic()
    found = scores(["spin"] * 8, workers=8, item_timeout=1.0)
    assert time.monotonic() - started < 4  # 1.6 s on idle cores
    assert [(score.status, score.reward, score.code) for score in found] == [("timeout", None, "item_timeout")] * 8
    assert all(score.info == {"limit_s": 1.0} and 1 <= score.seconds < 4 for score in found)


def test_eight_that_spin_on_two_workers_take_four_limits() -> None:
    started = time.monotonic()
    found = scores(["spin", "hang"] * 4, workers=2, item_timeout=0.5)
    assert time.monotonic() - started < 6
    assert {score.status for score in found} == {"timeout"}


@pytest.mark.parametrize("end", [name for name in ENDS if name not in ("spin", "hang")])
def test_a_worker_that_dies_costs_its_item_alone(end: str) -> None:
    started = time.monotonic()
    found = scores(["a", end, "b", end, "c"])
    assert time.monotonic() - started < 5
    assert [score.status for score in found] == ["ok", "error", "ok", "error", "ok"]
    assert {found[1].code, found[3].code} == {"worker_died"}


def test_death_is_noticed_while_others_keep_the_batch_busy() -> None:
    slow = ["exit 0"] + ["sleep 0.05"] * 60
    for position, (key, score) in enumerate(score_batch(items(slow), scorer=SCORER, profile=PROFILE, workers=2)):
        if key == 0:
            assert score.status == "error"
            assert position < 59
            return
    raise AssertionError("no score for the item that died")


FAULTS = {
    "raise": "ValueError: broken in two lines",
    "raise unprintable": "grader_error",
    "raise unpicklable": "Unpicklable: odd",
    "raise exit": "SystemExit",
    "raise interrupt": "KeyboardInterrupt",
    "raise timeout": "TimeoutError",
    "recurse": "RecursionError",
    "return none": "returned NoneType, not a Score",
    "return number": "returned float, not a Score",
    "return dict": "returned dict, not a Score",
    "return nan": "grader_error",
    "return nan info": "grader_error",
    "return error with reward": "carries no reward",
    "return other profile": "profile 'other-v1', asked for 'toy-v1'",
    "task error": "task_error: bad task data",
}


def test_a_scorer_s_fault_is_an_error_and_no_reward() -> None:
    for text, score in zip(FAULTS, scores(list(FAULTS), item_timeout=20), strict=True):
        assert (score.status, score.reward, score.profile) == ("error", None, PROFILE), text
        assert FAULTS[text] in score.reason, text
    assert "in score\n" in str(scores(["raise"])[0].info["traceback"])


def test_a_score_without_a_profile_gets_the_one_that_was_asked_for() -> None:
    assert scores(["return no profile"], profile="toy-v2")[0].profile == "toy-v2"


def test_odd_answers_arrive_or_fail_alone() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    message = {"role": "assistant", "content": "hi"}
    found = scores(["\ud800\0", lambda: 0, [message | {"extra": deep}], [message], "x" * 3_000_000, "y"])
    assert [score.status for score in found] == ["ok", "error", "error", "ok", "ok", "ok"]
    del message, found
    while deep:  # not freed recursively
        deep = deep.pop()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"workers": 0}, "workers must be 1 or more, not 0"),
        ({"item_timeout": 0.0}, "item_timeout must be more than 0"),
        ({"item_timeout": float("nan")}, "item_timeout must be more than 0"),
        ({"batch_timeout": -1.0}, "batch_timeout must be more than 0"),
        ({"scorer": {"other": SCORER}}, "no scorer or no profile for environment 'toy'"),
        ({"profile": {"other": PROFILE}}, "no scorer or no profile for environment 'toy'"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        scores(["a"], **options)


@pytest.mark.parametrize(
    "scorer", ["nowhere_at_all:score", "toy_scorers:nothing", "toy_scorers", "toy_scorers:PROFILE"]
)
def test_a_scorer_that_is_not_there_fails_before_anything_runs(scorer: str) -> None:
    with pytest.raises(GraderError, match="scorer"):
        score_batch(items(["a"]), scorer=scorer, profile=PROFILE)


def test_duplicate_keys_raise() -> None:
    twice = [ScoreItem("k", TASK, "a"), ScoreItem("k", TASK, "b")]
    with pytest.raises(ValueError, match="two items have the key 'k'"):
        list(score_batch(twice, scorer=SCORER, profile=PROFILE))


def test_no_items_no_scores() -> None:
    assert list(score_batch([], scorer=SCORER, profile=PROFILE)) == []


def test_each_environment_has_its_own_scorer_and_profile() -> None:
    found = scores(["a"], scorer={"toy": SCORER, "absent": SCORER}, profile={"toy": "toy-v2"})
    assert found[0].profile == "toy-v2"


def test_the_batch_deadline_leaves_nobody_without_a_score() -> None:
    started = time.monotonic()
    found = scores(["a", "spin", "spin"] + ["b"] * 50, batch_timeout=1.0)
    assert time.monotonic() - started < 4
    assert [score.status for score in found] == ["ok"] + ["timeout"] * 52
    assert {score.code for score in found[1:]} == {"batch_timeout"}


def test_a_long_stream_is_read_only_as_workers_get_free() -> None:
    pulled = 0

    def stream() -> Iterator[ScoreItem]:
        nonlocal pulled
        for item in items(["x"] * 1500):
            pulled += 1
            yield item

    for yielded, _ in enumerate(score_batch(stream(), scorer=SCORER, profile=PROFILE, workers=3), start=1):
        assert pulled - yielded <= 3
    assert pulled == 1500


def test_deadlines_work_off_the_main_thread() -> None:
    found: list[Score] = []
    thread = threading.Thread(target=lambda: found.extend(scores(["spin", "a"], item_timeout=0.5)))
    thread.start()
    thread.join(20)
    assert [score.status for score in found] == ["timeout", "ok"]


def test_leaving_early_stops_the_workers(tmp_path: Path) -> None:
    before = worker_pids()
    results = score_batch(items(["a", f"pid {tmp_path}", f"pid {tmp_path}"]), scorer=SCORER, profile=PROFILE, workers=2)
    assert next(results)[0] == 0
    assert worker_pids() - before
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 5
    assert worker_pids() == before


def test_items_that_raise_stop_the_workers() -> None:
    def stream() -> Iterator[ScoreItem]:
        yield ScoreItem(0, TASK, "spin")
        raise OSError("the disk is gone")

    before = worker_pids()
    with pytest.raises(OSError, match="the disk is gone"):
        list(score_batch(stream(), scorer=SCORER, profile=PROFILE, workers=2))
    assert worker_pids() == before


def test_stopping_ends_answers_that_are_at_work() -> None:
    before, stop = worker_pids(), threading.Event()
    threading.Timer(0.7, stop.set).start()
    started = time.monotonic()
    with pytest.raises(GraderError, match="was stopped"):
        list(score_batch(items(["spin", "hang", "a"]), scorer=SCORER, profile=PROFILE, workers=2, stop=stop))
    assert time.monotonic() - started < 6
    assert worker_pids() == before


def test_workers_killed_at_random_lose_only_what_they_had() -> None:
    before = worker_pids()
    running, over = threading.Event(), threading.Event()

    def storm() -> None:
        dice = random.Random(7)
        running.wait()  # a worker that is killed before it ever ran looks like one that can't start
        while not over.wait(0.2 * dice.random()):
            for pid in dice.sample(sorted(worker_pids() - before), k=min(1, len(worker_pids() - before))):
                os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        last = time.monotonic()
        found = {}
        for key, score in score_batch(items(["sleep 0.01"] * 200), scorer=SCORER, profile=PROFILE, workers=3):
            assert time.monotonic() - last < 5
            last = time.monotonic()
            found[key] = score
            if len(found) == 20:
                running.set()
    finally:
        over.set()
        running.set()
        thread.join()
    assert len(found) == 200
    assert {score.status for score in found.values()} <= {"ok", "error"}
    assert sum(score.status == "ok" for score in found.values()) > 100


def test_workers_see_the_environment_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("one", "two"):
        monkeypatch.setenv("TOY_VALUE", value)
        assert scores(["environment"])[0].info == {"value": value}
