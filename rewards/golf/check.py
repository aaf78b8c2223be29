"""The static check of a solution: what the rules ask of its form, read off the syntax tree. Nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from weightgym.rewards.golf.arithmetic import Arithmetic, not_literal
from weightgym.rewards.golf.config import Number, full_config
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.scopes import Scopes
from weightgym.rewards.golf.source import Source, read_source

_REQUIRED, _MODEL, _PACK = "get_config", "build_model", "quantized_roundtrip"
_ARGUMENTS = {_REQUIRED: (), _MODEL: ("vocab_size", "config"), _PACK: ("model", "clip_percentile")}


@dataclass(frozen=True)
class Solution:
    """A solution that passed the check. ``given`` is what ``get_config`` says, ``config`` that with the defaults."""

    source: Source
    scopes: Scopes
    given: Mapping[str, object]
    config: Mapping[str, Number]
    functions: Mapping[str, ast.FunctionDef]


def check(raw: bytes) -> Solution:
    """Check a ``solution.py``.

    Raises:
        SolutionError: ``check_failed`` or ``config_not_literal``.
    """
    source = read_source(raw)
    try:
        scopes = Scopes(source.tree)
        functions = {name: one for name in _ARGUMENTS if (one := _function(name, scopes)) is not None}
        if _REQUIRED not in functions:
            raise SolutionError("check_failed", "get_config is missing; define get_config() at the top level")
        given = _config(functions[_REQUIRED], scopes)
        return Solution(source, scopes, given, full_config(given), functions)
    except RecursionError:  # a caller that is deep in the stack itself, or constants of constants of constants
        raise SolutionError("check_failed", "the code is nested too deeply; split long expressions") from None


def _function(name: str, scopes: Scopes) -> ast.FunctionDef | None:
    bindings = scopes.module.names.get(name, [])
    if not bindings:
        return None
    one = bindings[0].node
    if len(bindings) > 1:
        line = getattr(bindings[1].node, "lineno", None)
        raise SolutionError("check_failed", f"{name} is bound more than once; define it once, at the top level", line)
    if not isinstance(one, ast.FunctionDef) or not isinstance(scopes.parent[one], ast.Module):
        line = getattr(one, "lineno", None)
        raise SolutionError("check_failed", f"{name} must be a plain def at the top level", line)
    if name == _REQUIRED and one.decorator_list:
        raise SolutionError("config_not_literal", "get_config must have no decorators", one.lineno)
    _check_arguments(name, one, scopes)
    return one


def _check_arguments(name: str, function: ast.FunctionDef, scopes: Scopes) -> None:
    wanted = _ARGUMENTS[name]
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    required = len(positional) - len(args.defaults)
    enough = len(positional) >= len(wanted) or args.vararg is not None
    if required > len(wanted) or not enough or any(default is None for default in args.kw_defaults):
        raise SolutionError("check_failed", f"{name} must take ({', '.join(wanted)})", function.lineno)
    inner = scopes.inner[function]
    for node in scopes.nodes:
        if isinstance(node, ast.Yield | ast.YieldFrom) and scopes.scope[node] is inner:
            raise SolutionError("check_failed", f"{name} must return a value, not yield", node.lineno)


def _config(function: ast.FunctionDef, scopes: Scopes) -> dict[str, object]:
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # the docstring
    returned = body[0] if body else function
    if len(body) != 1 or not isinstance(returned, ast.Return) or not isinstance(returned.value, ast.Dict):
        not_literal(returned, "get_config must hold one statement, a return of one dict literal: return {...}")
    arithmetic = Arithmetic(_constants(scopes))
    config: dict[str, object] = {}
    for key, value in zip(returned.value.keys, returned.value.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            not_literal(key or value, "the keys of the dict must be string literals")
        if key.value in config:
            raise SolutionError("check_failed", f"the key {ascii(key.value)[:60]} is given twice", key.lineno)
        config[key.value] = arithmetic.value(value)
    return config


def _constants(scopes: Scopes) -> dict[str, ast.expr]:
    """Names that exactly one statement binds: an assignment at the top level, to nothing but that name."""
    found: dict[str, ast.expr] = {}
    for statement in scopes.module.node.body if isinstance(scopes.module.node, ast.Module) else ():
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Name) and len(scopes.module.names[target.id]) == 1:
            found[target.id] = value
    return found
