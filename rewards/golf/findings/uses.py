"""What a solution uses: every maximal dotted name, under whatever alias, by the tables' ruling."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from weightgym.rewards.golf.findings.tables import Ruling, ruling
from weightgym.rewards.golf.findings.view import Finding, Severity, View
from weightgym.rewards.golf.paths import NONE

_SAYS = {
    "environment": "reads or changes the process's environment",
    "introspection": "looks into the interpreter",
    "files": "reads or writes files",
    "processes": "starts, ends or times processes or threads",
    "network": "uses the network",
    "native_code": "compiles or loads native code",
    "training": "training belongs to the evaluator",
    "patching": "changes code that is not the solution's",
    "evaluator": "is the evaluator's",
    "seed": "looks at the evaluator's seed",
    "clock": "depends on the clock",
    "subclass": "makes tensors of another class",
    "unusual_module": "is an unusual module for a model",
}
_MODULES = frozenset({"torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "math", "json", "builtins", "zlib"})
#: The argument (its place and name) that makes these honest if it is a file in memory, to count bytes.
_INTO: Mapping[str, tuple[int, str]] = {
    "torch.save": (1, "f"),
    "torch.load": (0, "f"),
    "torch.jit.save": (1, "f"),
    "pickle.dump": (1, "file"),
    "pickle.load": (0, "file"),
    "zipfile.ZipFile": (0, "file"),
    "gzip.GzipFile": (3, "fileobj"),
    "io.TextIOWrapper": (0, "buffer"),
    "json.dump": (1, "fp"),
    "json.load": (0, "fp"),
}


def find(view: View) -> Iterator[Finding]:
    """Forbidden names in use, names that are computed, files behind honest functions, modules handed around."""
    for node in view.scopes.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            if not isinstance(view.parent(node), ast.Attribute):
                yield from _judged(view, node)
        elif isinstance(node, ast.Call):
            yield from _judged(view, node)
            yield from _buffer(view, node)
            yield from _lookup(view, node)
        elif isinstance(node, ast.Subscript):
            yield from _judged(view, node)
    if view.resolver.exhausted:
        yield Finding("illegal", "obscure", 1, "names stand for names in too many circles to follow")
    elif view.resolver.too_deep:
        yield Finding("review", "obscure", 1, "names stand for names too often to follow")


def _judged(view: View, node: ast.AST) -> Iterator[Finding]:
    for path in sorted(view.resolver.paths(node)):
        if isinstance(node, ast.Attribute) and path.startswith("builtins."):
            path = path.split(".")[0] + "." + path.split(".")[1]  # a method of a builtin type
        ruled, code = ruling(path)
        if path.rsplit(".", 1)[-1] in (
            "_getframe",
            "CodeType",
            "FunctionType",
            "from_file",
            "TorchFunctionMode",
            "TorchDispatchMode",
        ):
            ruled, code = "illegal", "introspection"
        elif path.startswith("sys.stderr") or (path.startswith("sys.stdout") and code != "environment"):
            ruled = "legal"
        elif ruled == "legal" and _is_private(path):
            ruled, code = "review", "private"
        if path.startswith("torch._C._dispatch"):
            ruled, code = "illegal", "patching"
        if path == "sys":  # the bare module, handed to something
            ruled, code = "review", "environment"
        if ruled != "legal":
            why = _SAYS.get(code, "is private to its module")
            yield view.finding(_severity(ruled), code, node, f"{path} {why}")
        elif path in _MODULES and _handed_on(view, node):
            yield view.finding("review", "module_as_value", node, f"the module {path} is used as a value")


def _severity(ruled: Ruling) -> Severity:
    return "illegal" if ruled == "illegal" else "review"


def _is_private(path: str) -> bool:
    parts = path.split(".")
    return parts[0] != "builtins" and any(
        part.startswith("_") and not part.startswith(("_foreach", "_softmax", "_log_softmax")) and part not in _PLAIN
        for part in parts[1:]
    )


_PLAIN = frozenset(
    {"__version__", "__name__", "__doc__", "__init__", "__new__", "_weight_norm", "_scaled_mm", "__all__"}
)


def _handed_on(view: View, node: ast.AST) -> bool:
    parent = view.parent(node)
    if isinstance(parent, ast.keyword):
        parent = view.parent(parent)
    if isinstance(parent, ast.Call):
        return not view.resolver.paths(parent.func) & {"builtins.getattr", "builtins.hasattr", "builtins.isinstance"}
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in parent.targets)
    return isinstance(parent, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Return | ast.Yield | ast.Starred)


def _lookup(view: View, node: ast.Call) -> Iterator[Finding]:
    """``getattr`` and its kin, with a name that isn't spelled out."""
    paths = view.resolver.paths(node.func)
    if paths & {"builtins.getattr", "builtins.setattr", "builtins.delattr"} and len(node.args) > 1:
        name = node.args[1]
        if view.resolver.text(name) is None:
            module = view.resolver.paths(node.args[0])
            if any(ruling(path)[0] == "illegal" or path.split(".")[0] in ("sys", "builtins") for path in module):
                yield view.finding("illegal", "computed_attribute", node, "a computed attribute of a forbidden module")
            elif module or not _has_plain_start(view, name):
                yield view.finding("review", "computed_attribute", node, "the name of an attribute is computed")
    elif paths & {"operator.attrgetter", "operator.methodcaller"}:
        if not node.args or view.resolver.text(node.args[0]) is None:
            yield view.finding("review", "computed_attribute", node, "the name of an attribute is computed")
    elif (
        paths & {"builtins.vars", "builtins.dir"}
        and node.args
        and view.resolver.paths(node.args[0]) - {"builtins.type"}
    ):
        yield view.finding("illegal", "introspection", node, "looks through the names of a module")
    elif "builtins.vars" in paths and not (
        node.args and isinstance(node.args[0], ast.Name) and node.args[0].id == "self"
    ):
        yield view.finding("review", "introspection", node, "looks through the names of a scope or an object")
    elif "builtins.type" in paths and len(node.args) == 3:
        yield view.finding("review", "subclass", node, "a class is made by type()")
    yield from _unknown_function(view, node)


def _unknown_function(view: View, node: ast.Call) -> Iterator[Finding]:
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        if isinstance(argument, ast.Name) and "builtins.getattr" in view.resolver.paths(argument):
            yield view.finding("review", "computed_attribute", argument, "getattr is handed to another function")


def _has_plain_start(view: View, name: ast.expr) -> bool:
    """Whether the name is ``f"layer{i}"`` or ``"layer" + x``: a plain word in front can't make it special."""
    while isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add | ast.Mod):
        name = name.left
    first = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else name
    start = view.resolver.text(first)
    return bool(start) and start is not None and start[0].isalpha()


def _buffer(view: View, node: ast.Call) -> Iterator[Finding]:
    for path in view.resolver.paths(node.func) & _INTO.keys():
        place, name = _INTO[path]
        given = [keyword.value for keyword in node.keywords if keyword.arg == name]
        if place < len(node.args):
            given.append(node.args[place])
        sources = [source for one in given for source in view.resolver.values(one)]
        if any(view.resolver.text(source) is not None or isinstance(source, ast.JoinedStr) for source in sources):
            yield view.finding("illegal", "files", node, f"{path} with the name of a file")
        elif not sources or not all(_in_memory(view, source) for source in sources):
            yield view.finding("review", "files", node, f"{path} with something that may be a file")


def _in_memory(view: View, node: ast.AST) -> bool:
    paths = view.resolver.paths(node.func) if isinstance(node, ast.Call) else NONE
    return bool(paths) and paths <= {"io.BytesIO", "io.StringIO"}
