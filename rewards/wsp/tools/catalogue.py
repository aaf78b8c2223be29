"""Which tools there are, how they are offered (OpenAI's format), and how a call of one is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from weightgym.rewards.contracts import canonical_json
from weightgym.rewards.suggest import nearest
from weightgym.rewards.wsp.profile import TierRules
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools import arguments as a

#: ``look`` and ``edit`` are free; a ``gpu`` call costs one of the budget; ``submit`` ends the episode.
Kind = Literal["look", "edit", "gpu", "submit"]


@dataclass(frozen=True)
class Tool:
    """One tool."""

    name: str
    kind: Kind
    arguments: type[a.Arguments]

    @property
    def schema(self) -> dict[str, Any]:
        """As a chat request takes it."""
        schema = self.arguments.model_json_schema()
        parameters = _inlined(schema, schema.get("$defs", {}))
        description = parameters.pop("description")
        function = {"name": self.name, "description": description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Call:
    """A call whose arguments have the right form."""

    tool: Tool
    arguments: a.Arguments


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("list_parameters", "look", a.ListParameters),
        Tool("tensor_stats", "look", a.TensorStats),
        Tool("top_norms", "look", a.TopNorms),
        Tool("singular_values", "look", a.SingularValues),
        Tool("read_slice", "look", a.ReadSlice),
        Tool("compare_layers", "look", a.CompareLayers),
        Tool("nearest_tokens", "look", a.NearestTokens),
        Tool("tokenize", "look", a.Tokenize),
        Tool("edit_log", "look", a.EditLog),
        Tool("scan_outliers", "look", a.ScanOutliers),
        Tool("rank_one", "edit", a.RankOneUpdate),
        Tool("project_out", "edit", a.ProjectOut),
        Tool("scale", "edit", a.ScaleLines),
        Tool("zero", "edit", a.ZeroLines),
        Tool("set_slice", "edit", a.SetSlice),
        Tool("undo", "edit", a.Undo),
        Tool("reset", "edit", a.Reset),
        Tool("generate", "gpu", a.Generate),
        Tool("next_tokens", "gpu", a.NextTokens),
        Tool("capture", "gpu", a.Capture),
        Tool("gradient", "gpu", a.Gradient),
        Tool("kl", "gpu", a.TextKLs),
        Tool("submit", "submit", a.Submit),
    )
}


def offered(rules: TierRules) -> dict[str, Tool]:
    """The tools of a tier."""
    return {name: tool for name, tool in TOOLS.items() if rules.scan or name != "scan_outliers"}


def schemas(rules: TierRules) -> list[dict[str, Any]]:
    """The tools of a tier, as a chat request takes them."""
    return [tool.schema for tool in offered(rules).values()]


def parse_call(name: str, arguments: str | Mapping[str, Any], tools: Mapping[str, Tool]) -> Call:
    """A call of a tool, as the model wrote it: arguments are JSON text, or its value.

    Raises:
        Refused: there is no such tool, or its arguments have another form.
    """
    if (tool := tools.get(name)) is None:
        raise Refused(f"unknown_tool: {name[:100]!r}{nearest(name, tools) or ': the tools are ' + ', '.join(tools)}")
    try:
        text = arguments if isinstance(arguments, str) else canonical_json(arguments)
        return Call(tool, tool.arguments.model_validate_json(text or "{}"))
    except ValidationError as error:
        raise Refused(f"bad_arguments: {name}: {_told(error)}") from error
    except (TypeError, ValueError, RecursionError) as error:  # a value that JSON can't have
        raise Refused(f"bad_arguments: {name}: {' '.join(str(error).split())[:200]}") from error


def _told(error: ValidationError) -> str:
    """The first three things that are wrong."""
    parts = []
    for one in error.errors(include_url=False, include_input=False)[:3]:
        where = ".".join(map(str, one["loc"]))[:100]
        what = one["msg"].removeprefix("Value error, ")[:300]
        parts.append(f"{where}: {what}" if where else what)
    more = error.error_count() - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Without titles and references, which not every model server knows."""
    if isinstance(schema, list):
        return [_inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined(definitions[schema["$ref"].rsplit("/", 1)[1]] | rest, definitions)
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {name: _inlined(one, definitions) for name, one in value.items()}
        elif key == "description":
            plain[key] = " ".join(value.split())
        elif key not in ("title", "$defs"):
            plain[key] = _inlined(value, definitions)
    return plain
