"""A slow judge of the edits language: Python's own parser for the syntax, NumPy for indices and broadcasting.

It shares no code with the parser under test but the shapes of the tensors. It says only whether an answer is valid
and what weights it gives.
"""

from __future__ import annotations

import ast
import warnings

import numpy as np

from weightgym.rewards.weight_program.network import SHAPES, Weights, tensors, zero_weights

_MAX_STATEMENTS = 20_000


class Refused(Exception):
    """The answer is no valid program."""


def judge(answer: str) -> Weights | None:
    """The weights that the answer programs, or None when it is invalid."""
    try:
        body = _parse(_last_block(answer)).body
        if not 0 < len(body) <= _MAX_STATEMENTS:
            raise Refused
        weights = zero_weights()
        for statement in body:
            _apply(tensors(weights), statement)
    except Refused:
        return None
    return weights


def _last_block(answer: str) -> str:
    lines = answer.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for row in range(len(lines) - 1, -1, -1):
        bare = lines[row].lstrip(" \t")
        info = bare.lstrip("`")
        ticks = len(bare) - len(info)
        words = info.replace("\t", " ").split(" ")
        if ticks >= 3 and "`" not in info and [word for word in words if word][:1] == ["edits"]:
            return _content(lines[row + 1 :], ticks, len(lines[row]) - len(bare))
    raise Refused


def _content(lines: list[str], ticks: int, indent: int) -> str:
    content: list[str] = []
    for line in lines:
        bare = line.strip(" \t")
        if len(bare) >= ticks and set(bare) == {"`"}:
            return "".join(content)
        for _ in range(indent):
            line = line[1:] if line[:1] in (" ", "\t") else line
        content.append(line + "\n")
    raise Refused


def _parse(source: str) -> ast.Module:
    # Parentheses and non-ASCII are allowed in comments only; "$" is the same to Python.
    source = "".join(char if char.isascii() and char not in "()" else "$" for char in source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused from error


def _apply(weights: dict[str, Weights], statement: ast.stmt) -> None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, sign = statement.targets[0], 0
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add | ast.Sub):
        target, sign = statement.target, 1 if isinstance(statement.op, ast.Add) else -1
    else:
        raise Refused
    name = target.value if isinstance(target, ast.Subscript) else target
    if not isinstance(name, ast.Name) or name.id not in SHAPES:
        raise Refused
    tensor = weights[name.id]
    key = _key(target.slice, tensor.ndim) if isinstance(target, ast.Subscript) else ()
    try:
        old = np.array(tensor[key])
        new = np.broadcast_to(_value(statement.value), old.shape)
    except (IndexError, ValueError) as error:
        raise Refused from error
    with np.errstate(all="ignore"):
        new = old + new if sign > 0 else old - new if sign < 0 else new
    if not np.isfinite(new).all():
        raise Refused
    tensor[key] = new


def _key(node: ast.expr, axes: int) -> tuple[int | slice | list[int], ...]:
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    if not 1 <= len(nodes) <= axes:
        raise Refused
    return tuple(_index(node) for node in nodes)


def _index(node: ast.expr) -> int | slice | list[int]:
    if isinstance(node, ast.Slice):
        parts = [None if part is None else _integer(part) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)
    if isinstance(node, ast.List) and node.elts:
        return [_integer(element) for element in node.elts]
    return _integer(node)


def _integer(node: ast.expr) -> int:
    value = _number(node)
    if not isinstance(value, int):
        raise Refused
    return value


def _number(node: ast.expr) -> int | float:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -_number(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    raise Refused


def _value(node: ast.expr) -> Weights:
    """Raises ``ValueError`` when the lists are ragged."""
    with np.errstate(all="ignore"):
        value = np.array(_nested(node), dtype=np.float64).astype(np.float32)
    if not np.isfinite(value).all():
        raise Refused
    return value


def _nested(node: ast.expr) -> object:
    if isinstance(node, ast.List):
        if not node.elts:
            raise Refused
        return [_nested(element) for element in node.elts]
    try:
        return float(_number(node))
    except OverflowError as error:
        raise Refused from error
