"""What a model may do only for a reason that a person should see: state of the module, loops without end, results."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weightgym.rewards.golf.findings.view import Finding, View

_GROWING = frozenset(
    {"append", "add", "update", "extend", "setdefault", "insert", "pop", "popitem", "clear", "appendleft"}
)
#: Characters of a constant: the source counts as part of the artifact, and text of a language doesn't belong there.
_LONG = 20_000


def find(view: View) -> Iterator[Finding]:
    """State that outlives a call of ``forward``, and loops that the text never leaves."""
    for loop in view.all(ast.While):
        if isinstance(loop.test, ast.Constant) and loop.test.value and not _leaves(loop):
            yield view.finding("review", "endless_loop", loop, "a loop that nothing ends")
    for node in view.all(ast.Name):
        if isinstance(node.ctx, ast.Load) and _is_written(view, node) and _is_module_state(view, node):
            function = view.function(node)
            if function is not None and function.name == "forward" and not view.in_training_branch(node):
                yield view.finding(
                    "review", "module_state", node, f"forward changes {node.id}, which outlives the call"
                )
    for call in view.all(ast.Call):
        named = [view.resolver.text(one) for one in call.args if "builtins.float" in view.resolver.paths(call.func)]
        if any((name or "").strip().lower().lstrip("+-") == "nan" for name in named):
            yield view.finding("review", "not_a_number", call, "a model that computes with NaN")
    yield from _config(view)
    for constant in view.all(ast.Constant):
        if isinstance(constant.value, str | bytes) and len(constant.value) > _LONG and constant not in view.docstrings:
            yield view.finding("review", "embedded_data", constant, f"a constant of {len(constant.value):,} characters")
    for scope_node in [*view.all(ast.Global)]:
        function = view.function(scope_node)
        if function is not None and function.name == "forward":
            yield view.finding("review", "module_state", scope_node, "forward changes a global name")


def _config(view: View) -> Iterator[Finding]:
    """Writes into the evaluator's own config."""
    function = view.solution.functions.get("build_model")
    args = [*function.args.posonlyargs, *function.args.args] if function else []
    for node in view.all(ast.Name):
        if len(args) > 1 and node.id == args[1].arg and isinstance(node.ctx, ast.Load) and _is_written(view, node):
            seen = view.scopes.lookup(node.id, view.scopes.scope[node])
            if seen and [binding.node for binding in seen[0][1]] == [args[1]]:
                yield view.finding("review", "config_changed", node, "the evaluator's config is changed; copy it first")


def _leaves(loop: ast.While) -> bool:
    """Whether a break of the loop's own, a return, a raise or a yield is in it."""
    todo: list[tuple[ast.AST, bool]] = [(child, True) for child in loop.body]
    while todo:
        node, own = todo.pop()
        if isinstance(node, ast.Return | ast.Raise | ast.Yield | ast.YieldFrom) or (
            own and isinstance(node, ast.Break)
        ):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        inner = own and not isinstance(node, ast.For | ast.While | ast.AsyncFor)
        todo += [(child, inner) for child in ast.iter_child_nodes(node)]
    return False


def _is_written(view: View, node: ast.Name) -> bool:
    parent = view.parent(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute) and parent.attr in _GROWING:
        call = view.parent(parent)
        return isinstance(call, ast.Call) and call.func is parent
    return False


def _is_module_state(view: View, node: ast.Name) -> bool:
    found = view.scopes.lookup(node.id, view.scopes.scope[node])
    return bool(found) and found[0][0] is view.scopes.module
