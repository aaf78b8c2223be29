"""Looks at bytes that are still to be predicted, as far as the text shows them. The audit is what proves causality."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weightgym.rewards.golf.findings.view import Finding, View

_LOSSES = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss")
_WHOLE = frozenset({"mean", "sum", "bincount", "histc", "amax", "amin", "max", "min", "median", "logsumexp"})
_POOLS = frozenset({"torch.bincount", "torch.histc", "torch.unique"})


def find(view: View) -> Iterator[Finding]:
    """Shifts to the left, attention without a mask, sums over whole rows, and uses of the targets."""
    forwards = _model_forwards(view)
    yield from _targets(view, forwards)
    paired = _paired_names(view)
    ids: set[ast.AST] = {function.args.args[1] for function in forwards}
    for node in view.all(ast.Subscript):
        if not (_is_param(view, node.value, ids) and _starts_later(node.slice)):
            continue
        if not _in_loss(view, node) and not view.in_training_branch(node) and not _paired(view, node, paired):
            yield view.finding("review", "future", node, "the bytes are shifted to later ones")
    for call in view.all(ast.Call):
        yield from _call(view, call, ids)


def _model_forwards(view: View) -> list[ast.FunctionDef]:
    """The ``forward(self, input_ids, target_ids=None)`` of what build_model makes, or of all if that is hidden."""
    build = view.solution.functions.get("build_model")
    made = {view.resolver.definition(call.func) for call in view.all(ast.Call) if view.function(call) is build}
    found = [
        function
        for function in view.all(ast.FunctionDef)
        if function.name == "forward" and len(function.args.args) == 3 and function.args.defaults
    ]
    own = [function for function in found if view.parent(function) in made]
    return own or found


def _is_param(view: View, node: ast.AST, wanted: set[ast.AST]) -> bool:
    """Whether the node is a name that one of these parameters binds."""
    if not isinstance(node, ast.Name):
        return False
    seen = view.scopes.lookup(node.id, view.scopes.scope[node])
    return bool(seen) and any(binding.node in wanted for binding in seen[0][1][:3])


def _targets(view: View, forwards: list[ast.FunctionDef]) -> Iterator[Finding]:
    """Uses of a forward's second argument, whatever its name, but for the loss."""
    wanted: set[ast.AST] = {function.args.args[2] for function in forwards}
    for function in view.all(ast.FunctionDef):
        if function.name == "forward":
            wanted |= {arg for arg in function.args.args if arg.arg in ("target_ids", "targets", "labels")}
    if not wanted:
        return
    elsewhere = _used_elsewhere(view)
    for node in view.all(ast.Name):
        if not (isinstance(node.ctx, ast.Load) and node.id in elsewhere and _is_param(view, node, wanted)):
            continue
        if not _is_harmless(view, node) and _new_name(view, node) in {None, *elsewhere}:
            yield view.finding("review", "targets", node, f"{node.id} is used for more than the loss")


def _is_harmless(view: View, node: ast.AST) -> bool:
    asked = _is_none_test(view, node) or _asked_for_shape(view, node)
    return asked or _in_loss(view, node) or _passed_on(view, node)


def _used_elsewhere(view: View) -> set[str]:
    """Names that are used for more than a loss, or under a new name that is."""
    found: set[str] = set()
    renamed: set[tuple[str, str]] = set()
    for node in view.all(ast.Name):
        if isinstance(node.ctx, ast.Load) and not _is_harmless(view, node):
            new = _new_name(view, node)
            if new is None:
                found.add(node.id)
            else:
                renamed.add((node.id, new))
    for _ in range(10):
        found |= {old for old, new in renamed if new in found}
    return found


def _asked_for_shape(view: View, node: ast.AST) -> bool:
    parent = view.parent(node)
    return isinstance(parent, ast.Attribute) and parent.attr in (
        "shape",
        "size",
        "device",
        "dtype",
        "numel",
        "dim",
        "ndim",
    )


def _new_name(view: View, node: ast.AST) -> str | None:
    """``flat`` in ``flat = target_ids.reshape(-1)``: the same values under another name."""
    below = node
    for up in view.above(node):
        if isinstance(up, ast.Assign):
            target = up.targets[0]
            return target.id if len(up.targets) == 1 and isinstance(target, ast.Name) else None
        through_call = isinstance(up, ast.Call) and up.func is below
        through_choice = isinstance(up, ast.IfExp) and up.test is not below
        if not (isinstance(up, ast.Attribute) or through_call or through_choice):
            return None
        below = up
    return None


def _is_none_test(view: View, node: ast.AST) -> bool:
    parent = view.parent(node)
    return isinstance(parent, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops)


def _passed_on(view: View, node: ast.AST) -> bool:
    """Handed to another ``forward`` or to a loss of the solution's own by name."""
    parent = view.parent(node)
    if isinstance(parent, ast.keyword):
        parent = view.parent(parent)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "forward"


def _in_loss(view: View, node: ast.AST) -> bool:
    below = node
    for up in view.above(node):
        if isinstance(up, ast.Call) and below is not up.func and _is_loss(view, up.func):
            return True
        if isinstance(up, ast.stmt):
            return False
        below = up
    return False


