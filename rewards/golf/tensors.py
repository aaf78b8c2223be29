"""Tensors that came out of a sandbox, as NumPy arrays. What arrives is believed in nothing but its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightgym.rewards.contracts import ModelError
from weightgym.rewards.sandbox import Tensor as SentTensor

#: Names that frames use, and how NumPy holds such a tensor. It has no bfloat16: the 16 bits stand for it.
DTYPES: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"), "float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "bfloat16": np.dtype("<u2"),
    "int64": np.dtype("<i8"), "int32": np.dtype("<i4"), "int16": np.dtype("<i2"), "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"), "bool": np.dtype("?"),
}  # fmt: skip
MAX_TENSORS = 4096
_PREFIX = "state:"


class StateError(ModelError):
    """The tensors that a phase sent are no state that can be loaded."""


@dataclass(frozen=True)
class Tensor:
    """A tensor: ``dtype`` is a key of ``DTYPES``, ``array`` has the NumPy dtype that stands for it."""

    dtype: str
    array: np.ndarray[Any, Any]

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Tensor:
        """The array under its own dtype.

        Raises:
            ValueError: a dtype that frames don't have.
        """
        if DTYPES.get(array.dtype.name) != array.dtype:
            raise ValueError(f"a frame can't carry an array of dtype {array.dtype}")
        return cls(array.dtype.name, array)

    @classmethod
    def received(cls, sent: SentTensor) -> Tensor:
        """The tensor of a frame; a view of its bytes.

        Raises:
            StateError: a truth value that is neither 0 nor 1, or a shape that NumPy can't hold.
        """
        raw = np.frombuffer(sent.data, np.uint8)
        if sent.dtype == "bool" and raw.size and int(raw.max()) > 1:
            raise StateError("a truth value that is neither 0 nor 1")
        try:
            return cls(sent.dtype, raw.view(DTYPES[sent.dtype]).reshape(sent.shape))
        except (ValueError, OverflowError):  # sides whose product is 0 may be of any size
            raise StateError("a tensor of a shape that is too large") from None

    def to_send(self) -> SentTensor:
        """As a frame carries it."""
        flat = np.ascontiguousarray(self.array).reshape(-1)
        return SentTensor(self.dtype, self.array.shape, flat.view(np.uint8).data if flat.size else b"")


State = Mapping[str, Tensor]


def state_items(state: State) -> dict[str, SentTensor]:
    """A state as items of a frame."""
    return {_PREFIX + name: tensor.to_send() for name, tensor in state.items()}


def received_state(items: Mapping[str, Any]) -> dict[str, Tensor]:
    """The state in a frame.

    Raises:
        StateError: too many tensors, or a bad one.
    """
    sent = {name: item for name, item in items.items() if name.startswith(_PREFIX)}
    if len(sent) > MAX_TENSORS:
        raise StateError(f"more than {MAX_TENSORS} tensors")
    if not all(isinstance(item, SentTensor) for item in sent.values()):
        raise StateError("an item of the state is no tensor")
    return {name.removeprefix(_PREFIX): Tensor.received(item) for name, item in sent.items()}
