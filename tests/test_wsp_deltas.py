"""An episode's edits: exact counts, refusals that change nothing, and logs that make the same bits again."""

from __future__ import annotations

import copy
import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import wsp_models
from hypothesis import given, settings
from hypothesis import strategies as st
from wsp_models import DOWN, same_bits

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.deltas import Deltas, start_weights
from weightgym.rewards.wsp.edits import Edit, Floats, Put, RankOne, Scale, frozen, read_edits, write_edits
from weightgym.rewards.wsp.model import BaseModel, overlay
from weightgym.rewards.wsp.profile import profile
from weightgym.rewards.wsp.refusals import Refused

BASE = wsp_models.base()
SMALL = start_weights(
    {
        "matrix": np.arange(1, 13, dtype=np.float32).reshape(3, 4),
        "vector": np.array([1, -2, 0, -0.0], dtype=np.float32),
        "wide": np.linspace(-3, 3, 10, dtype=np.float32).reshape(2, 5),
    }
)


def small(limit: int = 1000, most_bytes: int = 1_000_000) -> Deltas:
    return Deltas(SMALL, limit=limit, most_bytes=most_bytes)


def rank_one(left: list[float], right: list[float], parameter: str = "matrix") -> RankOne:
    return RankOne(parameter=parameter, left=frozen(left), right=frozen(right))


def state(deltas: Deltas) -> Any:
    weights = {name: deltas.weight(name).tobytes() for name in deltas.start}
    return weights, deltas.changed, deltas.changed_by_parameter, deltas.log(), deltas.touched, deltas.nbytes