def _is_loss(view: View, function: ast.expr) -> bool:
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    known = any(path.endswith(_LOSSES) for path in view.resolver.paths(function))
    return known or name in ("loss", "criterion", "loss_fn", "compute_loss", *_LOSSES)


def _starts_later(index: ast.expr) -> bool:
    """``[:, k:]`` with a constant k above 0."""
    if not isinstance(index, ast.Tuple) or len(index.elts) < 2 or not isinstance(index.elts[1], ast.Slice):
        return False
    lower = index.elts[1].lower
    return isinstance(lower, ast.Constant) and type(lower.value) is int and lower.value > 0


def _paired_names(view: View) -> set[tuple[ast.AST, str]]:
    """Statements in which a name is cut at its end, as in ``x[:, :-1]``."""
    found: set[tuple[ast.AST, str]] = set()
    for node in view.all(ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        cut = len(parts) > 1 and isinstance(parts[1], ast.Slice) and parts[1].lower is None and parts[1].upper
        if cut and isinstance(node.value, ast.Name):
            found.add((_statement(view, node), node.value.id))
    return found


def _statement(view: View, node: ast.AST) -> ast.AST:
    return next((up for up in view.above(node) if isinstance(up, ast.stmt)), node)


def _paired(view: View, node: ast.Subscript, paired: set[tuple[ast.AST, str]]) -> bool:
    """Whether the same statement takes the earlier bytes too (``x[:, 1:] == x[:, :-1]``), with no pad on the right."""
    for up in view.above(node):
        if isinstance(up, ast.Call) and _pads_right(view, up):
            return False
        if isinstance(up, ast.stmt):
            break
    return isinstance(node.value, ast.Name) and (_statement(view, node), node.value.id) in paired


def _pads_right(view: View, call: ast.Call) -> bool:
    """``F.pad(x[:, k:], (…, 0, k))``: what stood later moves to the front."""
    if "torch.nn.functional.pad" not in view.resolver.paths(call.func) or len(call.args) < 2:
        return False
    inner, pads = call.args[:2]
    later = isinstance(inner, ast.Subscript) and _starts_later(inner.slice)
    last = pads.elts[-1] if isinstance(pads, ast.Tuple | ast.List) and pads.elts else None
    return later and isinstance(last, ast.Constant) and last.value != 0


def _call(view: View, call: ast.Call, ids: set[ast.AST]) -> Iterator[Finding]:
    paths = view.resolver.paths(call.func)
    if _pads_right(view, call) and not view.in_training_branch(call) and not _in_loss(view, call):
        yield view.finding("review", "future", call, "later positions are moved to earlier ones")
    if "torch.nn.functional.scaled_dot_product_attention" in paths and not _masked(call):
        yield view.finding("review", "future", call, "attention without is_causal=True or a mask")
    if any(path.endswith((".LSTM", ".GRU", ".RNN")) for path in paths) and _flag(call, "bidirectional"):
        yield view.finding("review", "future", call, "a bidirectional network reads later bytes")
    rolled = "torch.roll" in paths or (isinstance(call.func, ast.Attribute) and call.func.attr == "roll")
    if rolled and any(_negative(argument) for argument in call.args[:2]) and not _over_features(call):
        yield view.finding("review", "future", call, "roll by a negative number brings later positions forward")
    if not view.in_training_branch(call) and _whole_row(view, call, ids):
        yield view.finding("review", "future", call, "a sum over the whole row holds later bytes")


def _masked(call: ast.Call) -> bool:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    causal = named.get("is_causal")
    unset = isinstance(causal, ast.Constant) and not causal.value
    mask = named.get("attn_mask", call.args[3] if len(call.args) > 3 else None)
    has_mask = mask is not None and not (isinstance(mask, ast.Constant) and mask.value is None)
    starred = None in named or any(isinstance(one, ast.Starred) for one in call.args)
    return has_mask or starred or (causal is not None and not unset) or len(call.args) > 5


def _flag(call: ast.Call, name: str) -> bool:
    given = [keyword.value for keyword in call.keywords if keyword.arg == name]
    return any(isinstance(value, ast.Constant) and bool(value.value) for value in given)


def _negative(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _over_features(call: ast.Call) -> bool:
    """``roll(x, -1, dims=-1)``."""
    dims = [keyword.value for keyword in call.keywords if keyword.arg == "dims"] or call.args[-1:]
    return len(call.args) + len(call.keywords) > 1 and bool(dims) and _negative(dims[0]) and dims[0] is not call.args[0]


def _whole_row(view: View, call: ast.Call, ids: set[ast.AST]) -> bool:
    """``one_hot(input_ids).mean(1)`` and ``bincount(input_ids)``: one value out of a row, not along it."""
    function = view.function(call)
    if function is None or function.name != "forward":
        return False
    if view.resolver.paths(call.func) & _POOLS:
        return any(_mentions(view, argument, ids) for argument in call.args)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _WHOLE:
        return False
    dims = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "dim")]
    along = any(isinstance(dim, ast.Constant) and dim.value == 1 for dim in dims)
    return along and _mentions(view, call.func.value, ids)


def _mentions(view: View, node: ast.AST, ids: set[ast.AST]) -> bool:
    """Whether the bytes themselves are in the expression, not what a layer (``self.emb``) made of them."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return not any(one.id == "self" for one in names) and any(_is_param(view, one, ids) for one in names)
