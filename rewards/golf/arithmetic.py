"""Constant arithmetic of a configuration, with bounded numbers: ``9**9**9`` is an error, not an hour."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NoReturn

from weightgym.rewards.golf.errors import SolutionError

#: Bits of every whole number on the way; the largest value of a configuration has 21.
MAX_BITS = 64

Number = int | float
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)


class Arithmetic:
    """Folds expressions. ``names`` are the module's constants: name, and the one expression assigned to it."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = names
        self._known: dict[str, Number] = {}
        self._open: set[str] = set()

    def value(self, node: ast.expr) -> object:
        """The value of a constant, or of +, -, *, /, //, ** on numbers and named constants.

        Raises:
            SolutionError: ``config_not_literal`` (anything else), ``check_failed`` (a number too large, no number).
        """
        if isinstance(node, ast.Constant):
            return self._bounded(node.value, node) if type(node.value) in (int, float) else node.value
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            number = self._number(node.operand)
            return -number if isinstance(node.op, ast.USub) else number
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            return self._operation(node)
        return not_literal(node, "the values of get_config must be numbers; + - * / // ** on numbers are computed")

    def _named(self, node: ast.Name) -> Number:
        name = node.id
        if name not in self._names or name in self._open or len(self._open) > 50:
            not_literal(node, f"{ascii(name)[1:-1]} is no number that the module assigns once, at its top level")
        if name not in self._known:
            self._open.add(name)
            self._known[name] = self._number(self._names[name])
            self._open.discard(name)
        return self._known[name]

    def _number(self, node: ast.expr) -> Number:
        value = self.value(node)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SolutionError("check_failed", "only numbers can be computed with", node.lineno)
        return value

    def _operation(self, node: ast.BinOp) -> Number:
        left, right = self._number(node.left), self._number(node.right)
        op = node.op
        try:
            if isinstance(op, ast.Add):
                return self._bounded(left + right, node)
            if isinstance(op, ast.Sub):
                return self._bounded(left - right, node)
            if isinstance(op, ast.Mult):
                return self._bounded(left * right, node)
            if isinstance(op, ast.Div):
                return self._bounded(left / right, node)
            if isinstance(op, ast.FloorDiv):
                return self._bounded(left // right, node)
            if (
                isinstance(left, int)
                and isinstance(right, int)
                and abs(right) * max(left.bit_length() - 1, 0) > MAX_BITS
            ):
                self._too_large(node)
            return self._bounded(left**right, node)
        except ZeroDivisionError:
            raise SolutionError("check_failed", "a division by zero", node.lineno) from None
        except OverflowError:
            self._too_large(node)

    def _bounded(self, value: object, node: ast.expr) -> Number:
        if type(value) is int and value.bit_length() <= MAX_BITS:
            return value
        if type(value) is float:
            return value
        if type(value) is int:
            self._too_large(node)
        raise SolutionError("check_failed", f"the result is no real number ({type(value).__name__})", node.lineno)

    def _too_large(self, node: ast.expr) -> NoReturn:
        raise SolutionError("check_failed", f"a number of more than {MAX_BITS} bits", node.lineno)


def not_literal(node: ast.AST, message: str) -> NoReturn:
    """Raise ``config_not_literal`` at the line of ``node``."""
    raise SolutionError("config_not_literal", message, getattr(node, "lineno", None))
