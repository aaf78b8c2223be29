"""Several processes that train one model: FSDP2 under ``torchrun``, gloo on CPUs and NCCL on GPUs.

Every rank holds a shard of each parameter, and all ranks must call everything that communicates equally often and in
the same order: forward and backward passes, optimiser steps, ``gathered``, and the methods of ``World`` that say so.
The main rank alone asks the policy and writes files. What crosses between ranks is tensors and bytes, never pickles.

    with join() as world:
        world.shard(model, decoder_blocks(model))     # before the optimiser is made
        lines = world.from_main(lambda: roll_out())   # everyone gets the main rank's bytes
        for part in world.split(rows, micro_batch):   # equally many parts on every rank
            batch = make_batch(part.rows)             # if part.idle, with a mask that is False throughout
            (policy_loss(...).loss * world.size).backward()   # FSDP averages gradients; the loss wants their sum
        norm = clip_gradients(parameters, 1.0)
        optimiser.step()
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

import torch
from torch import Tensor, distributed

from weightgym.trainers.loss import LossStatistics

T = TypeVar("T")

#: Seconds. Ranks that wait for the main one's rollouts wait in a collective, so this bounds a step's rollouts, too.
TIMEOUT = 3600.0


class WorldError(RuntimeError):
    """Another process failed, died, or was not heard of within the timeout."""


@dataclass(frozen=True)
class MicroBatch(Generic[T]):
    """Rows of one forward and backward pass of one rank."""

    rows: Sequence[T]  #: at least one
    #: The others have more rows: this pass is made so that all ranks make as many. Clear its mask.
    idle: bool = False


@dataclass(frozen=True)
class World:
    """The processes of a run; by default, this one alone, and then no method communicates.

    As a context manager it ends the process group, and failures of it become a ``WorldError``.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = dataclasses.field(default_factory=lambda: torch.device("cpu"))
    timeout: float = TIMEOUT  #: seconds, of every collective

    @property
    def is_main(self) -> bool:
        """It asks the policy, writes files and talks."""
        return self.rank == 0

    def shard(self, model: Any, blocks: Iterable[Any], *, dtype: str = "float32") -> None:
        """Spread the model's parameters over the ranks, in place: each block is a unit, the rest another.

        Every rank must have loaded the same whole model; it moves to this rank's device. ``dtype`` is that of the
        passes; gradients are summed in float32. Parameters are then DTensors: make the optimiser afterwards.
        With one process, the model just moves to the device.

        Raises:
            ValueError: trained parameters are of several dtypes.
        """
        if self.size == 1:
            model.to(self.device)
            return
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        trained = {parameter.dtype for parameter in model.parameters() if parameter.requires_grad}
        if len(trained) > 1:
            raise ValueError(f"trained parameters are {', '.join(sorted(map(str, trained)))}: FSDP wants one dtype")
        mesh = init_device_mesh(self.device.type, (self.size,))
        narrow = getattr(torch, dtype)
        policy = MixedPrecisionPolicy(
            param_dtype=None if narrow == torch.float32 else narrow, reduce_dtype=torch.float32
        )
        for unit in (*blocks, model):
            # Also the root goes back to shards after a pass without gradients: else its parameters have changed place.
            fully_shard(unit, mesh=mesh, mp_policy=policy, reshard_after_forward=True)

    def split(self, rows: Sequence[T], size: int) -> list[MicroBatch[T]]:
        """This rank's share of the rows in micro-batches of at most ``size``: equally many on every rank.

        Rank ``r`` of ``n`` gets ``rows[r::n]``. Rows that are sorted by length, longest first, give all ranks about the
        same work. All ranks pass the same rows; this communicates nothing.
        """
        mine = rows[self.rank :: self.size]
        most = -(-len(rows) // self.size)
        parts = [mine[begin : begin + size] for begin in range(0, most, size)]
        return [MicroBatch(part) if part else MicroBatch(rows[-1:], idle=True) for part in parts]

    def total(self, *values: float) -> tuple[float, ...]:
        """The sums of the values over all ranks, in float64: exact for counts. All ranks call it."""
        return tuple(sum(column) for column in zip(*self._everyones(values), strict=True))

    def combine(self, statistics: LossStatistics) -> LossStatistics:
        """Those of the whole batch, from each rank's part. All ranks call it."""
        known = {name: value for name, value in dataclasses.asdict(statistics).items() if value is not None}
        parts = (
            dataclasses.replace(statistics, **dict(zip(known, values, strict=True)))
            for values in self._everyones(tuple(known.values()))
        )
        return functools.reduce(operator.add, parts)

    def from_main(self, make: Callable[[], bytes]) -> bytes:
        """What ``make`` returns on the main rank, on every rank. Only the main one runs it; all ranks call this.

        Raises:
            WorldError: on the other ranks, if ``make`` raised an exception; the main one raises that itself.
        """
        if self.size == 1:
            return make()
        if not self.is_main:
            failed, data = self._receive()
            if failed:
                raise WorldError(f"rank {self.rank} of {self.size}: the main rank failed: {data.decode()}")
            return data
        try:
            data = make()
        except Exception as error:
            self._send(True, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
            raise
        self._send(False, data)
        return data

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self._everyones((0.0,))

    def close(self) -> None:
        """End the process group. All ranks call it."""
        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.barrier()  # gloo's threads abort a process whose peers leave first
            self.close()
        elif isinstance(error, RuntimeError) and _is_communication(error):
            # The group is left as it is: ending it would wait for processes that are gone.
            raise WorldError(
                f"rank {self.rank} of {self.size}: another rank died, or was silent for {self.timeout:g} s: "
                f"see what it wrote last ({str(error).strip().splitlines()[0]})"
            ) from error
        elif self.device.type == "cpu":
            self.close()  # left open, gloo's threads may abort Python's exit; NCCL might wait for ever

    def _everyones(self, values: Sequence[float]) -> list[list[float]]:
        """The values of all ranks, in their order. They travel between CPUs."""
        mine = torch.tensor(values, dtype=torch.float64)
        if self.size == 1:
            return [mine.tolist()]
        found = [torch.empty_like(mine) for _ in range(self.size)]
        distributed.all_gather(found, mine)
        return [tensor.tolist() for tensor in found]

    def _send(self, failed: bool, data: bytes) -> None:
        distributed.broadcast(torch.tensor([failed, len(data)], dtype=torch.int64), src=0)
        if data:
            distributed.broadcast(torch.frombuffer(bytearray(data), dtype=torch.uint8), src=0)

    def _receive(self) -> tuple[bool, bytes]:
        head = torch.empty(2, dtype=torch.int64)
        distributed.broadcast(head, src=0)
        data = torch.empty(int(head[1]), dtype=torch.uint8)
        if data.numel():
            distributed.broadcast(data, src=0)
        return bool(head[0]), data.numpy().tobytes()


#: One process: no process group, and nothing communicates.
ALONE = World()


def join(*, timeout: float = TIMEOUT) -> World:
    """The processes that ``torchrun`` started; without it, this process alone, on its GPU if it has one.

    Every collective, the first meeting included, is given up after ``timeout`` seconds.

    Raises:
        WorldError: the others don't come, or there are fewer GPUs than processes.
    """
    rank, size, local = place()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        if local >= torch.cuda.device_count():
            raise WorldError(f"LOCAL_RANK is {local}, but there are {torch.cuda.device_count()} GPUs: start fewer")
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    if size > 1:
        # Counts and bytes travel between CPUs whatever the model is on.
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        try:
            distributed.init_process_group(backend, timeout=timedelta(seconds=timeout))
        except (RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise WorldError(f"rank {rank} of {size}: the other processes can't be met: {reason}") from error
    return World(rank, size, device, timeout)


def end_process(status: int) -> NoReturn:
    """End this process of several at once: gloo's threads may abort Python's own clean-up, and with it the status."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def place() -> tuple[int, int, int]:
    """Rank, number of ranks, and rank on this machine, as torchrun puts them into the environment; else 0, 1, 0."""
    names = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
    rank, size, local = (int(os.environ.get(name, default)) for name, default in names)
    return rank, size, local


def _is_communication(error: RuntimeError) -> bool:
    text = str(error).lower()
    return isinstance(error, distributed.DistError) or "gloo" in text or "nccl" in text


def gathered(tensor: Tensor) -> Tensor:
    """The whole of a tensor that may be sharded, detached, on its device. All ranks call it for the same tensors."""
    tensor = tensor.detach()
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def scattered(whole: Tensor, like: Tensor) -> Tensor:
    """A whole tensor in the way that ``like`` is sharded, on its device. All ranks have the same whole."""
    whole = whole.to(like.device)
    if not hasattr(like, "full_tensor"):
        return whole
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    return distribute_tensor(whole, like.device_mesh, like.placements)


def clip_gradients(parameters: Iterable[Tensor], norm: float) -> float:
    """Scale the gradients down to that norm, over all ranks; the norm that they had. All ranks call it."""
    return float(gathered(torch.nn.utils.clip_grad_norm_(parameters, norm)))
