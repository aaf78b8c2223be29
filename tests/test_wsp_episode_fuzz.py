"""Ten thousand tool calls out of anything through episodes: no crash, no budget leak, no state change on refusal."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
import wsp_episodes
import wsp_fuzz
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.prices import Prices
from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.tools.catalogue import TOOLS

CALLS = 2500
PRICES = Prices(prompt=1.0, completion=2.0)
LIMIT = 3000


def state(one: Episode) -> Any:
    """Edits never change, so the same ones are the same weights."""
    deltas = one.deltas
    captured = [vector.tobytes() for vector in one.bench.captured]
    return (
        deltas.edits,
        deltas.changed,
        deltas.nbytes,
        captured,
        one.gpu_calls,
        one.dollars,
        one.submission,
        one.ended_by,
    )


class Watched(Episode):
    """Looks at each call by itself."""

    seen = 0
    spent = 0
    outcomes: dict[str, set[bool]]

    def _answer(self, number: int, call: Any) -> str:
        before = state(self)
        content = super()._answer(number, call)
        self.seen += 1
        name = call["function"].get("name") if isinstance(call, dict) and "function" in call else None
        tool = TOOLS.get(name) if isinstance(name, str) else None
        refused = content.startswith("refused: ")
        if refused or tool is None or tool.kind == "look":
            assert state(self) == before
        if not refused and tool is not None:
            self.spent += tool.kind == "gpu"
        if tool is not None:
            self.outcomes.setdefault(tool.name, set()).add(refused)
        assert self.gpu_calls == self.spent <= self.rules.gpu_calls
        assert len(content.encode()) <= LIMITS.result_bytes
        assert "Traceback" not in content
        return content


def written(dice: random.Random) -> Any:
    """One element of ``tool_calls``: mostly a call."""
    if dice.random() < 0.03:
        return dice.choice([None, 1, "undo", [], {}, {"function": {}}, {"id": 3, "function": {"name": None}}])
    name, arguments = wsp_fuzz.call(dice)
    if name == "submit" and dice.random() < 0.97:
        name = "undo"
    return {"id": dice.choice(["a", "", "x" * 50]), "function": {"name": name, "arguments": arguments}}


def message(dice: random.Random) -> Any:
    usage = {"prompt_tokens": dice.randrange(75_000), "completion_tokens": dice.randrange(1000)}
    form = dice.random()
    if form < 0.02:
        return {"content": "hello", "usage": usage}
    if form < 0.03:
        return {"tool_calls": dice.choice([None, "x", 3, {"a": 1}]), "usage": usage}
    return {"content": None, "tool_calls": [written(dice) for _ in range(dice.randint(5, 9))], "usage": usage}


def check(one: Watched, reply: Any, asked: Mapping[str, Any]) -> None:
    calls = asked.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    tools = [said for said in reply.messages if said["role"] == "tool"]
    assert len(tools) == len(calls)
    assert len(reply.messages) - len(tools) == (not calls or one.ended_by in ("turns", "dollars"))
    assert all(len(said["content"].encode()) <= LIMITS.result_bytes for said in reply.messages)
    assert reply.done == one.done == bool(one.ended_by)
    assert one.turns <= 40
    assert 0 <= one.deltas.changed <= LIMIT
    assert one.deltas.nbytes <= one.profile.edit_bytes
    assert sum(vector.nbytes + 200 for vector in one.bench.captured) <= one.profile.captured_bytes


@pytest.mark.parametrize("seed", range(4))
def test_2500_random_calls(seed: int) -> None:
    dice = random.Random(seed)
    outcomes: dict[str, set[bool]] = {}
    seen, endings = 0, set()
    while seen < CALLS:
        tier = dice.choice(["easy", "medium", "hard"])
        data = wsp_episodes.data(tier, limit=dice.choice([LIMIT, LIMIT, 0]))
        one, again = (
            Watched(wsp_episodes.engine(), data, prices=PRICES),
            Episode(wsp_episodes.engine(), data, prices=PRICES, replay=True),
        )
        one.outcomes = outcomes
        while not one.done:
            asked = message(dice)
            if dice.random() < 0.01:
                before = (state(one), one.turns)
                with pytest.raises(BackendError, match="usage"):
                    one.message({**asked, "usage": {}})
                assert (state(one), one.turns) == before
            check(one, one.message(asked), asked)
            again.message(asked)
        assert state(again)[1:] == state(one)[1:]
        assert again.deltas.log() == one.deltas.log()
        assert again.status() == one.status()
        seen += one.seen
        endings.add(one.ended_by)
    assert len(endings) > 1
    # the fuzz reaches both sides of every tool
    missing = {name: refused for name, refused in outcomes.items() if len(refused) < 2}
    assert set(missing) <= {"edit_log", "undo", "reset", "submit"}, missing
    assert False in outcomes["generate"]
    assert outcomes.keys() == TOOLS.keys()


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "usage", "x"]), wsp_fuzz.JSON_VALUES))
def test_any_message_at_all_is_a_turn(asked: dict[str, Any]) -> None:
    one = wsp_episodes.episode("hard")
    reply = one.message(asked)
    assert reply.messages
    assert (one.turns, one.gpu_calls, one.deltas.changed, one.done) == (1, 0, 0, False)
