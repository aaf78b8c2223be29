"""The tools that run the model, each for one GPU call of the budget. Needs the extra ``train``.

A call is checked whole before anything is spent; ``checked`` gives what is left to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.edits import Floats, frozen
from weightgym.rewards.wsp.engine import ROWS, Engine
from weightgym.rewards.wsp.kl import NonFinite, text_kl
from weightgym.rewards.wsp.model import Overlay, overlay
from weightgym.rewards.wsp.places import Place
from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.threads import one_thread
from weightgym.rewards.wsp.tools import arguments as a
from weightgym.rewards.wsp.tools.catalogue import Call
from weightgym.rewards.wsp.tools.vectors import unit
from weightgym.rewards.wsp.tools.workbench import Workbench, cut

#: What a captured activation takes in memory beside its numbers: on the safe side.
_VECTOR_BYTES = 200
#: A shortened line keeps so many bytes at least.
_LEAST_LINE = 24
_NOT_FINITE = "not finite: with these edits the model has logits or activations that are no finite numbers"

Ids = list[int]
#: Runs a checked call: its answer.
Run = Callable[[], str]


@dataclass(frozen=True)
class Desk:
    """What a GPU call works with."""

    engine: Engine
    bench: Workbench
    captured_bytes: int  #: that captured activations may take together
    answer_bytes: int = LIMITS.result_bytes

    @property
    def overlay(self) -> Overlay:
        """The episode's own weights."""
        return overlay(self.bench.deltas)

    def prompts(self, texts: Sequence[str], *, chat: bool) -> list[Ids]:
        """Their tokens.

        Raises:
            Refused: one has none, or too many.
        """
        model = self.engine.model
        return [_fitting(model.chat_ids(text) if chat else model.text_ids(text), i) for i, text in enumerate(texts)]

    def places(self, sites: Sequence[a.Site]) -> list[Place]:
        """Where activations are taken.

        Raises:
            Refused: there is no such layer.
        """
        for site in sites:
            if site.layer >= self.engine.layers:
                raise Refused(f"bad_site: layer {site.layer}; the model has layers 0 to {self.engine.layers - 1}")
        return [Place(site.layer, site.point) for site in sites]

    def check_room(self, places: Sequence[Place], times: int) -> None:
        """Whether so many activations of each place can still be kept.

        Raises:
            Refused: they can't.
        """
        taken = sum(_VECTOR_BYTES + one.nbytes for one in self.bench.captured)
        wanted = times * sum(_VECTOR_BYTES + 4 * self.engine.width(place) for place in places)
        if taken + wanted > self.captured_bytes:
            raise Refused(
                f"captured_full: {times * len(places)} activations take {wanted:,} bytes, and of "
                f"{self.captured_bytes:,} in an episode {self.captured_bytes - taken:,} are left: "
                "ask for fewer prompts, sites or positions"
            )


def checked(desk: Desk, call: Call) -> Run:
    """What is left of a GPU call when all that could be wrong with it has been looked at.

    Raises:
        Refused: it can't be run; nothing has changed.
        ValueError: the tool makes no GPU call.
    """
    if (handler := _HANDLERS.get(call.tool.name)) is None:
        raise ValueError(f"{call.tool.name} makes no GPU call")
    run = handler(desk, call.arguments)
    return lambda: cut(run(), desk.answer_bytes)


def generate(desk: Desk, call: a.Generate) -> Run:
    prompts = desk.prompts(call.prompts, chat=call.chat)

    def run() -> str:
        try:
            made = desk.engine.generate(prompts, call.max_new_tokens, desk.overlay)
        except NonFinite:
            return _NOT_FINITE
        head = f"{len(made)} continuations of at most {call.max_new_tokens} tokens"
        return _list(desk, head, (desk.engine.model.text(ids) for ids in made))

    return run


def next_tokens(desk: Desk, call: a.NextTokens) -> Run:
    prompts = desk.prompts(call.prompts, chat=call.chat)

    def run() -> str:
        rows = [one.logits[0] for one in desk.engine.forward(prompts, desk.overlay, keep="last")]
        head = f"the {call.k} likeliest next tokens of {len(rows)} prompts, with log-probabilities"
        return _list(desk, head, (_likeliest(desk, row, call.k) for row in rows))

    return run


def capture(desk: Desk, call: a.Capture) -> Run:
    prompts, places = desk.prompts(call.prompts, chat=call.chat), desk.places(call.sites)
    for number, ids in enumerate(prompts):
        for position in call.positions:
            if not -len(ids) <= position < len(ids):
                raise Refused(f"bad_position: {position} of prompt {number}, which has {len(ids)} tokens")
    direction = _direction(desk, call.direction, places)
    desk.check_room(places, len(prompts) * len(call.positions))

    def run() -> str:
        vectors: list[Floats] = []
        told: list[str] = []
        first = len(desk.bench.captured)
        for number, place, position, vector in _activations(desk, prompts, places, call.positions):
            vectors.append(vector)
            what = f"prompt {number}, {_at(place)}, position {position}"
            told.append(f"#{first + len(told)}: {what}: {_described(vector, direction, call.k)}")
        return _kept(desk, vectors, told, "activations, prompt by prompt, in each site by site, at each position")

    return run