def slowly(weight: Floats, edit: Edit) -> Floats:
    """The edit one element after another, in Python, each operation rounded to float32."""
    made = weight.copy()
    for index in np.ndindex(weight.shape):
        old = made[index]
        if isinstance(edit, RankOne):
            made[index] = np.float32(old + np.float32(edit.left[index[0]] * edit.right[index[1]]))
        elif isinstance(edit, Scale):
            if index[0 if edit.axis == "rows" else 1] in edit.indices:
                made[index] = np.float32(old * np.float32(edit.factor)) if edit.factor else np.float32(0)
        else:
            ranges = [edit.rows] if edit.columns is None else [edit.rows, edit.columns]
            inside = [i - begin for i, (begin, end) in zip(index, ranges, strict=True) if begin <= i < end]
            if len(inside) == len(ranges):
                made[index] = edit.values[tuple(inside)] if edit.values.ndim else edit.values[()]
    return made


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_edits_mean_what_they_mean_one_element_at_a_time(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    deltas = small()
    slow = {name: weight.copy() for name, weight in SMALL.items()}
    for _ in range(count):
        edit = wsp_models.random_edit(SMALL, random)
        slow[edit.parameter] = slowly(slow[edit.parameter], edit)
        total = deltas.apply(edit)
        assert (
            total
            == deltas.changed
            == sum(bool(a != b) for name in SMALL for a, b in zip(slow[name].flat, SMALL[name].flat, strict=True))
        )
    for name, weight in slow.items():
        assert same_bits(deltas.weight(name), weight)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_replay_and_undo_give_the_same_bits(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    deltas = wsp_models.deltas(BASE)
    states = [state(deltas)]
    for _ in range(count):
        deltas.apply(wsp_models.random_edit(BASE.start, random))
        states.append(state(deltas))
    again = wsp_models.deltas(BASE)
    again.replay(json.loads(json.dumps(deltas.log())))
    assert state(again) == states[-1]
    for expected in reversed(states[:-1]):
        deltas.undo()
        assert state(deltas) == expected
    again.reset()
    assert state(again) == states[0]


def test_two_edits_that_cancel_count_as_none() -> None:
    deltas = small()
    assert deltas.apply(rank_one([1, 0, 2], [1, 0, 0, -1])) == 4
    assert deltas.apply(rank_one([-1, 0, 0], [1, 0, 0, -1])) == 2
    assert deltas.apply(rank_one([0, 0, -2], [1, 0, 0, -1])) == 0
    assert deltas.changed_by_parameter == {}
    assert deltas.touched == ("matrix",)
    assert same_bits(deltas.weight("matrix"), SMALL["matrix"])


def test_what_rounding_swallows_is_no_change() -> None:
    deltas = small()
    assert deltas.apply(rank_one([1e-9, 0, 0], [1, 1, 1, 1])) == 0
    assert deltas.apply(Scale(parameter="matrix", axis="rows", indices=(0, 1, 2), factor=1.0)) == 0
    assert deltas.apply(Put(parameter="matrix", rows=(0, 1), columns=(0, 1), values=frozen([[1.0]]))) == 0


def test_minus_zero_is_zero() -> None:
    deltas = small()
    assert deltas.apply(Put(parameter="vector", rows=(2, 4), columns=None, values=frozen([-0.0, 0.0]))) == 0
    assert deltas.apply(Scale(parameter="vector", axis="rows", indices=(2, 3), factor=-1.0)) == 0
    assert deltas.apply(Scale(parameter="vector", axis="rows", indices=(0, 1), factor=0.0)) == 2
    assert not np.signbit(deltas.weight("vector")[:2]).any()


def test_one_element_too_many_is_refused_at_the_call_that_would_do_it() -> None:
    deltas = small(limit=4)
    deltas.apply(rank_one([1, 0, 0], [1, 1, 1, 0]))
    before = state(deltas)
    with pytest.raises(Refused, match=r"edit_budget: 5 elements .* limit is 4, and 3 differ now"):
        deltas.apply(rank_one([1, 0], [1, 1, 0, 0, 0], "wide"))
    assert state(deltas) == before
    assert deltas.apply(rank_one([1, 0], [1, 0, 0, 0, 0], "wide")) == 4
    # at the limit, elements may move and come back
    assert deltas.apply(rank_one([7, 0], [1, 0, 0, 0, 0], "wide")) == 4
    assert deltas.apply(rank_one([-1, 0, 0], [1, 1, 0, 0])) == 2
    assert deltas.apply(rank_one([0, 1, 0], [1, 1, 0, 0])) == 4


def test_an_audit_may_change_nothing() -> None:
    deltas = small(limit=0)
    with pytest.raises(Refused, match="edit_budget: 1 elements"):
        deltas.apply(Put(parameter="vector", rows=(0, 1), columns=None, values=frozen(1.5)))
    assert deltas.changed == 0
    assert deltas.edits == ()


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (rank_one([1, 1], [1, 1, 1, 1]), "bad_shape"),
        (rank_one([1, 1, 1], [1, 1, 1]), "bad_shape"),
        (rank_one([1, 1, 1, 1], [1], "vector"), "bad_shape"),
        (rank_one([1], [1], "nowhere"), "unknown_parameter"),
        (rank_one([1], [1], "matrics"), "unknown_parameter: 'matrics': did you mean 'matrix'"),
        (rank_one([3e38, 0, 0], [3e38, 0, 0, 0]), "not_finite"),
        (Scale(parameter="matrix", axis="rows", indices=(2,), factor=3e38), "not_finite"),
        (Scale(parameter="matrix", axis="rows", indices=(3,), factor=1.0), "bad_index"),
        (Scale(parameter="matrix", axis="columns", indices=(0, 4), factor=1.0), "bad_index"),
        (Scale(parameter="matrix", axis="columns", indices=(), factor=1.0), "bad_index"),
        (Scale(parameter="vector", axis="columns", indices=(0,), factor=1.0), "bad_axis"),
        (Scale(parameter="matrix", axis="rows", indices=(2**70,), factor=1.0), "bad_index"),
        (Put(parameter="matrix", rows=(0, 4), columns=(0, 4), values=frozen(0)), "bad_slice"),
        (Put(parameter="matrix", rows=(1, 1), columns=(0, 4), values=frozen(0)), "bad_slice"),
        (Put(parameter="matrix", rows=(2, 1), columns=(0, 4), values=frozen(0)), "bad_slice"),
        (Put(parameter="matrix", rows=(0, 1), columns=None, values=frozen(0)), "bad_slice"),
        (Put(parameter="vector", rows=(0, 1), columns=(0, 1), values=frozen(0)), "bad_slice"),
    ],
)
def test_a_refused_edit_changes_nothing(edit: Edit, code: str) -> None:
    deltas = small()
    deltas.apply(rank_one([1, 0, 0], [1, 1, 1, 0]))
    before = state(deltas)
    with pytest.raises(Refused, match=f"^{code}"):
        deltas.apply(edit)
    assert state(deltas) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39, 10**400])
