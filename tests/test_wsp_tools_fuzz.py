"""Ten thousand tool calls out of anything: none crashes, and none that is refused changes a bit."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import wsp_models
from hypothesis import given, settings
from hypothesis import strategies as st
from wsp_fuzz import JSON_VALUES, call

from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools.catalogue import TOOLS, parse_call
from weightgym.rewards.wsp.tools.free import answer, submission
from weightgym.rewards.wsp.tools.workbench import Workbench

BASE = wsp_models.base()


def state(bench: Workbench) -> Any:
    """Cheap: edits never change, so the same ones are the same weights."""
    deltas = bench.deltas
    return deltas.edits, deltas.changed, deltas.changed_by_parameter, deltas.nbytes, len(bench.captured)


def weights(bench: Workbench) -> dict[str, bytes]:
    return {name: bench.deltas.weight(name).tobytes() for name in bench.deltas.start}


def run(bench: Workbench, name: str, arguments: Any) -> str | None:
    """What came of a call: its answer; None where it was refused, ``gpu`` where only its form was checked."""
    try:
        read = parse_call(name, arguments, TOOLS)
        if read.tool.kind == "gpu":
            return "gpu"
        if read.tool.kind == "submit":
            return repr(submission(bench, read))
        text = answer(bench, read)
        assert len(text.encode()) <= LIMITS.result_bytes
        return text
    except Refused as refusal:
        check_words(str(refusal))
        return None


def check_words(refusal: str) -> None:
    code, _, rest = refusal.partition(": ")
    assert code.replace("_", "").isalpha()
    assert rest
    assert len(refusal) < 2000
    assert "\n" not in refusal


@pytest.mark.parametrize("seed", range(4))
def test_2500_random_calls(seed: int) -> None:
    dice = random.Random(seed)
    start = weights(wsp_models.bench(BASE))
    bench = wsp_models.bench(BASE, limit=3000)
    outcomes: dict[str, set[bool]] = {}
    for count in range(2500):
        name, arguments = call(dice)
        before = state(bench)
        whole = weights(bench) if count % 25 == 0 else None
        answered = run(bench, name, arguments) is not None
        outcomes.setdefault(name, set()).add(answered)
        kind = TOOLS[name].kind if name in TOOLS else "look"
        if not answered or kind != "edit":
            assert state(bench) == before
            assert whole is None or weights(bench) == whole
        assert 0 <= bench.deltas.changed <= 3000
        if len(bench.deltas.edits) > 40:
            bench.deltas.reset()
    again = wsp_models.deltas(BASE, limit=3000)
    again.replay(json.loads(json.dumps(bench.deltas.log())))
    assert {name: again.weight(name).tobytes() for name in again.start} == weights(bench)
    assert again.changed_by_parameter == bench.deltas.changed_by_parameter
    bench.deltas.reset()
    assert weights(bench) == start
    # the fuzz reaches both sides of every tool
    missing = {name: seen for name, seen in outcomes.items() if name in TOOLS and len(seen) < 2}
    assert {name for name, seen in missing.items() if True not in seen} == set()
    assert set(missing) <= {"edit_log", "undo", "reset"}, missing


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_any_json_at_all(name: str, data: st.DataObject) -> None:
    fields = st.sampled_from([*TOOLS[name].arguments.model_fields, "x"])
    arguments = data.draw(
        st.one_of(st.dictionaries(fields, JSON_VALUES, max_size=4), JSON_VALUES, st.text(), st.binary())
    )
    bench = wsp_models.bench(BASE)
    before = state(bench)
    if run(bench, name, arguments) is None:
        assert state(bench) == before
