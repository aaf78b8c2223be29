"""Training inside a solution: optimisers and gradients are the evaluator's.

Defining an ``autograd.Function`` is honest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weightgym.rewards.golf.findings.view import Finding, View
from weightgym.rewards.golf.strings import words

_HOOKS = words(
    "register_hook register_full_backward_hook register_full_backward_pre_hook register_backward_hook register_prehook"
)


def find(view: View) -> Iterator[Finding]:
    """Calls of ``backward``, reads and writes of gradients, hooks on them. (Named functions are in the tables.)"""
    yield from _steps_by_hand(view)
    for node in view.all(ast.Attribute):
        if (
            node.attr in ("backward", "run_backward", "_engine_run_backward")
            and isinstance(node.ctx, ast.Load)
            and not _of_function(view, node)
        ):
            yield view.finding("illegal", "training", node, ".backward(): training belongs to the evaluator")
        elif node.attr in ("grad", "main_grad") and not view.resolver.paths(node):
            yield view.finding("review", "training", node, "a gradient is read or set")
        elif node.attr == "register_post_accumulate_grad_hook":
            yield view.finding("illegal", "training", node, f"{node.attr}: an optimiser of its own")
        elif node.attr in _HOOKS:
            yield view.finding("review", "training", node, f"{node.attr} changes gradients")
        elif node.attr in ("zero_grad", "enable_grad", "set_grad_enabled") and not view.resolver.paths(node):
            yield view.finding("review", "training", node, f"{node.attr}: training belongs to the evaluator")
    for call in view.all(ast.Call):
        paths = view.resolver.paths(call.func)
        off = any(isinstance(one, ast.Constant) and one.value is False for one in [*call.args, *_values(call)])
        first = view.resolver.text(call.args[0]) if call.args else None
        if "torch.inference_mode" in paths and off:
            yield view.finding("review", "training", call, "inference_mode(False) allows gradients")
        if paths & {"builtins.getattr"} and len(call.args) > 1 and view.resolver.text(call.args[1]) == "backward":
            yield view.finding("illegal", "training", call, ".backward(): training belongs to the evaluator")
        if "operator.methodcaller" in paths and first in ("backward", "step"):
            yield view.finding("illegal", "training", call, ".backward(): training belongs to the evaluator")


def _steps_by_hand(view: View) -> Iterator[Finding]:
    """Weights that ``forward`` moves itself. (Counts in a buffer are no weights.)"""
    for node in view.all(ast.Attribute):
        function = view.function(node)
        if node.attr not in ("data", "weight", "bias") or function is None or function.name != "forward":
            continue
        up = view.parent(node)
        in_place = isinstance(up, ast.Attribute) and up.attr.endswith("_") and not up.attr.endswith("__")
        if not isinstance(node.ctx, ast.Load) or in_place:
            yield view.finding("review", "training", node, "forward changes weights")


def _values(node: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in node.keywords]


def _of_function(view: View, node: ast.Attribute) -> bool:
    """``Round.backward`` of a class here that is an ``autograd.Function``: its own code, no training."""
    made = view.resolver.definition(node.value)
    if not isinstance(made, ast.ClassDef):
        return False
    bases = {path for base in made.bases for path in view.resolver.paths(base)}
    return bases == {"torch.autograd.Function"}
