"""Changes to code that is not the solution's: attributes of modules and of their classes, hooks of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weightgym.rewards.golf.findings.view import Finding, View
from weightgym.rewards.golf.strings import words

#: Switches that may be set: they choose kernels, not results.
_SWITCHES = ("torch.backends.", "torch._dynamo.config.", "torch._inductor.config.")

#: Attributes whose replacement changes what an object is.
_REPLACED = words("__class__ __dict__ __code__ __globals__ __bases__ __call__ __torch_function__ __torch_dispatch__")


def find(view: View) -> Iterator[Finding]:
    """Assignments, deletions, ``setattr`` and updates whose target belongs to a module."""
    for node in view.all(ast.Attribute):
        if not isinstance(node.ctx, ast.Load):
            yield from _changed(view, node, node.value, node.attr)
            if node.attr in _REPLACED:
                yield view.finding("illegal", "patching", node, f"{node.attr} of an object is replaced")
    for item in view.all(ast.Subscript):
        if not isinstance(item.ctx, ast.Load):
            yield from _entry(view, item, item.value)
    for call in view.all(ast.Call):
        yield from _call(view, call)


def _changed(view: View, node: ast.AST, base: ast.AST, name: str) -> Iterator[Finding]:
    for path in sorted(view.resolver.paths(base)):
        full = f"{path}.{name}"
        if not full.startswith(_SWITCHES) and not _shadowed(view, base, path):
            yield view.finding("illegal", "patching", node, f"{full} is not the solution's to change")


def _shadowed(view: View, base: ast.AST, path: str) -> bool:
    """A path that the name has only because a builtin is called so too."""
    if not path.startswith("builtins.") or not isinstance(base, ast.Name):
        return False
    return bool(view.scopes.lookup(base.id, view.scopes.scope[base]))


def _entry(view: View, node: ast.AST, base: ast.AST) -> Iterator[Finding]:
    for path in sorted(view.resolver.paths(base)):
        if path.endswith(".__dict__") or path == "sys.modules":
            yield view.finding("illegal", "patching", node, f"{path} is not the solution's to change")
    if isinstance(base, ast.Call) and "builtins.globals" in view.resolver.paths(base.func):
        yield view.finding("review", "patching", node, "a global name is set through globals()")


def _call(view: View, node: ast.Call) -> Iterator[Finding]:
    paths = view.resolver.paths(node.func)
    if paths & {"builtins.setattr", "builtins.delattr"} and len(node.args) > 1:
        name = view.resolver.text(node.args[1]) or "?"
        yield from _changed(view, node, node.args[0], name)
        if name in _REPLACED:
            yield view.finding("illegal", "patching", node, f"{name} of an object is replaced")
    if isinstance(node.func, ast.Attribute) and node.func.attr in (
        "update",
        "setdefault",
        "pop",
        "clear",
        "__setitem__",
    ):
        yield from _entry(view, node, node.func.value)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("__setattr__", "__delattr__") and len(node.args) > 1:
        yield from _changed(view, node, node.args[0], view.resolver.text(node.args[1]) or "?")
