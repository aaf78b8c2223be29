"""Which name is bound where: the scopes of a module, and every binding in each, found without running anything."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["value", "item", "import", "def", "param", "deleted", "other"]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Binding:
    """How a name gets a value: the ``value`` of ``node``, an ``item`` of it, an import of ``path``, a definition, …"""

    kind: Kind
    node: ast.AST
    path: str = ""


@dataclass(eq=False)
class Scope:
    """The module, a class body, a function, a lambda or a comprehension."""

    node: ast.AST
    parent: Scope | None
    names: defaultdict[str, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    #: Names that ``global`` or ``nonlocal`` sends elsewhere.
    sent: dict[str, Literal["global", "nonlocal"]] = field(default_factory=dict)

    @property
    def is_class(self) -> bool:
        """Whether functions inside don't see its names."""
        return isinstance(self.node, ast.ClassDef)


class Scopes:
    """All scopes of a module, the scope and the parent of every node, and the modules that ``*`` was imported from."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.scope: dict[ast.AST, Scope] = {tree: self.module}
        self.parent: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = [tree]
        self.stars: set[str] = set()
        self.inner: dict[ast.AST, Scope] = {tree: self.module}
        self._walk(tree)
        for node in self.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                kind: Literal["global", "nonlocal"] = "global" if isinstance(node, ast.Global) else "nonlocal"
                self.scope[node].sent |= dict.fromkeys(node.names, kind)
        for node in self.nodes:
            self._bind(node)

    def home(self, name: str, scope: Scope) -> Scope:
        """The scope in which an assignment to ``name`` inside ``scope`` lands."""
        sent = scope.sent.get(name)
        if sent == "global":
            return self.module
        if sent == "nonlocal":
            outer = scope.parent
            while outer is not None and (outer.is_class or name not in outer.names):
                outer = outer.parent
            return outer or self.module
        return scope

    def lookup(self, name: str, scope: Scope) -> list[tuple[Scope, list[Binding]]]:
        """Every scope whose binding of ``name`` code in ``scope`` may see, innermost first.

        A function's own binding hides the outer ones. A class body's and the module's may be missing when the code
        runs, so what is outside of them (for the module: the builtin) may be seen as well.
        """
        found = []
        here: Scope | None = self.home(name, scope)
        first = True
        while here is not None:
            if name in here.names and (first or not here.is_class):
                found.append((here, here.names[name]))
                if not here.is_class:
                    break
            first = first and isinstance(here.node, _COMPREHENSIONS)
            here = here.parent
        return found

    def _walk(self, tree: ast.Module) -> None:
        stack: list[tuple[ast.AST, Scope]] = [(child, self.module) for child in ast.iter_child_nodes(tree)]
        stack.reverse()
        for child in ast.iter_child_nodes(tree):
            self.parent[child] = tree
        while stack:
            node, scope = stack.pop()
            self.nodes.append(node)
            self.scope[node] = scope
            body, outside = self._split(node, scope)
            children = [(child, scope) for child in outside] + [(child, body) for child in _inside(node, outside)]
            for child, _ in children:
                self.parent[child] = node
            stack.extend(reversed(children))

    def _split(self, node: ast.AST, scope: Scope) -> tuple[Scope, list[ast.AST]]:
        """The scope of the node's inside, and those of its children that are evaluated outside of it."""
        if isinstance(node, _FUNCTIONS):
            self.inner[node] = Scope(node, scope)
            outside: list[ast.AST] = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
            if not isinstance(node, ast.Lambda):
                outside += node.decorator_list + ([node.returns] if node.returns else [])
            return self.inner[node], outside
        if isinstance(node, ast.ClassDef):
            self.inner[node] = Scope(node, scope)
            return self.inner[node], [*node.decorator_list, *node.bases, *node.keywords]
        if isinstance(node, _COMPREHENSIONS):
            self.inner[node] = Scope(node, scope)
            return self.inner[node], []
        return scope, []

    def _bind(self, node: ast.AST) -> None:
        scope = self.scope.get(node, self.module)
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name if alias.asname else alias.name.split(".")[0]
                self._add(alias.asname or top, scope, Binding("import", node, top))
        elif isinstance(node, ast.ImportFrom):
            self._bind_from(node, scope)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._add(node.name, scope, Binding("def", node))
        elif isinstance(node, ast.arg):
            self._add(node.arg, scope, Binding("param", node))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._bind_name(node, scope)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            self._bind_pattern(node, node.name, scope)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._add(node.name, scope, Binding("other", node))
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self._add(node.rest, scope, Binding("other", node))

    def _bind_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.add(module)
            else:
                self._add(alias.asname or alias.name, scope, Binding("import", node, f"{module}.{alias.name}"))

    def _bind_name(self, node: ast.Name, scope: Scope) -> None:
        parent = self.parent[node]
        if isinstance(node.ctx, ast.Del):
            self._add(node.id, scope, Binding("deleted", node))
            return
        if isinstance(parent, ast.NamedExpr):
            while isinstance(scope.node, _COMPREHENSIONS) and scope.parent is not None:
                scope = scope.parent  # a walrus binds around comprehensions
        self._add(node.id, scope, self._value_of(node, parent))

    def _bind_pattern(self, node: ast.AST, name: str, scope: Scope) -> None:
        above = self.parent[node]
        while not isinstance(above, ast.Match):
            above = self.parent[above]
        self._add(name, scope, Binding("value", above.subject))
        self._add(name, scope, Binding("item", above.subject))

    def _value_of(self, node: ast.Name, parent: ast.AST) -> Binding:
        if isinstance(parent, ast.Assign | ast.NamedExpr):
            return Binding("value", parent.value)
        if isinstance(parent, ast.AnnAssign) and parent.value is not None:
            return Binding("value", parent.value)
        if isinstance(parent, ast.withitem):
            return Binding("value", parent.context_expr)
        target: ast.AST = node
        above: ast.AST | None = parent
        while isinstance(above, ast.Tuple | ast.List | ast.Starred):
            target, above = above, self.parent.get(above)
        if isinstance(above, ast.For | ast.AsyncFor | ast.comprehension):
            return Binding("item", above.iter)
        if isinstance(above, ast.Assign) and target is not node:
            return Binding("item", _same_place(node, target, above.value, self.parent))
        return Binding("other", node)

    def _add(self, name: str, scope: Scope, binding: Binding) -> None:
        self.home(name, scope).names[name].append(binding)


def _inside(node: ast.AST, outside: list[ast.AST]) -> list[ast.AST]:
    if not outside:
        return list(ast.iter_child_nodes(node))
    apart = set(outside)
    inside: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.arguments):
            # The arguments node holds the defaults, which are evaluated outside: its parts stand in for it.
            inside += [part for part in ast.iter_child_nodes(child) if part not in apart]
        elif child not in apart:
            inside.append(child)
    return inside


def _same_place(node: ast.Name, target: ast.AST, value: ast.expr, parent: dict[ast.AST, ast.AST]) -> ast.AST:
    """``value``, or of ``a, b = x, y`` the one element that belongs to the name, in a list of its own."""
    if (
        parent.get(node) is target
        and isinstance(target, ast.Tuple | ast.List)
        and isinstance(value, ast.Tuple | ast.List)
    ):
        plain = not any(isinstance(one, ast.Starred) for one in [*target.elts, *value.elts])
        if plain and len(target.elts) == len(value.elts):
            return ast.List(elts=[value.elts[target.elts.index(node)]], ctx=ast.Load())
    return value
