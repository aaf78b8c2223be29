"""What the solution says its artifact weighs, where the text alone shows that it can't be so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weightgym.rewards.golf.findings.view import Finding, View


def find(view: View) -> Iterator[Finding]:
    """Claims that are a constant, negative, or the length of nothing."""
    function = view.solution.functions.get("quantized_roundtrip")
    if function is None:
        return
    inner = view.scopes.inner[function]
    for node in view.all(ast.Return):
        if view.scopes.scope[node] is inner and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            for claim in _claims(view, node.value.elts[1]):
                if _is_fixed(view, claim):
                    text = "artifact_bytes is not measured on a payload"
                    yield view.finding("review", "artifact_claim", node, text)
                    break


def _claims(view: View, node: ast.expr) -> list[ast.AST]:
    """Where the number may come from; nothing if it is a name that something adds to."""
    if isinstance(node, ast.Name):
        found = view.scopes.lookup(node.id, view.scopes.scope[node])
        if any(binding.kind != "value" for _, bindings in found for binding in bindings):
            return []
    return view.resolver.values(node)


def _is_fixed(view: View, claim: ast.AST, depth: int = 0) -> bool:
    if depth > 20:
        return False
    if isinstance(claim, ast.Constant):
        return True
    if isinstance(claim, ast.UnaryOp) and isinstance(claim.op, ast.USub):
        return True
    if isinstance(claim, ast.BinOp):
        left, right = _is_fixed(view, claim.left, depth + 1), _is_fixed(view, claim.right, depth + 1)
        negative = isinstance(claim.op, ast.Mult | ast.FloorDiv) and any(
            isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.USub) for side in (claim.left, claim.right)
        )
        return (left and right) or negative
    if isinstance(claim, ast.Call) and len(claim.args) == 1:
        paths = view.resolver.paths(claim.func)
        if "builtins.int" in paths:
            return _is_fixed(view, claim.args[0], depth + 1)
        if "builtins.len" in paths:
            return _is_given(view, claim.args[0])
    return False


def _is_given(view: View, payload: ast.expr) -> bool:
    """Whether the payload is a literal that nothing is ever added to."""
    if isinstance(payload, ast.Name):
        found = view.scopes.lookup(payload.id, view.scopes.scope[payload])
        bindings = [binding for _, some in found for binding in some]
        if payload.id in view.called_on or len(bindings) != 1:
            return False
    return view.resolver.text(payload) is not None or (isinstance(payload, ast.List | ast.Tuple) and not payload.elts)