def test_an_edit_never_holds_what_is_not_finite(bad: Any) -> None:
    with pytest.raises(ValueError, match="finite"):
        frozen([1.0, bad])
    with pytest.raises(ValueError, match="finite"):
        Scale(parameter="matrix", axis="rows", indices=(0,), factor=bad)


def test_the_start_is_never_written_to() -> None:
    deltas = small()
    deltas.apply(rank_one([1, 1, 1], [1, 1, 1, 1]))
    for weight in (deltas.weight("matrix"), deltas.weight("vector"), SMALL["matrix"], deltas.edits[0].left):  # type: ignore[union-attr]
        with pytest.raises(ValueError, match="read-only"):
            weight[0] = 1
    assert (SMALL["matrix"] == np.arange(1, 13, dtype=np.float32).reshape(3, 4)).all()


def test_nothing_is_undone_twice_and_a_reset_is_for_good() -> None:
    deltas = small()
    edit = rank_one([1, 1, 1], [1, 1, 1, 1])
    deltas.apply(edit)
    assert deltas.undo() is edit
    with pytest.raises(Refused, match="nothing_to_undo"):
        deltas.undo()
    deltas.apply(edit)
    assert (deltas.reset(), deltas.reset(), deltas.changed) == (1, 0, 0)
    with pytest.raises(Refused, match="nothing_to_undo"):
        deltas.undo()


def test_an_episode_stays_small() -> None:
    deltas = small(most_bytes=20_000)
    edit = rank_one([1e-3] * 3, [1e-3] * 4)
    room = 20_000 // edit.nbytes
    for _ in range(room):
        deltas.apply(edit)
    with pytest.raises(Refused, match="edit_log_full"):
        deltas.apply(edit)
    assert 0 < deltas.nbytes <= 20_000
    assert len(json.dumps(deltas.log())) <= 20_000
    deltas.undo()
    deltas.apply(edit)


def test_an_episode_of_the_longest_log_takes_under_5_mb() -> None:
    start = start_weights({"wide": np.ones((200, 512), np.float32)})
    random = np.random.default_rng(0)
    most = profile("wsp-v1").edit_bytes
    deltas = Deltas(start, limit=1 << 40, most_bytes=most)
    edits: list[Callable[[], Edit]] = [
        lambda: RankOne(parameter="wide", left=frozen(random.random(200)), right=frozen(random.random(512) * 1e-6)),
        lambda: Put(parameter="wide", rows=(0, 200), columns=(0, 200), values=frozen(random.random((200, 200)))),
        lambda: Scale(parameter="wide", axis="columns", indices=tuple(range(100, 512)), factor=1.5),
    ]
    tracemalloc.start()
    try:
        while deltas.nbytes < 0.95 * most:
            deltas.apply(edits[len(deltas.edits) % 3]())
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 5_000_000
    finally:
        tracemalloc.stop()


def bad_log(**change: Any) -> Any:
    [good] = write_edits([rank_one([1, 2, 3], [1, 2, 3, 4])])
    assert isinstance(good, dict)
    return [good | change]


@pytest.mark.parametrize(
    "log",
    [
        None,
        {},
        "edits",
        [1],
        [{}],
        bad_log(kind="rank_two"),
        bad_log(more=1),
        bad_log(parameter=3),
        bad_log(left=[1.0, 2.0, 3.0]),
        bad_log(left={"f32": "AAAA", "shape": [3]}),
        bad_log(left={"f32": "AACAfw==", "shape": [1]}),  # infinity
        bad_log(left={"f32": "AADAfw==", "shape": [1]}),  # NaN
        bad_log(left={"f32": "AAAAAA==", "shape": [-1]}),
        bad_log(left={"f32": "AAAAAA==", "shape": [True]}),
        bad_log(left={"f32": "AAAAAA==", "shape": 1}),
        bad_log(left={"f32": 7, "shape": [1]}),
        bad_log(left={"tensor": "left"}),
        bad_log(left={"tensor": ["left"]}),
        bad_log(note="x" * 501),
        [{"kind": "scale", "parameter": "matrix", "axis": "rows", "indices": [0], "factor": "2"}],
        [{"kind": "scale", "parameter": "matrix", "axis": "rows", "indices": [0], "factor": True}],
        [{"kind": "scale", "parameter": "matrix", "axis": "rows", "indices": [0], "factor": 10**400}],
        [{"kind": "scale", "parameter": "matrix", "axis": "rows", "indices": [-1], "factor": 1.0}],
        [{"kind": "scale", "parameter": "matrix", "axis": "rows", "indices": [0.0], "factor": 1.0}],
        [{"kind": "scale", "parameter": "matrix", "axis": "diagonal", "indices": [0], "factor": 1.0}],
        [
            {"kind": "put", "parameter": "matrix", "rows": [0, 2], "columns": [0, 2]}
            | {"values": {"f32": "AACAPwAAAEA=", "shape": [2]}}  # no block, though it would broadcast
        ],
        [*bad_log(), *bad_log(parameter="vector")],  # the second doesn't fit: the first is not kept
    ],
)
def test_a_bad_log_is_refused_and_nothing_of_it_is_kept(log: Any) -> None:
    deltas = small()
    deltas.apply(rank_one([1, 0, 0], [1, 1, 1, 0]))
    before = state(deltas)
    with pytest.raises(Refused):
        deltas.replay(log)
    assert state(deltas) == before


