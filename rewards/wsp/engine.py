"""One language model in memory, run for many episodes at once. Needs the extra ``train``.

Weights that an episode has changed come with each call, as an overlay: whole parameters, used for that episode's rows
alone. What rows of one call, or of several, have in common is run together, in blocks of a fixed shape: products of
matrices round differently by shape, so a fixed one is what makes a result the same bits whoever else is in the block.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch.nn import functional
from transformers import DynamicCache

from weightgym.rewards.causal_lm import cache_argument, padded
from weightgym.rewards.wsp.kl import Logits, NonFinite
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.model import BaseModel, Opened, Overlay, filled
from weightgym.rewards.wsp.places import Place, at, moved, taking
from weightgym.rewards.wsp.threads import one_thread

#: Rows of a block.
ROWS = 20
#: Chats that all begin with so many tokens, or more, share what these leave behind.
OPENING = 16
#: Tokens of a block's prompts, without such a beginning: the first that is enough. Longer ones: multiples of the last.
LENGTHS = (16, 32, 64, 128)

Keep = Literal["all", "last", "none"]


class Gradient(NamedTuple):
    """Of a target's log-probability after a prompt, with respect to activations at the prompt's last token."""

    log_probability: float  #: of all of the target's tokens together, in nats
    by_place: dict[Place, torch.Tensor]  #: float32 of shape (width,)


class Forward(NamedTuple):
    """What a pass over one row gave, float32: logits of the tokens that were wanted, and activations by place."""

    logits: torch.Tensor  #: (tokens, vocabulary): after all tokens, after the last alone, or of no rows
    activations: dict[Place, torch.Tensor]  #: (tokens, width)


@dataclass(eq=False)
class _Job:
    """One row of a call."""

    ids: Sequence[int]
    overlay: Overlay
    key: tuple[Any, ...]  #: rows with the same one can share a block
    places: tuple[Place, ...] = ()
    new_tokens: int = 0
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class Engine:
    """Runs a model. Every method may be called from several threads at once.

    ``start`` are its parameters as read-only float32 arrays, by name; of tied ones there is one.

    Raises:
        TaskError: its parameters can't be edited, see ``deltas.start_weights``.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.base = BaseModel(model.network)
        self.start = self.base.start
        self._network = self.base.module
        self._cache_name = cache_argument(self._network)
        self._opening = list(model.opening) if len(model.opening) >= OPENING else []
        self._waiting: deque[_Job] = deque()
        self._queue = threading.Lock()
        self._running = threading.Lock()
        self._rows: list[_Job] = []  #: of the block that is being run
        self._holders = _holders(self._network)
        for module, names in self._holders.items():
            module.register_forward_hook(partial(self._changed, names))

    def logits(self, ids: Sequence[int], overlay: Overlay | None = None) -> torch.Tensor:
        """The logits after each token of one sequence, run by itself: float32 of shape (tokens, vocabulary).

        Raises:
            ValueError: there are no ids.
        """
        return self.reader(overlay)(ids)

    def reader(self, overlay: Overlay | None = None) -> Logits:
        """``logits`` with these weights, for many sequences: what chats begin with is read once. The same bits."""
        weights = overlay or {}
        opened: list[Opened] = []

        def logits(ids: Sequence[int]) -> torch.Tensor:
            with self._running, one_thread():
                if not self._opens(ids):
                    return self.base.logits(ids, weights)
                if not opened:
                    opened.append(self.base.opened(self._opening, weights))
                return self.base.logits_after(opened[0], ids[len(self._opening) :], weights)

        return logits

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int,
        overlay: Overlay | None = None,
        *,
        stop: bool = True,
    ) -> list[list[int]]:
        """Greedy continuations, without the end-of-sequence token; one that has none was cut at ``max_new_tokens``.

        Args:
            prompts: token ids, one at least in each.
            stop: without it the end is never chosen, and all have ``max_new_tokens`` tokens.

        Raises:
            NonFinite: a prompt leads to logits that are not finite.
        """
        weights = overlay or {}
        jobs = []
        for ids in prompts:
            begun = len(self._opening) if self._opens(ids) else 0
            key = ("generate", _length(len(ids) - begun), stop, begun)
            jobs.append(_Job(ids, weights, key, new_tokens=max_new_tokens))
        return self._run(jobs)

    def answers(self, questions: Sequence[str], max_new_tokens: int = 48, overlay: Overlay | None = None) -> list[str]:
        """The greedy answers to users' messages."""
        prompts = [self.model.chat_ids(question) for question in questions]
        return [self.model.text(ids) for ids in self.generate(prompts, max_new_tokens, overlay)]

    def forward(
        self,
        rows: Sequence[Sequence[int]],
        overlay: Overlay | None = None,
        *,
        keep: Keep = "all",
        places: Sequence[Place] = (),
    ) -> list[Forward]:
        """One pass over each row of token ids. All logits of many rows take much memory: ask for ``ROWS`` at a time."""
        jobs = [
            _Job(ids, overlay or {}, ("forward", _length(len(ids)), keep), places=tuple(dict.fromkeys(places)))
            for ids in rows
        ]
        return self._run(jobs)

    def gradient(
        self,
        prompt: Sequence[int],
        target: Sequence[int],
        overlay: Overlay | None = None,
        *,
        places: Sequence[Place],
    ) -> Gradient:
        """The gradient for one prompt and target, run by itself without padding. Neither may be empty."""
        if not prompt or not target:
            raise ValueError("no token ids: a sequence has one at least")
        last = len(prompt) - 1
        with self._running, one_thread(), torch.enable_grad(), ExitStack() as hooks:
            moves = {}
            for place in dict.fromkeys(places):
                moves[place] = torch.zeros(self.width(place), requires_grad=True)
                hooks.callback(at(self._network, place, partial(moved, moves[place], last)).remove)
            out = torch.func.functional_call(
                self._network,
                dict(overlay or {}),
                kwargs={"input_ids": torch.tensor([[*prompt, *target[:-1]]]), "use_cache": False},
            )
            logs = torch.log_softmax(out.logits[0, last:].float(), dim=-1)
            total = logs[torch.arange(len(target)), torch.tensor(list(target))].sum()
            found = torch.autograd.grad(total, list(moves.values()))
        return Gradient(float(total.detach()), dict(zip(moves, found, strict=True)))

    @property
    def layers(self) -> int:
        """How many layers the model has."""
        return len(self._network.base_model.layers)

    def width(self, place: Place) -> int:
        """How many numbers an activation at a place has."""
        rows, columns = self._network.base_model.layers[place.layer].mlp.down_proj.weight.shape
        return int(columns if place.point == "mlp_hidden" else rows)

    def _run(self, jobs: Sequence[_Job]) -> list[Any]:
        """Whoever gets the model runs what waits, from the oldest on, until its own rows are done."""
        if any(not job.ids for job in jobs):
            raise ValueError("no token ids: a sequence has one at least")
        with self._queue:
            self._waiting.extend(jobs)
        try:
            with self._running:
                while not all(job.done for job in jobs):
                    self._run_block(self._next_block())
        finally:  # broken off, say by Ctrl-C: nobody wants the rest
            if not all(job.done for job in jobs):
                mine = set(map(id, jobs))
                with self._queue:
                    self._waiting = deque(job for job in self._waiting if id(job) not in mine)
        for job in jobs:
            if job.error is not None:
                raise job.error
        return [job.result for job in jobs]

    def _next_block(self) -> list[_Job]:
        """The oldest row that waits, and others that can share its block."""
        with self._queue:
            key = self._waiting[0].key
            block = [job for job in self._waiting if job.key == key][:ROWS]
            chosen = set(map(id, block))
            self._waiting = deque(job for job in self._waiting if id(job) not in chosen)
        return block

    def _run_block(self, block: Sequence[_Job]) -> None:
        self._rows = list(block)
        try:
            with one_thread(), torch.inference_mode():
                (self._generate if block[0].key[0] == "generate" else self._forward)(block)
        except BaseException as error:  # each call of the block has to know
            broken_off = RuntimeError("the run of the model was broken off")
            for job in block:
                job.error = error if isinstance(error, Exception) else broken_off
            if not isinstance(error, Exception):
                raise
        finally:
            self._rows = []
            for job in block:
                job.done = True

    def _generate(self, block: Sequence[_Job]) -> None:
        _, length, stop, begun = block[0].key
        end, most = int(self.model.tokenizer.eos_token_id), max(job.new_tokens for job in block)
        ids, mask = self._padded([job.ids[begun:] for job in block], length, left=True)
        cache = self._opened(block) if begun else DynamicCache(config=self._network.config)
        mask = torch.cat([mask.new_ones((ROWS, begun)), mask], dim=1)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, begun:]
        chosen = torch.empty((ROWS, 0), dtype=torch.int64)
        finite: list[torch.Tensor] = []
        while chosen.shape[1] < most and not (stop and _ended(block, chosen, end)):
            if chosen.shape[1]:
                mask = torch.cat([mask, mask.new_ones((ROWS, 1))], dim=1)
                positions = positions[:, -1:] + 1
            logits = self._network(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_name: cache},
            ).logits[:, -1]
            finite.append(torch.isfinite(logits).all(-1))
            if not stop:
                logits[:, end] = -torch.inf
            ids = logits.argmax(-1, keepdim=True)
            chosen = torch.cat([chosen, ids], dim=1)
        sound = torch.stack(finite, dim=1).tolist() if finite else [[]] * ROWS
        for job, row, good in zip(block, chosen.tolist(), sound, strict=False):
            own = row[: job.new_tokens]
            job.result = own[: own.index(end)] if stop and end in own else own
            if not all(good[: min(len(job.result) + 1, job.new_tokens)]):
                job.error = NonFinite("non_finite: a prompt leads to logits that are not finite")

    def _forward(self, block: Sequence[_Job]) -> None:
        _, length, keep = block[0].key
        ids, _ = self._padded([job.ids for job in block], length, left=False)
        places = dict.fromkeys(place for job in block for place in job.places)
        taken: dict[Place, torch.Tensor] = {}
        with ExitStack() as hooks:
            for place in places:
                hooks.callback(taking(self._network, place, taken).remove)
            # Without a mask: what stands behind a token never reaches it.
            hidden = self._network.base_model(input_ids=ids, use_cache=False)[0]
            kept = {"all": hidden, "none": hidden[:, :0]}.get(keep)
            if kept is None:
                ends = torch.tensor([len(job.ids) - 1 for job in block] + [0] * (ROWS - len(block)))
                kept = hidden[torch.arange(ROWS), ends][:, None]
            logits = self._network.get_output_embeddings()(kept).float() if keep != "none" else kept
        for row, job in enumerate(block):
            count = {"all": len(job.ids), "last": 1, "none": 0}[keep]
            own = {place: taken[place][row, : len(job.ids)].clone() for place in job.places}
            job.result = Forward(logits[row, :count].clone(), own)

    def _padded(self, rows: Sequence[Sequence[int]], length: int, *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        empty: list[list[int]] = [[]] * (ROWS - len(rows))
        return padded([*rows, *empty], self.model.pad_id, left=left, length=length)

    def _opens(self, ids: Sequence[int]) -> bool:
        """Whether it is a chat that shares what all chats begin with."""
        count = len(self._opening)
        return 0 < count < len(ids) and list(ids[:count]) == self._opening

    def _opened(self, block: Sequence[_Job]) -> DynamicCache:
        """What the begin of chats leaves behind: computed by itself for each of the block's weights."""
        rows, self._rows = self._rows, []  # so that it passes by: the weights are given whole
        overlays = {id(job.overlay): job.overlay for job in block}
        known = {key: self.base.opened(self._opening, overlay) for key, overlay in overlays.items()}
        self._rows = rows
        opened = [known[id(job.overlay)] for job in block]
        return filled(self._network.config, [*opened, *opened[:1] * (ROWS - len(block))])

    def _changed(self, names: Mapping[str, str], module: Any, args: tuple[Any, ...], output: torch.Tensor) -> Any:
        """A module's output, with the rows anew whose weights of it are their episode's own."""
        rows, self._rows = self._rows, []  # so that what is called here passes by
        try:
            for row, job in enumerate(rows):
                own = {attribute: job.overlay[name] for attribute, name in names.items() if name in job.overlay}
                if own:
                    output[row : row + 1] = _with(module, own, args[0][row : row + 1])
        finally:
            self._rows = rows
        return output


def _length(tokens: int) -> int:
    longest = LENGTHS[-1]
    return next((length for length in LENGTHS if tokens <= length), -(-tokens // longest) * longest)


def _ended(block: Sequence[_Job], chosen: torch.Tensor, end: int) -> bool:
    """Whether every row has its end, or as many tokens as it may have."""
    done = (chosen == end).any(dim=1).tolist()
    return all(row or chosen.shape[1] >= job.new_tokens for job, row in zip(block, done, strict=False))


def _holders(network: Any) -> dict[Any, dict[str, str]]:
    """The modules that have parameters of their own: which attribute is which parameter. Tied ones have one name."""
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    return {
        module: own
        for module in network.modules()
        if (own := {attribute: names[id(one)] for attribute, one in module.named_parameters(recurse=False)})
    }


def _with(module: Any, own: Mapping[str, torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    if type(module) is torch.nn.Linear and own.keys() == {"weight"}:
        return functional.linear(rows, own["weight"], module.bias)
    made: torch.Tensor = torch.func.functional_call(module, dict(own), (rows,))
    return made
