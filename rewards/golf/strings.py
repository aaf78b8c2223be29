"""Texts that an expression spells out: constants, and what concatenation, formatting and slicing make of them."""

from __future__ import annotations

import ast
from collections.abc import Callable

_MAX = 200


def words(text: str) -> frozenset[str]:
    """The words of a text, as tables of names are written here."""
    return frozenset(text.split())


#: The text that an expression certainly is, found before; it calls ``spelled`` for what it doesn't know yet.
Text = Callable[[ast.AST], "str | None"]


def spelled(node: ast.AST, text: Text) -> str | None:
    """The text that ``node`` makes of the texts of its parts, or None; at most 200 characters of it."""
    if isinstance(node, ast.Constant):
        value = node.value[:_MAX].decode("latin-1") if isinstance(node.value, bytes) else node.value
        return value[:_MAX] if isinstance(value, str) else None
    if isinstance(node, ast.NamedExpr):
        return text(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([text(node.left), text(node.right)], "")
    if isinstance(node, ast.JoinedStr):
        return _joined([_field(one, text) for one in node.values], "")
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _sliced(node.slice, text(node.value))
    if isinstance(node, ast.Call):
        return _called(node, text)
    return None


def _field(node: ast.expr, text: Text) -> str | None:
    if isinstance(node, ast.FormattedValue):
        return text(node.value) if node.format_spec is None and node.conversion == -1 else None
    return text(node)


def _joined(parts: list[str | None], by: str) -> str | None:
    whole = [part for part in parts if part is not None]
    return by.join(whole)[:_MAX] if len(whole) == len(parts) else None


def _sliced(index: ast.Slice, whole: str | None) -> str | None:
    try:
        bounds = [None if one is None else _index(one) for one in (index.lower, index.upper, index.step)]
        return None if whole is None else whole[slice(*bounds)]
    except ValueError:  # no number, or a step of 0
        return None


def _index(node: ast.expr) -> int:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_index(node.operand)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise ValueError("no constant index")


def _called(node: ast.Call, text: Text) -> str | None:
    if isinstance(node.func, ast.Name) and len(node.args) == 1:
        value = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        if node.func.id == "chr" and type(value) is int and 0 <= value < 0x110000:
            return chr(value)
        return text(node.args[0]) if node.func.id == "str" else None
    if not isinstance(node.func, ast.Attribute):
        return None
    base = text(node.func.value)
    if base is None:
        return None
    if node.func.attr == "join" and len(node.args) == 1:
        return _join(base, node.args[0], text)
    simple: dict[str, Callable[[str], str]] = {
        "lower": str.lower,
        "upper": str.upper,
        "strip": str.strip,
        "decode": str,
        "encode": str,
    }
    if node.func.attr in simple and (not node.args or node.func.attr in ("decode", "encode")):
        return simple[node.func.attr](base)
    texts = [one for one in map(text, node.args[:3]) if one is not None]
    if node.func.attr == "replace" and len(texts) == len(node.args) == 2 and texts[0]:
        return base.replace(texts[0], texts[1])[:_MAX]
    return None


def _join(by: str, items: ast.expr, text: Text) -> str | None:
    if isinstance(items, ast.List | ast.Tuple):
        return _joined([text(one) for one in items.elts], by)
    if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.func.id == "reversed" and items.args:
        turned = text(items.args[0])
        return None if turned is None else by.join(reversed(turned))[:_MAX]
    return None
