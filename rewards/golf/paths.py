"""What an expression may stand for, as dotted paths from a module: ``F.gelu`` is ``torch.nn.functional.gelu``.

Aliases are followed through assignments, imports, loops, defaults, arguments, attributes, containers, ``getattr`` with
a text that is spelled out, and functions that return a module. The answer is a set of what it may be, whatever the
order of statements: too much rather than too little.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from weightgym.rewards.golf import strings
from weightgym.rewards.golf.scopes import Binding, Function, Scope, Scopes
from weightgym.rewards.golf.strings import words

Paths = frozenset[str]
NONE: Paths = frozenset()

_MOST, _DEEPEST = 16, 40
#: How often a path may be worked out, per node of the tree: circles of names are worked out again and again.
_WORK = 6
_LOOKUPS = ("get", "pop", "setdefault", "__getitem__", "values")
_BUILTINS = frozenset(dir(builtins))
#: Modules that give hold of the machine or the interpreter. Others often import them, so that ``torch.os`` is ``os``.
_REACHABLE = words(
    "os posix nt sys io pyio ctypes cffi subprocess posixsubprocess socket ssl select selectors inspect gc importlib "
    "imp builtins builtin threading thread multiprocessing asyncio concurrent shutil tempfile pathlib glob atexit "
    "codecs linecache tokenize traceback pickle marshal mmap urllib http ftplib zipfile tarfile runpy pkgutil "
    "zipimport pdb code codeop pty resource time weakref operator"
) - {"code", "select", "resource", "operator"}

#: Functions whose result holds what they are given.
_PASS_ON = frozenset(
    {
        f"builtins.{name}"
        for name in [
            "zip",
            "enumerate",
            "reversed",
            "sorted",
            "list",
            "tuple",
            "set",
            "dict",
            "iter",
            "next",
            "map",
            "filter",
        ]
    }
    | {"itertools.chain", "itertools.cycle", "itertools.product", "collections.deque", "types.SimpleNamespace"}
)


def canonical(path: str) -> str:
    """The path without detours: ``torch.serialization.os.environ`` and ``random._os.environ`` are ``os.environ``."""
    parts = path.split(".")
    for index in range(len(parts) - 1, 0, -1):
        bare = parts[index].strip("_")
        if bare in _REACHABLE and parts[index - 1] != bare and not path.startswith("torch.multiprocessing"):
            return ".".join([bare, *parts[index + 1 :]])
    return path


class Resolver:
    """Paths and spelled-out texts of the expressions of one module."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        #: Whether a chain of names was too long to follow, and whether the module was too entangled altogether.
        self.too_deep = self.exhausted = False
        self._work = _WORK * len(scopes.nodes) + 1000
        self._cut: set[object] = set()
        self._text_depth = 0
        self._texts: dict[ast.AST, str | None] = {}
        self._definitions: dict[tuple[str, Scope], ast.AST | None] = {}
        self._fixed: dict[Scope, dict[str, bool]] = defaultdict(dict)
        self._memo: dict[object, Paths] = {}
        self._open: set[object] = set()
        self._attributes: defaultdict[str, list[Binding]] = defaultdict(list)
        self._arguments: defaultdict[ast.AST, list[ast.expr]] = defaultdict(list)
        self._returns: defaultdict[ast.AST, list[ast.expr]] = defaultdict(list)
        for node in scopes.nodes:
            self._note(node)
        self._warm_up()

    # -- what is asked -------------------------------------------------------------------------------------------

    def paths(self, node: ast.AST) -> Paths:
        """Everything that the expression may stand for."""
        return self._cached(node, lambda: self._paths(node))

    def text(self, node: ast.AST) -> str | None:
        """The text that the expression certainly is, or None."""
        if node in self._texts:
            return self._texts[node]
        if self._text_depth > _DEEPEST:
            self.too_deep = True
            return None
        self._texts[node] = None  # for one that is made of itself
        self._text_depth += 1
        if isinstance(node, ast.Name):
            single = self._single(node)
            found = None if single is None else self.text(single)
        else:
            found = strings.spelled(node, self.text)
        self._text_depth -= 1
        self._texts[node] = found
        return found

    def definition(self, node: ast.AST) -> ast.AST | None:
        """The function, lambda or class of the module that the expression names, or None."""
        if isinstance(node, ast.Lambda):
            return node
        if not isinstance(node, ast.Name):
            return None
        key = node.id, self.scopes.scope.get(node, self.scopes.module)
        if key not in self._definitions:
            bindings = [binding for _, some in self.scopes.lookup(*key) for binding in some]
            made = (b.node for b in bindings if b.kind == "def" or isinstance(b.node, ast.Lambda))
            self._definitions[key] = next(made, None)
        return self._definitions[key]

    def values(self, node: ast.AST) -> list[ast.AST]:
        """The expressions that a name, or an element of what is iterated, may come from; else the node itself."""
        found: list[ast.AST] = []
        todo, seen = [node], {node}
        while todo and len(seen) < 50:
            one = todo.pop()
            if not isinstance(one, ast.Name):
                found.append(one)
                continue
            for _, bindings in self.scopes.lookup(one.id, self.scopes.scope.get(one, self.scopes.module)):
                for binding in bindings:
                    items = [binding.node] if binding.kind == "value" else []
                    if binding.kind == "item" and isinstance(binding.node, ast.Tuple | ast.List | ast.Set):
                        items = list(binding.node.elts)
                    if binding.kind == "param":
                        items = list(self._arguments.get(binding.node, ()))
                    todo += [item for item in items if item not in seen]
                    seen |= set(items)
        return found

    # -- how it is found -----------------------------------------------------------------------------------------

    def _cached(self, key: object, make: Callable[[], Paths]) -> Paths:
        """The paths under a key, made once. What was cut short, by a circle or too deep a chain, is made again."""
        if key in self._memo:
            return self._memo[key]
        if key in self._open:
            self._cut.add(key)
            return NONE
        if len(self._open) >= _DEEPEST or self._work <= 0:
            self.too_deep = True
            self.exhausted = self.exhausted or self._work <= 0
            self._cut.add(None)
            return NONE
        self._work -= 1
        self._open.add(key)
        found = make()
        self._open.discard(key)
        self._cut.discard(key)
        if len(found) > _MOST:
            self.too_deep = True
            found = frozenset(sorted(found)[:_MOST])
        if not self._cut:
            self._memo[key] = found
        if not self._open:
            self._cut.clear()
        return found

    def _paths(self, node: ast.AST) -> Paths:
        if isinstance(node, ast.Name):
            return self._named(node.id, self.scopes.scope.get(node, self.scopes.module))
        if isinstance(node, ast.Attribute):
            return self._attribute(node.value, node.attr)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            return self._element(node.value, node.slice)
        if isinstance(node, ast.IfExp):
            return self.paths(node.body) | self.paths(node.orelse)
        if isinstance(node, ast.BoolOp):
            return NONE.union(*map(self.paths, node.values))
        if isinstance(node, ast.NamedExpr | ast.Starred | ast.Await):
            return self.paths(node.value)
        return NONE

    def _named(self, name: str, scope: Scope) -> Paths:
        found: Paths = NONE
        definite = False
        for where, bindings in self.scopes.lookup(name, scope):
            found |= self._cached((name, where), partial(self._all, bindings))
            in_function = not where.is_class and where is not self.scopes.module
            if name not in self._fixed[where]:
                self._fixed[where][name] = in_function or self._always(bindings)
            definite = definite or self._fixed[where][name]
        if not definite:
            if name in _BUILTINS:
                found |= {f"builtins.{name}"}
            found |= {canonical(f"{module}.{name}") for module in self.scopes.stars}
        return found

    def _always(self, bindings: list[Binding]) -> bool:
        """Whether a module-level name is bound for good: at the top level, by an import, a def or a class."""
        if any(binding.kind == "deleted" for binding in bindings):
            return False
        top = self.scopes.module.node
        return any(b.kind in ("def", "import") and self.scopes.parent.get(b.node) is top for b in bindings)

    def _all(self, bindings: list[Binding]) -> Paths:
        return NONE.union(*map(self._bound, bindings))

    def _bound(self, binding: Binding) -> Paths:
        if binding.kind == "import":
            return frozenset({canonical(binding.path)})
        if binding.kind == "value":
            return self.paths(binding.node)
        if binding.kind == "item":
            return self._elements(binding.node)
        if binding.kind == "param":
            return NONE.union(*map(self.paths, self._arguments.get(binding.node, ())))
        return NONE

    def _attribute(self, value: ast.AST, name: str) -> Paths:
        base = self.paths(value)
        found = frozenset(canonical(f"{path}.{name}") for path in base)
        if not found and name in self._attributes:
            found = self._cached(("attribute", name), partial(self._all, self._attributes[name]))
        return found

    def _elements(self, node: ast.AST) -> Paths:
        return self._cached(("elements", node), lambda: self._find_elements(node))

    def _find_elements(self, node: ast.AST) -> Paths:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            inner = [self.paths(one) | self._elements(one) for one in node.elts]
            return NONE.union(*inner)
        if isinstance(node, ast.Dict):
            return NONE.union(*(self.paths(one) | self._elements(one) for one in node.values))
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.paths(node.elt)
        if isinstance(node, ast.Call):
            return self._elements_of_call(node)
        if isinstance(node, ast.Subscript | ast.Starred):
            return self._elements(node.value)
        return NONE.union(*(self._elements(one) for one in self.values(node) if one is not node))

    def _elements_of_call(self, node: ast.Call) -> Paths:
        found: Paths = NONE
        if any(path in _PASS_ON for path in self.paths(node.func)):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
            found |= NONE.union(*(self.paths(one) | self._elements(one) for one in parts))
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values", "copy"):
            found |= self._elements(node.func.value)
        made = self.definition(node.func)
        if made is not None:
            found |= NONE.union(*map(self._elements, self._returns.get(made, ())))
        return found

    def _element(self, value: ast.AST, index: ast.AST) -> Paths:
        found = self._elements(value)
        key = self.text(index)
        if key and isinstance(value, ast.Call) and self.paths(value.func) & {"builtins.globals", "builtins.locals"}:
            found |= {"builtins"} if key == "__builtins__" else self._named(key, self.scopes.module)
        for path in self.paths(value):
            if path == "builtins" and key:
                found |= {f"builtins.{key}"}
            elif path == "sys.modules" and key:
                found |= {canonical(key)}
            elif path.endswith(".__dict__") and key:
                found |= {canonical(f"{path.removesuffix('.__dict__')}.{key}")}
        return found

    def _called(self, node: ast.Call) -> Paths:
        found: Paths = NONE
        first = node.args[0] if node.args else None
        for path in self.paths(node.func):
            found |= self._call_of(path, node, first)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS:
            found |= self._element(node.func.value, first) if first else self._elements(node.func.value)
        if isinstance(node.func, ast.Call) and first is not None:  # operator.attrgetter("name")(value)
            name = self.text(node.func.args[0]) if node.func.args else None
            if name and "operator.attrgetter" in self.paths(node.func.func):
                found |= self._attribute(first, name)
        made = self.definition(node.func)
        if made is not None:
            found |= NONE.union(*map(self.paths, self._returns.get(made, ())))
        return found

    def _call_of(self, path: str, node: ast.Call, first: ast.expr | None) -> Paths:
        name = self.text(first) if first is not None else None
        if path in ("builtins.__import__", "importlib.import_module", "importlib.__import__") and name:
            return frozenset({canonical(name)})
        if path == "builtins.getattr" and first is not None and len(node.args) > 1:
            attribute = self.text(node.args[1])
            found = self._attribute(first, attribute) if attribute else NONE
            return found | (self.paths(node.args[2]) if len(node.args) > 2 else NONE)
        if path == "builtins.vars" and first is not None:
            return frozenset(f"{one}.__dict__" for one in self.paths(first))
        if path in ("functools.partial", "builtins.next", "builtins.iter", "copy.copy") and first is not None:
            return self.paths(first) | self._elements(first)
        return NONE

    def _single(self, node: ast.Name) -> ast.expr | None:
        found = self.scopes.lookup(node.id, self.scopes.scope.get(node, self.scopes.module))
        bindings = [binding for _, some in found for binding in some[:2]]
        if len(bindings) == 1 and bindings[0].kind == "value" and isinstance(bindings[0].node, ast.expr):
            return bindings[0].node
        return None

    # -- what is done first --------------------------------------------------------------------------------------

    def _warm_up(self) -> None:
        """Ask for what every other node stands for first: long chains are short where their parts are known."""
        statements: list[list[ast.AST]] = [[]]
        for node in self.scopes.nodes:
            if isinstance(node, ast.stmt):
                statements.append([])
            statements[-1].append(node)
        for statement in statements + statements[::-1]:
            for node in reversed(statement):
                if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                    self.paths(node)
                self.text(node)
        self.too_deep = False

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    self._attributes[target.attr].append(Binding("value", node.value))
        elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Attribute):
            self._attributes[node.target.attr].append(Binding("value", node.value))
        elif isinstance(node, ast.ClassDef):
            for name, bindings in self.scopes.inner[node].names.items():
                self._attributes[name] += [one for one in bindings if one.kind in ("value", "import", "item")]
        elif isinstance(node, ast.Return) and node.value is not None:
            self._returns[self.scopes.scope[node].node].append(node.value)
        elif isinstance(node, ast.Lambda):
            self._returns[node].append(node.body)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self._note_defaults(node)
        elif isinstance(node, ast.Call):
            self._note_arguments(node)

    def _note_defaults(self, node: Function) -> None:
        positional = [*node.args.posonlyargs, *node.args.args]
        for arg, default in zip(reversed(positional), reversed(node.args.defaults), strict=False):
            self._arguments[arg].append(default)
        for arg, other in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if other is not None:
                self._arguments[arg].append(other)

    def _note_arguments(self, node: ast.Call) -> None:
        made = self.definition(node.func)
        skip = 0
        if isinstance(made, ast.ClassDef):
            inits = [b.node for b in self.scopes.inner[made].names.get("__init__", ()) if b.kind == "def"]
            made, skip = (inits[0] if inits else None), 1
        if not isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        positional = [*made.args.posonlyargs, *made.args.args]
        for arg, given in zip(positional[skip:], node.args, strict=False):
            self._arguments[arg].append(given)
        named = {arg.arg: arg for arg in [*positional, *made.args.kwonlyargs]} if node.keywords else {}
        for keyword in node.keywords:
            if keyword.arg in named:
                self._arguments[named[keyword.arg]].append(keyword.value)
