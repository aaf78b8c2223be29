"""OpenAI tool schemas as methods: TRL reads a tool off a function's name, type hints and Google docstring."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from weightgym.rewards.contracts import TaskError, canonical_json

_TYPES: Mapping[str, Any] = {
    "integer": int,
    "number": float,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}
_SCALARS = (int, float, str, bool, type(None))


def tool_method(tool: Mapping[str, Any]) -> Callable[..., str]:
    """The method for a tool. Its signature is for readers: whatever the model gives goes to ``self._call(name,
    arguments)``, and the environment itself says what is wrong with it.

    Raises:
        TaskError: the schema has another form, or an argument has a name that Python doesn't allow.
    """
    try:
        function = tool["function"]
        name, schema = str(function["name"]), function.get("parameters") or {}
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        hints = {argument: type_hint(one)[0] for argument, one in properties.items()}
        signature = inspect.Signature(
            [
                inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
                *(_parameter(argument, hint, argument in required) for argument, hint in hints.items()),
            ]
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TaskError(f"no method can be made of tool {str(tool)[:200]}: {error}") from error

    def method(self: Any, /, **arguments: Any) -> str:
        told: str = self._call(name, arguments)
        return told

    method.__name__ = method.__qualname__ = name
    method.__doc__ = _docstring(name, function.get("description"), properties)
    method.__signature__ = signature  # type: ignore[attr-defined]
    # Without the result, which would show up in the prompt, where other trainers have nothing.
    method.__annotations__ = hints
    return method


def type_hint(schema: Mapping[str, Any], *, inner: bool = False) -> tuple[Any, bool]:
    """The type hint of a JSON schema, and whether it says all that the schema says (but for the description)."""
    rest = set(schema) - {"title"} - (set() if inner else {"description"})
    if "enum" in schema or "const" in schema:
        values = tuple(schema.get("enum") or (schema.get("const"),))
        if all(type(value) in _SCALARS for value in values):
            return Literal[values], rest <= {"type", "enum", "const"}
        return Any, False
    for key in ("anyOf", "oneOf"):
        if key in schema:
            parts = [type_hint(part, inner=True) for part in schema[key]]
            return _either([hint for hint, _ in parts]), rest == {key} and all(whole for _, whole in parts)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either([_TYPES[one] for one in kind]), rest == {"type"}
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        item, whole = type_hint(schema["items"], inner=True)
        return list[item], whole and rest == {"type", "items"}  # type: ignore[valid-type]
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        value, whole = type_hint(schema["additionalProperties"], inner=True)
        return dict[str, value], whole and rest == {"type", "additionalProperties"}  # type: ignore[valid-type]
    if kind is None:
        return Any, not rest
    return _TYPES[kind], rest == {"type"}


def _either(hints: Sequence[Any]) -> Any:
    return functools.reduce(operator.or_, hints)


def _parameter(name: str, hint: Any, required: bool) -> inspect.Parameter:
    if name.endswith(("Args", "Returns", "Raises")):
        raise ValueError(f"argument {name!r} would end the list of arguments in a docstring")
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _docstring(name: str, description: object, properties: Mapping[str, Any]) -> str:
    lines = [_line(str(description or "")) or name]
    if properties:
        lines += ["", "Args:"]
    for argument, schema in properties.items():
        told = _line(str(schema.get("description") or "")) or argument
        if not type_hint(schema)[1]:
            more = {key: value for key, value in schema.items() if key not in ("description", "title")}
            told += f" JSON schema: {canonical_json(more)}"
        lines.append(f"    {argument}: {told}")
    return "\n".join(lines)


def _line(text: str) -> str:
    """One line in which nothing seems to begin that docstrings have a form for."""
    return re.sub(r"\b(Args|Returns|Raises|choices):", r"\1 -", " ".join(text.split()), flags=re.IGNORECASE)
