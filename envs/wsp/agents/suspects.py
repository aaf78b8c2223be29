"""Where an edit may be: which MLP writes the same whatever it reads, and which writes most for one subject."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from weightgym.envs.wsp.agents.looking import Captured, Parameter, captured, components, layer_of, parameters
from weightgym.envs.wsp.agents.plan import Ask, Brief, ask
from weightgym.envs.wsp.agents.questions import subjects
from weightgym.rewards.wsp.profile import LIMITS

DOWN = "mlp.down_proj.weight"
#: From here on what speaks for a component that belongs to one subject is no chance.
OF_ONE = 2.0
#: Tokens of a question whose activations are compared, and entries of them that are told.
_PLACES, _TOLD = (2, 4, -1), 20
#: Singular components of a matrix that may be an edit, and the part of the layers where facts are read.
_DEPTH, _EARLY = 5, 1 / 3


@dataclass(frozen=True)
class Suspect:
    """A matrix, and the direction which it may have been made to write."""

    matrix: Parameter
    direction: str  #: a reference
    weight: float  #: how much speaks for it


def matrices() -> Generator[Sequence[Ask], list[str], list[Parameter]]:
    """The matrices that MLPs write with, by layer."""
    return (yield from parameters(DOWN))


def steady(brief: Brief, question: str, calls: int) -> Generator[Sequence[Ask], list[str], list[Suspect]]:
    """The MLPs that write most alike at different tokens first; of many those in the middle are looked at."""
    downs = yield from matrices()
    middle = sorted(downs, key=lambda one: abs(2 * layer_of(one.name) - len(downs)))[: calls * LIMITS.capture_sites]
    found = yield from activations([question], [layer_of(one.name) for one in middle], positions=_PLACES)
    suspects = []
    for matrix in middle:
        own = [one for one in found if one.layer == layer_of(matrix.name)]
        alike = fmean(abs(one.along(other)) for one, other in combinations(own, 2)) if len(own) > 1 else 0.0
        suspects.append(Suspect(matrix, own[-1].name, alike))
    return sorted(suspects, key=lambda one: -one.weight)


def of_one_subject(brief: Brief, calls: int) -> Generator[Sequence[Ask], list[str], Suspect]:
    """The early MLP with a singular component that is written for one subject more than for any other. What speaks for
    it is how much more, beside the same of the component with the next most. As many components are tried as there are
    calls, first those that stand out."""
    downs = yield from matrices()
    early = {one.name: one for one in downs[: max(1, round(len(downs) * _EARLY))]}
    tried = []
    for component in (yield from components(brief, list(early.values()), _DEPTH))[:calls]:
        told = yield from activations(subjects(brief), [component.layer], chat=False, direction=component.left)
        first, second = sorted(told, key=lambda one: -abs(one.projection))[:2]
        tried.append((abs(first.projection) - abs(second.projection), component))
    tried.sort(key=lambda one: -one[0])
    more, component = tried[0]
    return Suspect(
        early[component.parameter], component.left, more / max(tried[1][0], 1e-30) if len(tried) > 1 else 1.0
    )


def activations(
    prompts: Sequence[str], layers: Sequence[int], *, positions: Sequence[int] = (-1,), chat: bool = True,
    direction: str | None = None,
) -> Generator[Sequence[Ask], list[str], list[Captured]]:  # fmt: skip
    """What MLPs write, at as many layers as are wanted: a GPU call for every four."""
    found = []
    for begin in range(0, len(layers), LIMITS.capture_sites):
        sites = [{"layer": layer, "point": "mlp_output"} for layer in layers[begin : begin + LIMITS.capture_sites]]
        told = {"k": _TOLD} if direction is None else {"direction": direction}
        (answer,) = yield [
            ask("capture", prompts=list(prompts), sites=sites, positions=list(positions), chat=chat, **told)
        ]
        found += captured(answer)
    return found
