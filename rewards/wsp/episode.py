"""The rules of one episode: turns, budgets, refusals, and how it ends. No scores. Needs the extra ``train``.

A refused call leaves weights, captured activations and budgets as they were. So does a fault of ours: the whole message
is then as if it had never come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import JsonValue

from weightgym.rewards.wsp.deltas import Deltas
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.prices import Prices
from weightgym.rewards.wsp.profile import LIMITS, profile
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.reply import Reply
from weightgym.rewards.wsp.scores import Report
from weightgym.rewards.wsp.tools import free, gpu
from weightgym.rewards.wsp.tools.catalogue import Call, offered, parse_call, schemas
from weightgym.rewards.wsp.tools.free import Submission
from weightgym.rewards.wsp.tools.workbench import Workbench, cut

__all__ = ["Ending", "Episode", "Reply"]

Ending = Literal["", "submit", "turns", "dollars"]

_FREE = Prices()
#: Bytes of an answer that its status line may take.
_STATUS_BYTES = 160
#: GPU calls that leave nothing behind but their answer.
_FORGOTTEN = ("generate", "next_tokens", "kl")


@dataclass(frozen=True)
class _ModelTokens:
    """A model's tokenizer, as tools need it."""

    model: LanguageModel

    def encode(self, text: str) -> list[int]:
        return self.model.text_ids(text)

    def token(self, id: int) -> str:
        return str(self.model.tokenizer.decode([id]))


