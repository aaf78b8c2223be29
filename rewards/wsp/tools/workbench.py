"""One episode's weights on the table: what the free tools need, and how a call of one is answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.deltas import Deltas
from weightgym.rewards.wsp.edits import Floats
from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools.spectra import Wide, singular_vector
from weightgym.rewards.wsp.tools.vectors import Reference

_LAYER = re.compile(r"(.*\blayers\.)(\d+)\.(.+)")


class Tokens(Protocol):
    """The model's tokenizer, as far as tools need it."""

    def encode(self, text: str) -> list[int]:
        """Token ids, nothing added at either end."""

    def token(self, id: int) -> str:
        """One token as text."""


@dataclass
class Workbench:
    """What the tools of one episode see and change. Not for several threads at once."""

    deltas: Deltas
    tokens: Tokens
    #: Activations that GPU calls have captured, by number: float32 vectors.
    captured: list[Floats] = field(default_factory=list)

    def weight(self, name: str) -> Floats:
        """A parameter as it is now.

        Raises:
            Refused: there is none of that name.
        """
        return self.deltas.weight(name)

    def matrix(self, name: str) -> Floats:
        """A parameter of two dimensions.

        Raises:
            Refused: there is none of that name, or it is a vector.
        """
        weight = self.weight(name)
        if weight.ndim != 2:
            raise Refused(f"bad_shape: {name} is a vector, not a matrix")
        return weight

    @property
    def unembedding(self) -> str:
        """The parameter whose rows are the tokens' output directions.

        Raises:
            TaskError: the model has none under a name that we know.
        """
        for name in ("lm_head.weight", "model.embed_tokens.weight"):
            if name in self.deltas.start:
                return name
        raise TaskError("the model has neither lm_head.weight nor model.embed_tokens.weight")

    def vector(self, vector: Reference | Floats, about: str | None = None) -> Floats | Wide:
        """The numbers of a vector; ``about`` is the parameter that a reference without one means.

        Raises:
            Refused: what it refers to does not exist.
        """
        if not isinstance(vector, Reference):
            return vector
        if vector.kind == "captured":
            if vector.index >= len(self.captured):
                raise Refused(f"bad_reference: there are {len(self.captured)} captured activations, from #0")
            return self.captured[vector.index]
        name = vector.parameter or about
        if name is None:
            raise Refused(f'bad_reference: "{vector}" of which parameter? Write "{vector} of PARAMETER"')
        if vector.kind in ("left", "right"):
            return singular_vector(self.weight(name), vector.kind, vector.index, name)
        matrix = self.matrix(name)
        lines: Floats = matrix if vector.kind == "row" else matrix.T
        if vector.index >= len(lines):
            raise Refused(f"bad_reference: {name} has {vector.kind}s 0 to {len(lines) - 1}, not {vector.index}")
        found: Floats = lines[vector.index]
        return found


#: Answers a call: text for the agent, of any length.
Handler = Callable[[Workbench, Any], str]


def split_name(name: str) -> tuple[str, int, str] | None:
    """``model.layers.3.mlp.up_proj.weight`` as ``model.layers.``, 3 and ``mlp.up_proj.weight``; None without layer."""
    found = _LAYER.fullmatch(name)
    return (found[1], int(found[2]), found[3]) if found else None


def layer_count(start: Mapping[str, Floats]) -> int:
    """How many layers a model of these parameters has."""
    layers = [parts[1] for name in start if (parts := split_name(name))]
    return max(layers, default=-1) + 1


def cut(text: str, limit: int = LIMITS.result_bytes) -> str:
    """The text, or its beginning with a note that there is more."""
    raw = text.encode(errors="replace")
    if len(raw) <= limit:
        return text
    note = f"\n[cut: this is the start of {len(raw):,} bytes. Ask for less at a time.]"
    kept = raw[: limit - len(note.encode())].decode(errors="ignore")
    end = max(kept.rfind("\n"), kept.rfind(" "))
    return (kept[:end] if end > 0 else kept) + note
