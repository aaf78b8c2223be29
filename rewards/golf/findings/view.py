"""What every family of findings works with: the solution's nodes, where they stand, and what they refer to."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from weightgym.rewards.golf.check import Solution
from weightgym.rewards.golf.paths import Resolver

Severity = Literal["illegal", "review"]
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Finding:
    """One thing that the gate found: ``code`` names the rule, ``line`` counts from 1 in the solution."""

    severity: Severity
    code: str
    line: int
    text: str


class View:
    """A checked solution, ready to be looked at."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution
        self.scopes = solution.scopes
        self.resolver = Resolver(solution.scopes)

    def all(self, kind: type[Node]) -> Iterator[Node]:
        """Every node of a type, in the order of the text."""
        for known, nodes in self._by_type.items():
            if issubclass(known, kind):
                yield from nodes  # type: ignore[misc]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that holds this one."""
        return self.scopes.parent.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold this one, from the inside out."""
        while (up := self.scopes.parent.get(node)) is not None:
            yield up
            node = up

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The def around the node."""
        for up in self.above(node):
            if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
                return up
        return None

    def in_training_branch(self, node: ast.AST) -> bool:
        """Whether the node stands in the body of ``if self.training:`` (or after ``and``), not in its else."""
        below = node
        for up in self.above(node):
            if isinstance(up, ast.If) and below in up.body and _asks_training(up.test):
                return True
            if isinstance(up, ast.IfExp) and below is up.body and _asks_training(up.test):
                return True
            below = up
        return False

    @cached_property
    def dead(self) -> set[ast.AST]:
        """Nodes under ``if __name__ == "__main__":``, which never run where the file is imported."""
        if any(isinstance(node, ast.Name) and node.id == "__name__" and not isinstance(node.ctx, ast.Load)
               for node in self.all(ast.Name)):  # fmt: skip
            return set()
        top = self.scopes.module.node
        guards = [node for node in self.all(ast.If) if self.parent(node) is top and _is_main_guard(node.test)]
        return {inner for guard in guards for statement in guard.body for inner in ast.walk(statement)}

    @cached_property
    def called_on(self) -> set[str]:
        """Names of which an attribute is used: a method may have changed them."""
        return {node.value.id for node in self.all(ast.Attribute) if isinstance(node.value, ast.Name)}

    @cached_property
    def docstrings(self) -> set[ast.AST]:
        """Constants that are statements of their own."""
        return {node.value for node in self.all(ast.Expr) if isinstance(node.value, ast.Constant)}

    def finding(self, severity: Severity, code: str, node: ast.AST, text: str) -> Finding:
        """A finding at a node; in code that never runs it is for review at most."""
        where = node
        while not hasattr(where, "lineno"):
            where = self.scopes.parent.get(where, ast.Pass(lineno=1))
        if node in self.dead:
            severity = "review"
        return Finding(severity, code, where.lineno, text)

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in self.scopes.nodes:
            found[type(node)].append(node)
        return dict(found)


def _asks_training(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_asks_training, test.values))
    return isinstance(test, ast.Attribute) and test.attr == "training"


def _is_main_guard(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    left, right = test.left, test.comparators[0]
    return (
        isinstance(left, ast.Name)
        and left.id == "__name__"
        and isinstance(right, ast.Constant)
        and right.value == "__main__"
    )
