"""The free tools that change the episode's weights, and its edit log."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weightgym.rewards.wsp.edits import Edit, Floats, Put, RankOne, Scale, frozen
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools import arguments as a
from weightgym.rewards.wsp.tools.vectors import describe, unit
from weightgym.rewards.wsp.tools.workbench import Handler, Workbench


def rank_one(bench: Workbench, call: a.RankOneUpdate) -> str:
    weight = bench.matrix(call.parameter)
    left, right = (
        np.asarray(bench.vector(vector, call.parameter), dtype=np.float64) for vector in (call.left, call.right)
    )
    if (len(left), len(right)) != weight.shape:
        raise Refused(
            f"bad_shape: left has {len(left)} values and right {len(right)}; {call.parameter} has "
            f"{weight.shape[0]} rows and {weight.shape[1]} columns"
        )
    note = f"{call.scale:g} · ({describe(call.left)}) · ({describe(call.right)})ᵀ"
    edit = RankOne(parameter=call.parameter, note=note[:500], left=_finite(call.scale * left), right=_finite(right))
    return _done(bench, edit)


def project_out(bench: Workbench, call: a.ProjectOut) -> str:
    weight = bench.matrix(call.parameter)
    direction = bench.vector(call.direction, call.parameter)
    size = weight.shape[0 if call.side == "left" else 1]
    if len(direction) != size:
        raise Refused(
            f"bad_shape: a direction of {len(direction)} values; the {call.side} of {call.parameter} has {size}"
        )
    if (plain := unit(direction)) is None:
        raise Refused("bad_direction: it is zero")
    wide = weight.astype(np.float64)
    left, right = (-plain, plain @ wide) if call.side == "left" else (-(wide @ plain), plain)
    note = f"projected out on the {call.side}: {describe(call.direction)}"
    return _done(bench, RankOne(parameter=call.parameter, note=note[:500], left=_finite(left), right=_finite(right)))


def scale(bench: Workbench, call: a.ScaleLines) -> str:
    edit = Scale(parameter=call.parameter, axis=call.axis, indices=tuple(call.indices), factor=call.factor)
    return _done(bench, edit)


def zero(bench: Workbench, call: a.ZeroLines) -> str:
    return _done(bench, Scale(parameter=call.parameter, axis=call.axis, indices=tuple(call.indices), factor=0.0))


def set_slice(bench: Workbench, call: a.SetSlice) -> str:
    weight = bench.weight(call.parameter)
    columns = call.columns
    if weight.ndim == 2 and columns is None:
        columns = (0, weight.shape[1])
    ranges = [call.rows] if columns is None else [call.rows, columns]
    block = tuple(max(end - begin, 0) for begin, end in ranges)
    values = call.values
    if len(block) == 2 and values.ndim == 1:  # one row
        values = values[None]
    if values.ndim and values.shape != block:
        want = "×".join(map(str, block))
        raise Refused(f"bad_shape: values of shape {'×'.join(map(str, values.shape))} for a block of {want}")
    return _done(bench, Put(parameter=call.parameter, rows=call.rows, columns=columns, values=values))


def undo(bench: Workbench, call: a.Undo) -> str:
    return f"undone: {_told(bench.deltas.undo())}\n{_count(bench)}"


def reset(bench: Workbench, call: a.Reset) -> str:
    return f"{bench.deltas.reset()} edits taken back\n{_count(bench)}"


def edit_log(bench: Workbench, call: a.EditLog) -> str:
    lines = [f"{number}: {_told(edit)}" for number, edit in enumerate(bench.deltas.edits)]
    counts = [f"{name}: {count:,} elements differ" for name, count in bench.deltas.changed_by_parameter.items()]
    return "\n".join([_count(bench), *counts, f"{len(lines)} edits", *lines])


def _done(bench: Workbench, edit: Edit) -> str:
    bench.deltas.apply(edit)
    return f"done: {_told(edit)}\n{_count(bench)}"


def _told(edit: Edit) -> str:
    if isinstance(edit, RankOne):
        return f"{edit.parameter} += {edit.note}"
    if isinstance(edit, Scale):
        lines = " ".join(map(str, edit.indices[:8])) + (" …" if len(edit.indices) > 8 else "")
        return f"{edit.parameter}: {edit.axis} {lines} times {edit.factor:g}"
    ranges = [edit.rows] if edit.columns is None else [edit.rows, edit.columns]
    return f"{edit.parameter}[{', '.join(f'{begin}:{end}' for begin, end in ranges)}] set"


def _count(bench: Workbench) -> str:
    return f"{bench.deltas.changed:,} of at most {bench.deltas.limit:,} elements differ from the start"


def _finite(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Floats:
    try:
        return frozen(values)
    except ValueError as error:
        raise Refused("not_finite: the vectors, scaled, go beyond float32") from error


HANDLERS: Mapping[str, Handler] = {
    "rank_one": rank_one,
    "project_out": project_out,
    "scale": scale,
    "zero": zero,
    "set_slice": set_slice,
    "undo": undo,
    "reset": reset,
    "edit_log": edit_log,
}
