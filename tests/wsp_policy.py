"""A policy that chooses among whole messages of WSP-Bench: each is one token of a tiny random model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import golf_policy


def written(message: Mapping[str, Any]) -> str:
    """An assistant message as a model without a tool format of its own writes it."""
    blocks = []
    for call in message["tool_calls"]:
        function = call["function"]
        value = {"tool": function["name"], "arguments": json.loads(function["arguments"])}
        blocks.append(f"```json\n{json.dumps(value)}\n```")
    return "\n".join([message["content"], *blocks]).strip()


def save(folder: Path, messages: Sequence[Mapping[str, Any]]) -> Path:
    """Tokens 0 and 1 are no messages."""
    return golf_policy.save(folder, [written(message) for message in messages])
