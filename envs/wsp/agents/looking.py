"""What agents look up, and how they read the answers."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from weightgym.envs.wsp.agents.plan import Ask, Brief, ask

Looks = Generator[Sequence[Ask], list[str], list[str]]

_PARAMETER = re.compile(r"(\S+) (\d+(?:×\d+)*)", re.ASCII)
_NUMBERED = re.compile(r"(\d+): ([-+]?[\d.]+(?:e[-+]?\d+)?)", re.ASCII)
_CAPTURED = re.compile(r"#(\d+): prompt (\d+), layer (\d+) [^:]*: (?:projection ([-+.e\d]+))?(.*)", re.ASCII)
_NORM = re.compile(r"norm ([-+.e\d]+)", re.ASCII)
_ENTRY = re.compile(r"(\d+):([-+][.e\d]+(?:[-+]\d+)?)", re.ASCII)
_MORE = re.compile(r"\[more: offset=(\d+)\]")


@dataclass(frozen=True)
class Parameter:
    """A parameter as the list has it."""

    name: str
    shape: tuple[int, ...]


def in_turns(brief: Brief, asked: Sequence[Ask]) -> Looks:
    """The answers to any number of calls, as many a message as are run."""
    answers: list[str] = []
    for begin in range(0, len(asked), brief.at_once):
        answers += yield asked[begin : begin + brief.at_once]
    return answers


def parameters(contains: str) -> Generator[Sequence[Ask], list[str], list[Parameter]]:
    """The parameters whose names contain a text."""
    found: list[Parameter] = []
    offset: int | None = 0
    while offset is not None:
        (answer,) = yield [ask("list_parameters", contains=contains, offset=offset)]
        for line in answer.splitlines():
            if read := _PARAMETER.fullmatch(line):
                found.append(Parameter(read[1], tuple(map(int, read[2].split("×")))))
        more = _MORE.search(answer)
        offset = int(more[1]) if more else None
    return found


def numbered(answer: str) -> dict[int, float]:
    """The lines ``index: value`` of an answer, in their order; those before any heading that follows them."""
    found: dict[int, float] = {}
    for line in answer.splitlines():
        if read := _NUMBERED.fullmatch(line):
            found.setdefault(int(read[1]), float(read[2]))
    return found


@dataclass(frozen=True)
class Component:
    """A singular component of a matrix."""

    parameter: str
    number: int
    stands_out: float  #: its singular value over the next one

    @property
    def layer(self) -> int:
        """Of its matrix."""
        return layer_of(self.parameter)

    @property
    def left(self) -> str:
        """A reference to its left vector."""
        return f"left singular vector {self.number} of {self.parameter}"


def layer_of(parameter: str) -> int:
    """The layer that a parameter's name says."""
    return int(parameter.partition("layers.")[2].partition(".")[0])


def components(
    brief: Brief, matrices: Sequence[Parameter], count: int
) -> Generator[Sequence[Ask], list[str], list[Component]]:
    """The first singular components of each matrix; those that stand out most come first."""
    asked = [ask("singular_values", parameter=one.name, k=count + 1) for one in matrices]
    found = []
    for matrix, answer in zip(matrices, (yield from in_turns(brief, asked)), strict=True):
        sizes = numbered(answer)
        found += [
            Component(matrix.name, number, sizes[number] / max(sizes[number + 1], 1e-30)) for number in range(count)
        ]
    return sorted(found, key=lambda one: -one.stands_out)


@dataclass(frozen=True)
class Captured:
    """An activation as an answer tells it."""

    number: int
    prompt: int
    layer: int
    projection: float  #: on the direction that was asked for; 0 without one
    norm: float
    largest: dict[int, float]  #: entries; none with a direction

    @property
    def name(self) -> str:
        """A reference to it."""
        return f"captured activation #{self.number}"

    def along(self, other: Captured) -> float:
        """About the cosine with another one, from the entries that both answers have."""
        shared = self.largest.keys() & other.largest.keys()
        product = math.fsum(self.largest[one] * other.largest[one] for one in shared)
        return product / max(self.norm * other.norm, 1e-30)


def captured(answer: str) -> list[Captured]:
    """The activations of an answer of ``capture``."""
    found = []
    for number, prompt, layer, projection, told in _CAPTURED.findall(answer):
        norm = _NORM.search(told)
        size = float(norm[1]) if norm else 0.0
        found.append(
            Captured(int(number), int(prompt), int(layer), float(projection or 0), size, largest_entries(told))
        )
    return found


def largest_entries(answer: str) -> dict[int, float]:
    """The entries ``index:value`` of an activation or a gradient."""
    return {int(index): float(value) for index, value in _ENTRY.findall(answer)}


def continuations(answer: str) -> list[str]:
    """What the model wrote to each prompt."""
    return [line.partition(":")[2].strip() for line in answer.splitlines() if re.match(r"\d+:", line)]