def gradient(desk: Desk, call: a.Gradient) -> Run:
    prompts, places = desk.prompts(call.prompts, chat=call.chat), desk.places(call.sites)
    targets = [_fitting(desk.engine.model.text_ids(text), i, "target") for i, text in enumerate(call.targets)]
    desk.check_room(places, 1)

    def run() -> str:
        weights = desk.overlay
        each = [
            desk.engine.gradient(prompt, target, weights, places=places)
            for prompt, target in zip(prompts, targets, strict=True)
        ]
        vectors = [torch.stack([one.by_place[place] for one in each]).mean(0).numpy() for place in places]
        first = len(desk.bench.captured)
        told = [
            f"#{first + index}: {_at(place)}: {_described(vector, None, 5)}"
            for index, (place, vector) in enumerate(zip(places, vectors, strict=True))
        ]
        mean = math.fsum(one.log_probability for one in each) / len(each)
        return _kept(desk, vectors, told, f"gradients; the targets' mean log-probability is {mean:.5g}")

    return run


def kl(desk: Desk, call: a.TextKLs) -> Run:
    texts = [_fitting(desk.engine.model.text_ids(text), i, "text") for i, text in enumerate(call.texts)]

    def run() -> str:
        weights = desk.overlay
        try:
            found = [
                text_kl(desk.engine.logits, lambda ids: desk.engine.logits(ids, weights), [text]) for text in texts
            ]
        except NonFinite:
            return _NOT_FINITE
        tokens = sum(one.tokens for one in found)
        mean = math.fsum(one.mean * one.tokens for one in found) / tokens
        head = f"KL(start ∥ your edits): {mean:.6g} nats a token over {tokens} tokens; by text:"
        return _list(desk, head, (f"{one.mean:.6g}" for one in found))

    return run


_HANDLERS: Mapping[str, Callable[[Desk, Any], Run]] = {
    "generate": generate,
    "next_tokens": next_tokens,
    "capture": capture,
    "gradient": gradient,
    "kl": kl,
}


def _fitting(ids: Ids, number: int, what: str = "prompt") -> Ids:
    if not ids:
        raise Refused(f"bad_prompt: {what} {number} has no tokens")
    if len(ids) > LIMITS.prompt_tokens:
        raise Refused(f"bad_prompt: {what} {number} has {len(ids)} tokens; at most {LIMITS.prompt_tokens}")
    return ids


def _direction(desk: Desk, said: Any, places: Sequence[Place]) -> Any:
    """Of length 1; it has to have every site's width."""
    if said is None:
        return None
    direction = desk.bench.vector(said)
    for place in places:
        if len(direction) != (width := desk.engine.width(place)):
            raise Refused(f"bad_shape: a direction of {len(direction)} values; {_at(place)} has {width}")
    if (plain := unit(direction)) is None:
        raise Refused("bad_direction: it is zero")
    return plain


def _activations(
    desk: Desk, prompts: Sequence[Ids], places: Sequence[Place], positions: Sequence[int]
) -> Iterator[tuple[int, Place, int, Floats]]:
    weights = desk.overlay
    for begin in range(0, len(prompts), ROWS):  # all of a call's activations at once would take much memory
        rows = desk.engine.forward(prompts[begin : begin + ROWS], weights, keep="none", places=places)
        for number, row in enumerate(rows, begin):
            for place in places:
                taken = row.activations[place].numpy()
                yield from ((number, place, position, taken[position].copy()) for position in positions)


def _kept(desk: Desk, vectors: Sequence[Floats], told: Sequence[str], what: str) -> str:
    """Keep all or none: their numbers follow from their order."""
    if not all(np.isfinite(vector).all() for vector in vectors):
        return f"{_NOT_FINITE}; nothing was captured"
    first = len(desk.bench.captured)
    desk.bench.captured += [frozen(vector) for vector in vectors]
    head = f"captured activations #{first} to #{first + len(vectors) - 1}: {what}"
    return "\n".join([head, *shortened(told, desk.answer_bytes - len(head.encode()) - 1)])


@one_thread()
def _likeliest(desk: Desk, logits: torch.Tensor, k: int) -> str:
    if not torch.isfinite(logits).all():
        return "not finite"
    values, ids = torch.log_softmax(logits, dim=-1).topk(min(k, len(logits)))
    return " ".join(
        f"{desk.bench.tokens.token(id)!r} {value:.3f}" for id, value in zip(ids.tolist(), values.tolist(), strict=True)
    )


def _described(vector: Floats, direction: Any, k: int) -> str:
    wide = vector.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        if direction is not None:
            return f"projection {float(wide @ direction):+.5g} of norm {np.linalg.norm(wide):.5g}"
        order = np.argsort(-np.abs(wide), kind="stable")[:k]
        return f"norm {np.linalg.norm(wide):.5g}, largest " + " ".join(f"{i}:{wide[i]:+.4g}" for i in order)


def _at(place: Place) -> str:
    return f"layer {place.layer} {place.point}"


def _list(desk: Desk, head: str, items: Iterator[str]) -> str:
    """A numbered line for each, the longest ones shortened until all fit."""
    lines = [f"{number}: {one_line(item, LIMITS.result_bytes)}" for number, item in enumerate(items)]
    return "\n".join([head, *shortened(lines, desk.answer_bytes - len(head.encode()) - 1)])


def shortened(lines: Sequence[str], limit: int) -> list[str]:
    """The lines, with a limit for each that lets all of them fit; as few as possible are shortened."""
    room, sizes = limit, sorted(len(line.encode()) + 1 for line in lines)
    most = 0
    for index, size in enumerate(sizes):
        most = room // (len(sizes) - index)
        if size > most:
            break
        room -= size
    else:
        return list(lines)
    return [_short(line, max(most - 1, _LEAST_LINE)) for line in lines]


def _short(line: str, limit: int) -> str:
    raw, mark = line.encode(), "…"
    if len(raw) <= limit:
        return line
    return raw[: limit - len(mark.encode())].decode(errors="ignore") + mark
