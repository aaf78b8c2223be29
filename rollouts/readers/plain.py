"""Plain rows: ``{"env": …, "task": …, "completion": …}`` and whatever else; a ``prompt`` may stand in for the key."""

from __future__ import annotations

from typing import Any

from weightgym.rollouts.readers.json_rows import kind, number
from weightgym.rollouts.readers.lines import Line
from weightgym.rollouts.readers.messages import completion_of
from weightgym.rollouts.readers.record import BadRow, NamedReward, Record


def parse(line: Line) -> list[Record]:
    """The answer of a line.

    Raises:
        BadRow: a field is missing, or of a wrong type.
    """
    fields = line.fields
    scored = fields.get("score")
    old: dict[str, Any] = scored if isinstance(scored, dict) else {}
    by_prompt = {} if "env" in fields and "task" in fields else old  # what an earlier run matched it to
    env = _text_field(fields | _names(by_prompt), "env", "weight-program")
    task = _text_field(fields | _names(by_prompt), "task", "original/breakout")
    if "completion" not in fields:
        raise BadRow("missing 'completion': the answer, as text or as a list of chat messages")
    profile = old.get("profile")
    record = Record(
        line.place, line.where, line.sha256, env, task, prompt_of(fields),
        completion_of(fields["completion"], convert=False), line.body(),
        rewards=_rewards(fields, old), profile=profile if isinstance(profile, str) else "",
    )  # fmt: skip
    return [record]


def prompt_of(fields: dict[str, Any]) -> Any:
    """A row's prompt, if it looks like one."""
    prompt = fields.get("prompt")
    return prompt if isinstance(prompt, str | list) else None


def _names(old: dict[str, Any]) -> dict[str, Any]:
    return {name: old[name] for name in ("env", "task") if isinstance(old.get(name), str)}


def _text_field(fields: dict[str, Any], name: str, example: str) -> str | None:
    if name not in fields:
        if prompt_of(fields) is not None:
            return None
        raise BadRow(f'missing {name!r}: each row names it, for example "{name}": "{example}"')
    value = fields[name]
    if not isinstance(value, str):
        raise BadRow(f"{name!r} must be text, not {kind(value)}")
    return value


def _rewards(fields: dict[str, Any], old: dict[str, Any]) -> dict[str, NamedReward]:
    if "reward" in old:
        return {"score": NamedReward(number(old["reward"]))}
    return {"reward": NamedReward(number(fields["reward"]))} if "reward" in fields else {}
