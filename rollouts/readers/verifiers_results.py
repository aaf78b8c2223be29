"""``results.jsonl`` of verifiers before v1: a rollout a line, its tool calls as JSON texts.

``reward`` is the weighted sum of the functions whose values are in ``metrics``, with others that have no weight. Python
writes the file, NaN included.
"""

from __future__ import annotations

from weightgym.rollouts.readers.json_rows import number
from weightgym.rollouts.readers.key import find_key
from weightgym.rollouts.readers.lines import Line
from weightgym.rollouts.readers.messages import completion_of
from weightgym.rollouts.readers.plain import prompt_of
from weightgym.rollouts.readers.record import BadRow, NamedReward, Record


def parse(line: Line) -> list[Record]:
    """The answer of a line.

    Raises:
        BadRow: it has none, or it is of a wrong type.
    """
    fields = line.fields
    if fields.get("completion") is None:
        error = fields.get("error")
        text = error.get("error_chain_repr", "") if isinstance(error, dict) else error or ""
        raise BadRow(f"the rollout has no completion{f': {text}' if text else ''}")
    metrics = fields.get("metrics")
    env, task = find_key(fields, fields.get("info"))
    record = Record(
        line.place, line.where, line.sha256, env, task, prompt_of(fields), completion_of(fields["completion"]),
        line.body(),
        rewards={name: NamedReward(number(value)) for name, value in metrics.items()}
        if isinstance(metrics, dict)
        else {},
        total=number(fields.get("reward")),
    )  # fmt: skip
    return [record]
