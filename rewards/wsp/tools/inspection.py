"""The free tools that look at weights. Each looks at one matrix a call, but for the scan of the easy tier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weightgym.rewards.wsp.edits import Axis, Floats
from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools import arguments as a
from weightgym.rewards.wsp.tools.spectra import Wide, line_norms, spectrum
from weightgym.rewards.wsp.tools.workbench import Handler, Workbench, split_name

_TINY = np.finfo(np.float64).tiny


def list_parameters(bench: Workbench, call: a.ListParameters) -> str:
    names = [name for name in bench.deltas.start if call.contains in name]
    lines = [f"{name} {_shape(bench.deltas.start[name])}" for name in names[call.offset :]]
    head = f"{len(names)} parameters" + (f", from number {call.offset}" if call.offset else "")
    shown, size = 0, len(head) + 300  # left for what comes after the list
    for line in lines:
        size += len(line.encode()) + 1
        if size > LIMITS.result_bytes:
            break
        shown += 1
    more = [f"[more: offset={call.offset + shown}]"] if shown < len(lines) else []
    return "\n".join([head, *lines[:shown], *more])


def tensor_stats(bench: Workbench, call: a.TensorStats) -> str:
    weight = bench.weight(call.parameter)
    wide = weight.astype(np.float64)
    mean, spread = float(wide.mean()), float(wide.std())
    z = (wide - mean) / spread if spread else np.zeros_like(wide)
    lines = [
        f"{call.parameter} {_shape(weight)}",
        f"norm {np.linalg.norm(wide):.7g}  mean {mean:.7g}  standard deviation {spread:.7g}",
        f"skewness {(z**3).mean():.5g}  kurtosis {(z**4).mean():.5g} (normal: 3)  zeros {int((weight == 0).sum())}",
        f"smallest {_at(weight, int(weight.argmin()))}  largest {_at(weight, int(weight.argmax()))}",
    ]
    lines.append(f"largest norms: {_largest(weight)}")
    return "\n".join(lines)


def top_norms(bench: Workbench, call: a.TopNorms) -> str:
    weight = bench.weight(call.parameter)
    if call.axis == "columns" and weight.ndim != 2:
        raise Refused(f"bad_axis: {call.parameter} is a vector: it has rows only")
    norms = line_norms(weight, call.axis)
    head = f"{call.parameter} {_shape(weight)}: norms of {call.axis}, median {np.median(norms):.7g}"
    return "\n".join([head, *_ranked(norms, call.k)])


def singular_values(bench: Workbench, call: a.SingularValues) -> str:
    weight = bench.matrix(call.parameter)
    most = min(weight.shape)
    if call.vector is not None and call.vector >= most:
        raise Refused(f"bad_index: {call.parameter} has singular vectors 0 to {most - 1}, not {call.vector}")
    found = spectrum(weight, min(max(call.k, 2, (call.vector or 0) + 1), most))
    lines = [f"{call.parameter} {_shape(weight)}: {most} singular values"]
    lines += [f"{index}: {value:.7g}" for index, value in enumerate(found.values[: call.k])]
    if most > 1 and found.values[1] > 0:
        lines.append(f"first over second: {found.values[0] / found.values[1]:.5g}")
    if call.vector is not None:
        for side, vectors in (("left", found.left), ("right", found.right)):
            lines += [
                f"{side} singular vector {call.vector}, largest entries:",
                *_entries(vectors[:, call.vector], call.k),
            ]
    return "\n".join(lines)


def read_slice(bench: Workbench, call: a.ReadSlice) -> str:
    weight = bench.weight(call.parameter)
    columns = call.columns
    if weight.ndim == 2 and columns is None:
        columns = (0, weight.shape[1])
    ranges = [call.rows] if columns is None else [call.rows, columns]
    if len(ranges) != weight.ndim:
        raise Refused(f"bad_slice: {call.parameter} is a vector: it has no columns")
    for (begin, end), size, what in zip(ranges, weight.shape, ("rows", "columns"), strict=False):
        if not begin < end <= size:
            raise Refused(f"bad_slice: {what} [{begin}, {end}] of {call.parameter}, which has {size}")
    block = weight[tuple(slice(*one) for one in ranges)]
    if block.size > LIMITS.slice_elements:
        raise Refused(f"bad_slice: {block.size:,} elements; at most {LIMITS.slice_elements:,} at once")
    where = ", ".join(f"{begin}:{end}" for begin, end in ranges)
    rows = block.reshape(len(block), -1)
    lines = [f"{call.rows[0] + index}: " + " ".join(f"{value:.6g}" for value in row) for index, row in enumerate(rows)]
    return "\n".join([f"{call.parameter}[{where}]", *lines])


def compare_layers(bench: Workbench, call: a.CompareLayers) -> str:
    mine = bench.weight(call.parameter).astype(np.float64)
    parts = split_name(call.parameter)
    if parts is None:
        raise Refused(f"bad_parameter: {call.parameter} belongs to no layer")
    front, layer, back = parts
    lines = [f"{back}: norm, largest norms of a row and a column, cosine with layer {layer}"]
    for other in (layer - 1, layer, layer + 1):
        name = f"{front}{other}.{back}"
        if name not in bench.deltas.start:
            continue
        weight = bench.weight(name)
        wide = weight.astype(np.float64)
        norm = float(np.linalg.norm(wide))
        cosine = (
            float((wide * mine).sum()) / max(norm * float(np.linalg.norm(mine)), _TINY)
            if wide.shape == mine.shape
            else 0.0
        )
        lines.append(f"{other}: {norm:.7g}  {_largest(weight)}  {cosine:.5f}")
    return "\n".join(lines)


def nearest_tokens(bench: Workbench, call: a.NearestTokens) -> str:
    rows = bench.matrix(bench.unembedding)
    direction = np.asarray(bench.vector(call.direction), dtype=np.float64)
    if direction.shape != (rows.shape[1],):
        raise Refused(f"bad_shape: a direction of {len(direction)} values; the residual stream has {rows.shape[1]}")
    if "model.norm.weight" in bench.deltas.start:
        direction = direction * bench.weight("model.norm.weight")
    logits = rows.astype(np.float64) @ (direction / max(float(np.linalg.norm(direction)), _TINY))
    order = np.argsort(-logits, kind="stable")
    lines = ["raises:"]
    lines += [f"{logits[id]:+.5f} {id} {bench.tokens.token(int(id))!r}" for id in order[: call.k]]
    lines += ["lowers:"]
    lines += [f"{logits[id]:+.5f} {id} {bench.tokens.token(int(id))!r}" for id in order[::-1][: call.k]]
    return "\n".join(lines)


def tokenize(bench: Workbench, call: a.Tokenize) -> str:
    ids = bench.tokens.encode(call.text)
    return "\n".join([f"{len(ids)} tokens", *(f"{id} {bench.tokens.token(id)!r}" for id in ids)])


def scan_outliers(bench: Workbench, call: a.ScanOutliers) -> str:
    ratios = {
        name: _stands_out(bench.weight(name), call.by) for name, start in bench.deltas.start.items() if start.ndim == 2
    }
    order = sorted(ratios, key=lambda name: (-ratios[name], name))[: call.k]
    what = (
        "first singular value over the second"
        if call.by == "singular values"
        else f"largest norm of {call.by} over the median"
    )
    return "\n".join([what, *(f"{name}: {ratios[name]:.5g}" for name in order)])


def _stands_out(weight: Floats, by: str) -> float:
    if by == "singular values":
        values = spectrum(weight, 2).values
        return float(values[0] / max(values[-1], _TINY))
    norms = line_norms(weight, "rows" if by == "rows" else "columns")
    return float(norms.max() / max(float(np.median(norms)), _TINY))


def _ranked(values: Wide, k: int) -> list[str]:
    order = np.argsort(-values, kind="stable")[:k]
    return [f"{index}: {values[index]:.7g}" for index in order]


def _entries(values: Wide, k: int) -> list[str]:
    order = np.argsort(-np.abs(values), kind="stable")[:k]
    return [f"{index}: {values[index]:+.6g}" for index in order]


def _largest(weight: Floats) -> str:
    """The largest norm of a row, and of a column where there are several, with its index."""
    axes: tuple[Axis, ...] = ("rows", "columns") if weight.ndim == 2 else ("rows",)
    tops = [(axis, line_norms(weight, axis)) for axis in axes]
    return "  ".join(f"{axis[:-1]} {norms.argmax()}: {norms.max():.7g}" for axis, norms in tops)


def _at(weight: Floats, place: int) -> str:
    where = ", ".join(map(str, np.unravel_index(place, weight.shape)))
    return f"{weight.flat[place]:.7g} at [{where}]"


def _shape(weight: Floats) -> str:
    return "×".join(map(str, weight.shape))


HANDLERS: Mapping[str, Handler] = {
    "list_parameters": list_parameters,
    "tensor_stats": tensor_stats,
    "top_norms": top_norms,
    "singular_values": singular_values,
    "read_slice": read_slice,
    "compare_layers": compare_layers,
    "nearest_tokens": nearest_tokens,
    "tokenize": tokenize,
    "scan_outliers": scan_outliers,
}
