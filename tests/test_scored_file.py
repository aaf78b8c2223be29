"""Reading files of scored answers: bad lines, numbers that are none, and files too large for memory."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_folders import rollout
from scored_rows import ATTACK, row, write

from weightgym.rollouts.store import StoreError, line
from weightgym.trainers.reservoir import Mean, Reservoir
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.scored_file import ScoredAnswer, ScoredFile, read_record, shown_message

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
FIELDS = ["env", "task", "completion", "score", "steps", "id", "group", "policy_version", "step", "policy"]
SCORE_FIELDS = ["status", "reward", "reason", "metrics", "info", "profile", "task_sha256"]


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.dictionaries(st.sampled_from(SCORE_FIELDS), JSON))
def test_any_json_is_a_record_or_one_line_of_refusal(fields: dict[str, Any], score: dict[str, Any]) -> None:
    """What is read can be counted, too, whatever forms its fields have."""
    for made in (fields, row() | fields, row() | {"score": row()["score"] | score}):
        record = refused = None
        try:
            record = read_record(json.dumps(made).encode(), 1, 0)
        except ValueError as error:
            refused = str(error)
        if record is None:
            assert refused
            assert "\n" not in refused
        else:
            assert RolloutSummary().add_all([record]).count == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "not JSON"),
        ("[1]", "want a JSON object, not list"),
        ("[" * 100_000, "nested too deeply"),
        ('{"env": "digits", "task": "one", "completion": "1"}', "score: the row has none; `weightgym score FILE`"),
        (json.dumps(row() | {"env": 1}), "'env' must be text, not a number"),
        (json.dumps(row() | {"task": None}), "'task' must be text, not null"),
        (json.dumps(row(reward=float("nan"))), "a score with status 'ok' needs a finite reward"),
        (json.dumps(row(reward=float("inf"))), "a score with status 'ok' needs a finite reward"),
        (json.dumps(row(status="fine")), "status: Input should be"),
        (json.dumps(row(completion=7)), "'completion' must be text or a list of messages, not a number"),
        (json.dumps(row(completion=["x"])), "'completion' is a list, whose items must be messages (objects), not text"),
        (json.dumps({"steps": [], "score": row()["score"]}), "id: Field required"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_record(text.encode(), 1, 0)


def test_half_lines_bad_lines_and_good_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [row(), "{", "", row(task="two"), '"x"'], end=json.dumps(row())[:-3])
    file = ScoredFile(path)
    for _ in range(2):  # counted anew each time
        assert [(one.line, one.id, one.task) for one in file] == [(1, ":1", "one"), (4, ":4", "two")]
        assert (file.bad, file.half, len(file.told)) == (2, True, 2)
        assert file.told[1] == "line 5: want a JSON object, not str"
    with pytest.raises(StoreError, match=r"a\.jsonl:2 is no trajectory: not JSON"):
        list(ScoredFile(path, strict=True))


def test_rollouts_and_rows_may_be_mixed_and_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    made = [line(rollout("a", version=3)).decode().strip(), json.dumps(row("ä\u2028", id=17, step=4, group=5))]
    file = ScoredFile(write(path, made))
    first, second = file
    assert (first.id, first.version, first.group, first.prompt, first.sampled) == ("a", 3, "digits/one@3", 1, 4)
    assert (second.id, second.version, second.group, second.prompt, second.length) == ("17", 4, "5", None, 2)
    assert file.at(second.offset, 2) == second
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StoreError, match="changed while it was read"):
        file.at(second.offset, 2)


def test_numbers_that_are_none_leave_the_reward_alone() -> None:
    metrics = {"good": 1, "nan": float("nan"), "inf": float("-inf"), "text": "1", "huge": 10**400, "none": None}
    record = read_record(json.dumps(row(metrics=metrics)).encode(), 1, 0)
    assert record.score.metrics == {"good": 1.0}
    assert record.broken == ("nan", "inf", "text", "huge", "none")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"content": "a"}, "a"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, '{\n "id": "1"\n}'),
        ({"content": 7}, "7"),
        ({}, ""),
        ({"tool_calls": "x"}, '"x"'),
        ({"content": ["a", 1]}, '[\n "a",\n 1\n]'),
    ],
)
def test_messages_of_any_form_are_shown(message: dict[str, Any], shown: str) -> None:
    assert shown_message(message) == shown


def records(count: int) -> Iterator[ScoredAnswer]:
    """Each with a task, a group, a reason and a metric of its own: nothing repeats that memory could be saved with."""
    for index in range(count):
        bad: dict[str, Any] = {"status": "invalid", "reason": f"code{index}: {ATTACK}"} if index % 3 == 0 else {}
        metrics = {f"m{index}": 1.0, f"n{index}": float("nan")}
        made = row(f"{index}" * 20, task=f"t{index}", group=index // 2, step=index, metrics=metrics, profile="p", **bad)
        made["env"] = f"e{index % 100}"
        yield read_record(json.dumps(made).encode(), index + 1, index)


@pytest.mark.slow
def test_memory_is_bounded_however_large_the_file() -> None:
    """The last fifth of 100,000 rows costs hardly anything: what can be kept is kept by then."""
    summary = RolloutSummary()
    tracemalloc.start()
    try:
        made = records(100_000)
        for _ in range(80_000):
            summary.add(next(made))
        before, _ = tracemalloc.get_traced_memory()
        for one in made:
            summary.add(one)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert summary.count == 100_000
    assert peak < 120 << 20
    assert after - before < 12 << 20  # hashes of answers and ids; those stop at 100,000


def test_order_changes_nothing() -> None:
    made = [
        ScoredAnswer.of(
            rollout(f"r{i}", version=i % 200, reward=i % 11 / 11, task=f"t{i % 3}", text="1" * (i % 17 + 1))
        )
        for i in range(3000)
    ]
    shuffled = list(made)
    random.Random(0).shuffle(shuffled)
    one, other = RolloutSummary().add_all(made), RolloutSummary().add_all(shuffled)
    (left,), (right,) = one.parts.values(), other.parts.values()
    assert left.rewards.values == right.rewards.values
    assert left.correlation == right.correlation
    assert [part.rewards for part in left.timeline.parts] == [part.rewards for part in right.timeline.parts]
    assert left.timeline.width == right.timeline.width == 8  # 200 versions in at most 40 stretches
    assert {kind: group.name for kind, group in one.groups.shown.items()} == {
        kind: group.name for kind, group in other.groups.shown.items()
    }
    assert one.duplicates.distinct == other.duplicates.distinct


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_means_never_overflow(values: list[float]) -> None:
    mean = Mean()
    for value in values:
        mean.add(value)
    assert min(values) - abs(min(values)) * 1e-9 <= mean.value <= max(values) + abs(max(values)) * 1e-9


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**6), unique=True, max_size=80), st.integers(1, 10), st.integers(0, 80))
def test_reservoirs_merge_as_if_all_had_come_to_one(keys: list[int], size: int, cut: int) -> None:
    left, right, whole = Reservoir[int](size), Reservoir[int](size), Reservoir[int](size)
    for place, key in enumerate(keys):
        (left if place < cut else right).add(key, key)
        whole.add(key, key)
    left.merge(right)
    assert left.values == whole.values == sorted(keys)[:size]
    assert left.count == whole.count == len(keys)