class Episode:
    """One episode. Not for several threads at once; several episodes may share an engine.

    Args:
        engine: of the defective model, where the episode starts.
        data: the instance's public row.
        prices: of the model that plays. All 0: its messages need no ``usage``.
        replay: GPU calls that leave nothing behind are checked and counted, but not run.

    Raises:
        TaskError: there is no such profile.
    """

    def __init__(self, engine: Engine, data: PublicData, *, prices: Prices = _FREE, replay: bool = False) -> None:
        self.profile = profile(data.profile)
        self.rules = self.profile.tiers[data.tier]
        self.deltas = Deltas(engine.start, limit=data.edit_limit, most_bytes=self.profile.edit_bytes)
        self.bench = Workbench(self.deltas, _ModelTokens(engine.model))
        self.turns = 0
        self.gpu_calls = 0
        self.refused = 0  #: calls
        self.dollars = Fraction(0)
        self.ended_by: Ending = ""
        #: What was said at the end; nothing, where the episode ran out of something.
        self.submission = Submission(None, Report())
        self._prices = prices
        self._replay = replay
        self._offered = offered(self.rules)
        self._desk = gpu.Desk(engine, self.bench, self.profile.captured_bytes, LIMITS.result_bytes - _STATUS_BYTES)

    @property
    def done(self) -> bool:
        """Whether the episode has ended."""
        return bool(self.ended_by)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The schemas of the tier's tools, as a chat request takes them."""
        return schemas(self.rules)

    def message(self, message: str | Mapping[str, Any]) -> Reply:
        """Take one assistant message, which is one turn.

        Args:
            message: text; or OpenAI's form with ``content``, ``tool_calls`` and, where tokens have a price, ``usage``.

        Raises:
            BackendError: tokens have a price and ``usage`` is missing or impossible.
            RuntimeError: the episode has ended.
        """
        if self.done:
            raise RuntimeError("the episode has ended")
        fields: Mapping[str, Any] = {"content": message} if isinstance(message, str) else message
        cost = self._prices.cost(fields.get("usage"))
        calls = fields.get("tool_calls")
        edits, captured = self.deltas.edits, len(self.bench.captured)
        gpu_calls, refused = self.gpu_calls, self.refused
        try:
            self.turns, self.dollars = self.turns + 1, self.dollars + cost
            return self._turn(calls if isinstance(calls, Sequence) and not isinstance(calls, str | bytes) else ())
        except BaseException:
            self.turns, self.dollars = self.turns - 1, self.dollars - cost
            self.gpu_calls, self.refused, self.ended_by = gpu_calls, refused, ""
            self.submission = Submission(None, Report())
            del self.bench.captured[captured:]
            self.deltas.reset()
            for edit in edits:
                self.deltas.apply(edit)
            raise

    def status(self) -> dict[str, JsonValue]:
        """What is used, and what is left."""
        dollars = self.profile.api_dollars
        return {
            "turns": _budget(self.turns, self.profile.turns),
            "gpu_calls": _budget(self.gpu_calls, self.rules.gpu_calls),
            "elements": _budget(self.deltas.changed, self.deltas.limit),
            "dollars": {"used": float(self.dollars), "left": max(dollars - float(self.dollars), 0.0)},
        }

    def _turn(self, calls: Sequence[Any]) -> Reply:
        if self.dollars >= Fraction(str(self.profile.api_dollars)):
            self.ended_by = "dollars"
        messages = [
            {"role": "tool", "tool_call_id": _id_of(call, number), "content": self._answer(number, call)}
            for number, call in enumerate(calls)
        ]
        if not self.done and self.turns >= self.profile.turns:
            self.ended_by = "turns"
        if said := self._said(calls):
            messages.append({"role": "user", "content": f"{said}\n{self._status_line()}"})
        return Reply(tuple(messages), self.done)

    def _said(self, calls: Sequence[Any]) -> str:
        """What the turn itself is answered with."""
        if self.ended_by == "dollars":
            return f"The ${self.profile.api_dollars:g} are used up; the weights were submitted as they are."
        if self.ended_by == "turns":
            return "That was the last turn; the weights were submitted as they are."
        return "" if calls else "Call a tool or submit."

    def _answer(self, number: int, call: Any) -> str:
        """The content of a call's reply."""
        try:
            content = self._run(number, call)
        except Refused as refusal:
            self.refused += 1
            content = cut(f"refused: {refusal}", self._desk.answer_bytes)
        return f"{content}\n{self._status_line()}"

    def _run(self, number: int, written: Any) -> str:
        most = self.profile.calls_per_message
        if self.ended_by == "dollars":
            raise Refused("out_of_dollars: the episode has ended; this call was not run")
        if self.done:
            raise Refused("submitted: the episode has ended; this call was not run")
        if number >= most:
            raise Refused(f"too_many_calls: {most} calls of a message are run; send the others in your next message")
        call = parse_call(*_said_call(written), self._offered)
        if call.tool.kind == "gpu":
            return self._run_on_gpu(call)
        if call.tool.kind == "submit":
            self.submission = free.submission(self.bench, call)
            self.ended_by = "submit"
            return "submitted"
        return free.answer(self.bench, call, self._desk.answer_bytes)

    def _run_on_gpu(self, call: Call) -> str:
        if self.gpu_calls >= self.rules.gpu_calls:
            raise Refused(
                f"gpu_budget: all {self.rules.gpu_calls} GPU calls are used; the free tools and submit are left"
            )
        run = gpu.checked(self._desk, call)
        answer = "" if self._replay and call.tool.name in _FORGOTTEN else run()
        self.gpu_calls += 1
        return answer

    def _status_line(self) -> str:
        parts = [
            f"turn {self.turns} of {self.profile.turns}",
            f"GPU calls left: {self.rules.gpu_calls - self.gpu_calls} of {self.rules.gpu_calls}",
            f"elements changed: {self.deltas.changed:,} of {self.deltas.limit:,}",
        ]
        if not self._prices.free:
            parts.append(f"${float(self.dollars):.4f} of ${self.profile.api_dollars:g}")
        return f"[{'; '.join(parts)}]"


def _budget(used: int, limit: int) -> JsonValue:
    return {"used": used, "left": max(limit - used, 0)}


def _id_of(call: Any, number: int) -> str:
    """What a reply refers to its call by."""
    found = call.get("id") if isinstance(call, Mapping) else None
    return found if isinstance(found, str) and found else f"call_{number}"


def _said_call(call: Any) -> tuple[str, str | Mapping[str, Any]]:
    """Name and arguments of a call, whoever wrote it.

    Raises:
        Refused: it has another form.
    """
    function = call.get("function") if isinstance(call, Mapping) else None
    if isinstance(function, Mapping) and isinstance(name := function.get("name"), str):
        arguments = function.get("arguments", "")
        if isinstance(arguments, str | Mapping):
            return name, arguments
    raise Refused('bad_call: want {"id": "…", "function": {"name": "NAME", "arguments": "JSON text"}}')
