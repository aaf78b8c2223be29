"""Imports: the standard library and PyTorch alone. An import that nothing uses harms nobody, and is for review."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from weightgym.rewards.golf.findings.tables import ruling
from weightgym.rewards.golf.findings.view import Finding, View
from weightgym.rewards.golf.paths import canonical

#: Modules that do something when they are imported, or run other code.
_ACTIVE = frozenset({"antigravity", "this", "idlelib", "turtle", "tkinter", "lib2to3", "test", "turtledemo"})


def find(view: View) -> Iterator[Finding]:
    """Modules that may not be imported, and imports that hide what they bring."""
    for node in view.all(ast.Import):
        for alias in node.names:
            yield from _module(view, node, alias.name, alias.name)
    for line in view.all(ast.ImportFrom):
        if line.level:
            yield view.finding("illegal", "import_not_allowed", line, "a relative import; solution.py is one file")
            continue
        module = line.module or ""
        for alias in line.names:
            if alias.name == "*":
                yield from _module(view, line, module, module)
                text = f"from {module} import *: name what you import"
                yield view.finding("review", "star_import", line, text)
            else:
                yield from _module(view, line, module, f"{module}.{alias.name}")


def _module(view: View, node: ast.AST, module: str, path: str) -> Iterator[Finding]:
    top = module.split(".")[0]
    if top in _ACTIVE or (top != "torch" and top not in sys.stdlib_module_names):
        text = f"import of {module}: only the standard library and torch may be imported"
        yield view.finding("illegal", "import_not_allowed", node, text)
        return
    ruled, code = ruling(canonical(path))
    if ruled != "legal" and canonical(path) not in ("sys", "os", "time"):  # the habit of importing them is no offence
        yield view.finding("review", code, node, f"import of {path}")
