"""What kind of idea a solution is: the advisory ``method_profile`` of the rules."""

from __future__ import annotations

import ast
from typing import Literal

from weightgym.rewards.golf.check import Solution
from weightgym.rewards.golf.config import DEFAULTS, SHAPE_KEYS

Method = Literal["baseline", "config_only", "architecture_shape", "new_computation", "compression_serialization"]


def method_profile(solution: Solution) -> tuple[Method, ...]:
    """The kinds of change, the furthest-reaching first; ``("baseline",)`` if nothing differs from the defaults.

    An extension function that returns nothing but None changes nothing.
    """
    found: list[Method] = []
    if _extends(solution, "build_model"):
        found.append("new_computation")
    if _extends(solution, "quantized_roundtrip"):
        found.append("compression_serialization")
    changed = {name for name, value in solution.config.items() if value != DEFAULTS[name]}
    if changed & SHAPE_KEYS and "new_computation" not in found:  # sizes of another model are no change of shape
        found.append("architecture_shape")
    if not found and changed:
        found.append("config_only")
    return tuple(found) or ("baseline",)


def _extends(solution: Solution, name: str) -> bool:
    function = solution.functions.get(name)
    if function is None:
        return False
    inner = solution.scopes.inner[function]
    returns = [
        node.value
        for node in solution.scopes.nodes
        if isinstance(node, ast.Return) and node.value is not None and solution.scopes.scope[node] is inner
    ]
    return any(not (isinstance(value, ast.Constant) and value.value is None) for value in returns)
