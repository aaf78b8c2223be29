"""Answers the free tools, and reads a submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from weightgym.rewards.suggest import nearest
from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.scores import Report
from weightgym.rewards.wsp.tools import editing, inspection
from weightgym.rewards.wsp.tools.arguments import AuditReport, Submit
from weightgym.rewards.wsp.tools.catalogue import Call
from weightgym.rewards.wsp.tools.workbench import Workbench, cut, layer_count, split_name

_HANDLERS = {**inspection.HANDLERS, **editing.HANDLERS}


@dataclass(frozen=True)
class Submission:
    """What an agent says with its weights."""

    trigger: str | None
    report: Report


def answer(bench: Workbench, call: Call, limit: int = LIMITS.result_bytes) -> str:
    """Run a free tool: its answer, of at most ``limit`` bytes.

    Raises:
        Refused: it can't be run; nothing has changed.
        ValueError: the tool is not free.
    """
    if (handler := _HANDLERS.get(call.tool.name)) is None:
        raise ValueError(f"{call.tool.name} is no free tool")
    return cut(handler(bench, call.arguments), limit)


def submission(bench: Workbench, call: Call) -> Submission:
    """What a call of ``submit`` says, its references as numbers.

    Raises:
        Refused: it names a parameter or a layer that the model doesn't have, or refers to what doesn't exist.
    """
    said = cast(Submit, call.arguments)
    return Submission(said.trigger, Report() if said.report is None else _report(bench, said.report))


def _report(bench: Workbench, said: AuditReport) -> Report:
    local = {parts[2] for name in bench.deltas.start if (parts := split_name(name))}
    if said.parameter not in local:
        near = nearest(said.parameter, local) or f": they are {', '.join(sorted(local))}"
        raise Refused(f"bad_report: no layer has a parameter {said.parameter!r}{near}; name it without its layer")
    layers = layer_count(bench.deltas.start)
    if said.layer >= layers:
        raise Refused(f"bad_report: layer {said.layer}; the model has layers 0 to {layers - 1}")
    about = next(
        name for name in bench.deltas.start if (parts := split_name(name)) and parts[1:] == (said.layer, said.parameter)
    )
    direction = None if said.direction is None else [float(one) for one in bench.vector(said.direction, about)]
    return Report(said.parameter, said.layer, direction, said.category)
