"""Classes that act where nobody calls them: tensors that intercept torch, numbers that lie, hooks of serialization."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weightgym.rewards.golf.findings.view import Finding, View
from weightgym.rewards.golf.strings import words

_INTERCEPT = frozenset({"__torch_function__", "__torch_dispatch__"})
_HOOKS = words(
    "__del__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __instancecheck__ __subclasscheck__ __init_subclass__ "
    "__set_name__ __getattribute__ __prepare__ __class_getitem__"
)
_STATE = words(
    "parameters named_parameters get_extra_state set_extra_state state_dict load_state_dict "
    "_load_from_state_dict _save_to_state_dict "
    "register_load_state_dict_pre_hook register_load_state_dict_post_hook register_state_dict_pre_hook "
    "register_state_dict_post_hook _register_state_dict_hook _register_load_state_dict_pre_hook"
)
_NUMBERS = frozenset(
    {"builtins.int", "builtins.float", "builtins.bool", "builtins.str", "builtins.bytes", "builtins.tuple"}
)


def find(view: View) -> Iterator[Finding]:
    """Definitions and bases that change what other code sees."""
    for made in view.all(ast.ClassDef):
        yield from _bases(view, made)
    for function in view.scopes.nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _name(view, function, function.name)
    for node in view.all(ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield from _name(view, node, node.id)
    for call in view.all(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _STATE and "register" in call.func.attr:
            yield view.finding("review", "state_hooks", call, f"{call.func.attr} changes what is saved or loaded")


def _bases(view: View, made: ast.ClassDef) -> Iterator[Finding]:
    for base in made.bases:
        for path in sorted(view.resolver.paths(base)):
            if path in ("torch.Tensor", "torch.nn.Parameter", "torch.nn.Buffer") or path in _NUMBERS:
                yield view.finding("review", "subclass", made, f"a class of its own derives from {path}")
    if any(keyword.arg == "metaclass" for keyword in made.keywords):
        keyword = next(one for one in made.keywords if one.arg == "metaclass")
        if view.resolver.paths(keyword.value) - {"abc.ABCMeta"} or view.resolver.definition(keyword.value):
            yield view.finding("review", "subclass", made, "a metaclass")


def _name(view: View, node: ast.AST, name: str) -> Iterator[Finding]:
    in_class = view.scopes.scope[node].is_class
    if name in _INTERCEPT and (in_class or isinstance(node, ast.FunctionDef)):
        yield view.finding("illegal", "patching", node, f"{name} intercepts the evaluator's computations")
    elif in_class and name in _HOOKS:
        yield view.finding("review", "hooks", node, f"{name} runs where nobody calls it")
    elif in_class and name in _STATE and not (name == "state_dict" and isinstance(node, ast.Name)):
        yield view.finding("review", "state_hooks", node, f"{name} changes what is trained, saved or loaded")
    elif not in_class and name in ("__getattr__", "__dir__") and view.scopes.scope[node] is view.scopes.module:
        yield view.finding("review", "hooks", node, f"{name} of the module runs where nobody calls it")
