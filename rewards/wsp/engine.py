"""One language model in memory, run for many episodes at once. Needs the extra ``train``.

Weights that an episode has changed come with each call, as an overlay: whole parameters, used for that episode's rows
alone. What rows of one call, or of several, have in common is run together, in blocks of a fixed shape: products of
matrices round differently by shape, so a fixed one is what makes a result the same bits whoever else is in the block.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch.nn import functional
from transformers import DynamicCache

from weightgym.rewards.causal_lm import cache_argument, padded
from weightgym.rewards.wsp.kl import NonFinite
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.model import BaseModel, Overlay

#: Rows of a block.
ROWS = 16
#: Tokens of a block's prompts: the first that is enough. Longer ones: multiples of the last.
LENGTHS = (16, 32, 64, 128)

Point = Literal["residual", "attention_output", "mlp_input", "mlp_hidden", "mlp_output"]
Keep = Literal["all", "last", "none"]


class Place(NamedTuple):
    """Where an activation is taken: after a layer, what its attention or MLP adds, what its MLP or down_proj reads."""

    layer: int
    point: Point


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
        with self._running, one_thread():
            return self.base.logits(ids, overlay or {})

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
        jobs = [
            _Job(ids, overlay or {}, ("generate", _length(ids), stop), new_tokens=max_new_tokens) for ids in prompts
        ]
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
            _Job(ids, overlay or {}, ("forward", _length(ids), keep), places=tuple(dict.fromkeys(places)))
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
                hooks.callback(_at(self._network, place, partial(_moved, moves[place], last)).remove)
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
        _, length, stop = block[0].key
        end, most = int(self.model.tokenizer.eos_token_id), max(job.new_tokens for job in block)
        ids, mask = self._padded(block, length, left=True)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache(config=self._network.config)
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
        ids, _ = self._padded(block, length, left=False)
        places = dict.fromkeys(place for job in block for place in job.places)
        taken: dict[Place, torch.Tensor] = {}
        with ExitStack() as hooks:
            for place in places:
                hooks.callback(_take(self._network, place, taken).remove)
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

    def _padded(self, block: Sequence[_Job], length: int, *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        empty = [[self.model.pad_id]] * (ROWS - len(block))
        return padded([*(job.ids for job in block), *empty], self.model.pad_id, left=left, length=length)

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


@contextmanager
def one_thread() -> Iterator[None]:
    """Products of matrices by one thread: shared among several, they round differently, and small ones are slower."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _length(ids: Sequence[int]) -> int:
    longest = LENGTHS[-1]
    return next((length for length in LENGTHS if len(ids) <= length), -(-len(ids) // longest) * longest)


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


def _take(network: Any, place: Place, into: dict[Place, torch.Tensor]) -> Any:
    """A hook that keeps the activations at a place."""

    def keep(activations: torch.Tensor) -> None:
        into[place] = activations

    return _at(network, place, keep)


def _moved(move: torch.Tensor, token: int, activations: torch.Tensor) -> torch.Tensor:
    """The activations with something added at one token."""
    moved = activations.clone()
    moved[:, token] += move
    return moved


def _at(network: Any, place: Place, see: Callable[[torch.Tensor], torch.Tensor | None]) -> Any:
    """A hook that is shown the activations at a place, (rows, tokens, width), and may put others there."""
    layer = network.base_model.layers[place.layer]

    def on_input(module: Any, args: tuple[Any, ...]) -> Any:
        new = see(args[0])
        return None if new is None else (new, *args[1:])

    def on_output(module: Any, args: tuple[Any, ...], output: Any) -> Any:
        several = isinstance(output, tuple)
        new = see(output[0] if several else output)
        return (new, *output[1:]) if several and new is not None else new

    if place.point == "mlp_input":
        return layer.mlp.register_forward_pre_hook(on_input)
    if place.point == "mlp_hidden":
        return layer.mlp.down_proj.register_forward_pre_hook(on_input)
    module = {"residual": layer, "attention_output": layer.self_attn.o_proj, "mlp_output": layer.mlp}[place.point]
    return module.register_forward_hook(on_output)