def test_a_log_survives_its_values() -> None:
    values = [1e-45, -0.0, 3.4028235e38, 0.1]
    [edit] = read_edits(write_edits([rank_one([1, 2, 3], values)]))
    assert isinstance(edit, RankOne)
    assert same_bits(edit.right, np.array(values, dtype=np.float32))
    [scale] = read_edits(
        json.loads(json.dumps(write_edits([Scale(parameter="m", axis="rows", indices=(0,), factor=0.1)])))
    )
    assert isinstance(scale, Scale)
    assert scale.factor == float(np.float32(0.1))


@pytest.mark.parametrize(
    "weight",
    [
        np.ones((2, 2)),
        np.ones((2, 2, 2), np.float32),
        np.ones((), np.float32),
        np.ones((0, 2), np.float32),
        np.full((2, 2), np.nan, np.float32),
    ],
)
def test_a_start_that_is_no_float32_matrix_is_refused(weight: Any) -> None:
    with pytest.raises(TaskError, match="parameter x"):
        start_weights({"x": weight})


@pytest.mark.parametrize("tied", [False, True])
def test_a_forward_pass_with_edits_is_that_of_the_materialised_model_bit_for_bit(tied: bool) -> None:
    base = wsp_models.base(7, tied=tied)
    random = np.random.default_rng(3)
    deltas = wsp_models.deltas(base)
    for _ in range(30):
        deltas.apply(wsp_models.random_edit(base.start, random))
    deltas.apply(RankOne(parameter=DOWN.format(1), left=frozen([0.5] * 32), right=frozen([0.25] * 48)))
    plain = copy.deepcopy(base.module)
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            parameter.copy_(torch.tensor(deltas.weight(name).copy()))
    materialised = BaseModel(plain)
    before = base.logits([5, 6, 7], {})
    for length in (1, 2, 9, 40):
        ids = random.integers(257, size=length).tolist()
        lazy = base.logits(ids, overlay(deltas))
        assert torch.equal(lazy, materialised.logits(ids, {}))
        assert not torch.equal(lazy, base.logits(ids, {}))
    assert torch.equal(before, base.logits([5, 6, 7], {}))


def test_episodes_on_one_base_do_not_see_each_other() -> None:
    first, second = wsp_models.deltas(BASE), wsp_models.deltas(BASE)
    start = BASE.logits([1, 2, 3], {})
    first.apply(Scale(parameter="lm_head.weight", axis="rows", indices=(9,), factor=0.0))
    assert torch.equal(BASE.logits([1, 2, 3], overlay(second)), start)
    assert BASE.logits([1, 2, 3], overlay(first))[:, 9].tolist() == [0.0, 0.0, 0.0]


def test_where_weights_lie_changes_no_bit() -> None:
    moved = copy.deepcopy(BASE.module)
    for parameter in moved.parameters():
        apart = torch.empty(parameter.numel() + 1)[1:].view(parameter.shape)
        apart.copy_(parameter.data)
        parameter.data = apart
    for ids in ([3], [3, 1, 4]):
        assert torch.equal(BaseModel(moved).logits(ids, {}), BASE.logits(ids, {}))
