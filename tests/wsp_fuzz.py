"""Tool calls out of anything: right, nearly right and wrong in every way, for the random model of ``wsp_models``."""

from __future__ import annotations

import json
import random
from typing import Any

import wsp_models
from hypothesis import strategies as st

from weightgym.rewards.wsp.tools.catalogue import TOOLS

SHAPES = {name: weight.shape for name, weight in wsp_models.base().start.items()}
NAMES = [*SHAPES, "nowhere", "", "model.layers.1", "x" * 300, "modèle\u2028", "\ud800"]
LOCAL = ["mlp.down_proj.weight", "input_layernorm.weight", *NAMES[:2]]
#: Numbers at every edge that a float32, an index or a count has.
NUMBERS: list[Any] = [
    0,
    1,
    -1,
    2,
    7,
    31,
    32,
    33,
    48,
    256,
    257,
    2**31,
    2**63,
    10**400,
    0.0,
    -0.0,
    0.5,
    1.0,
    1e-45,
    3e38,
    1e39,
    -3e38,
]
ODD: list[Any] = [
    None,
    True,
    False,
    "",
    "1",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    float("nan"),
    float("inf"),
    "\ud800",
    "row 1",
    b"x",
]
WORDS = [
    "rows",
    "columns",
    "left",
    "right",
    "topic",
    "singular values",
    "residual",
    "mlp_hidden",
    "bell",
    "café ☕ \U0001f600",
    "x" * 30_000,
]
VECTORS = [
    "left singular vector 0",
    "right singular vector 31 of lm_head.weight",
    "left singular vector 99 of model.norm.weight",
    "row 7",
    "row 1 of model.layers.0.mlp.up_proj.weight",
    "column 40",
    "captured activation #0",
    "captured activation #1",
    "captured activation #2",
    "captured activation #999999999",
    "row ٣",
]


MATRICES = [name for name, shape in SHAPES.items() if len(shape) == 2]
#: Calls that are good, of any matrix, as far as the budgets last.
GOOD: dict[str, dict[str, Any]] = {
    "rank_one": {"left": "column 3", "right": "right singular vector 1", "scale": 0.5},
    "project_out": {"direction": "left singular vector 0"},
    "scale": {"axis": "columns", "indices": [0, 3], "factor": -1},
    "set_slice": {"rows": [0, 2], "columns": [1, 3], "values": [[1, 0], [0, 1]]},
    "read_slice": {"rows": [1, 3]},
    "singular_values": {"vector": 2},
    "generate": {"prompts": ["a b", "é ☕"], "max_new_tokens": 5},
    "next_tokens": {"prompts": ["a b"] * 3, "k": 20, "chat": False},
    "capture": {"prompts": ["a b"] * 9, "sites": [{"layer": 1, "point": "mlp_hidden"}], "positions": [0, -1]},
    "gradient": {"prompts": ["a b"], "targets": ["c"], "sites": [{"layer": 0, "point": "mlp_input"}]},
    "kl": {"texts": ["a b", "é ☕"]},
}


def vector(dice: random.Random) -> Any:
    if dice.random() < 0.6:
        return dice.choice(VECTORS)
    length = dice.choice([0, 1, 32, 32, 48, 48, 257, 33])
    values: list[Any] = [dice.choice([0.0, 1.0, -0.5, dice.gauss(0, 1)]) for _ in range(length)]
    if values and dice.random() < 0.2:
        values[dice.randrange(length)] = dice.choice([*NUMBERS, *ODD])
    return values


def fitting(field: str, dice: random.Random) -> Any:
    """A value of the kind that an argument of this name takes, right or wrong."""
    size = dice.choice([0, 1, 2, 2, 64, 65])
    number = dice.choice([0, 1, 2, 5, 31, 40, dice.choice(NUMBERS)])
    made: dict[str, Any] = {
        "parameter": dice.choice(NAMES),
        "axis": dice.choice(WORDS[:2]),
        "side": dice.choice(WORDS[2:4]),
        "by": dice.choice(["singular values", "rows", "columns"]),
        "contains": dice.choice(["", "down", "norm", "☕"]),
        "text": dice.choice(WORDS),
        "trigger": dice.choice([None, *WORDS]),
        "left": vector(dice),
        "right": vector(dice),
        "direction": vector(dice),
        "rows": [dice.choice([0, 1, 5]), dice.choice([1, 2, 6, 32, number])],
        "columns": dice.choice([None, [0, 4], [0, 48], [3, number]]),
        "indices": [dice.choice([0, 1, 5, 31, number]) for _ in range(dice.choice([0, 1, 3, 5000]))],
        "positions": [dice.choice([-1, 0, 3]) for _ in range(size)],
        "values": dice.choice(
            [number, [1, 2, 3, 4], [[1, 2], [3, 4]], [[0.5] * 4] * 5, [[1], [2, 3]], [[[1]]], [[number] * 4]]
        ),
        "chat": dice.random() < 0.5,
        "factor": dice.choice([0, 1, -1, 0.5, number]),
        "scale": dice.choice([1, -1, 0.01, number]),
        "prompts": [dice.choice(WORDS) for _ in range(size)],
        "targets": [dice.choice(WORDS) for _ in range(size)],
        "texts": [dice.choice(WORDS) for _ in range(size)],
        "sites": [{"layer": number, "point": dice.choice(WORDS[6:8])} for _ in range(dice.choice([1, 4, 5]))],
        "report": dice.choice([None, {"parameter": dice.choice(LOCAL), "layer": number, "direction": vector(dice)}]),
    }
    return made.get(field, number)


def call(dice: random.Random) -> tuple[str, Any]:
    name = dice.choice([*TOOLS] * 5 + ["nothing", "", "Undo", "tensor_stats "])
    fields = list(TOOLS[name].arguments.model_fields) if name in TOOLS else ["parameter"]
    arguments = {field: fitting(field, dice) for field in fields if dice.random() < 0.95}
    if name in GOOD and dice.random() < 0.4:
        arguments = GOOD[name] | ({"parameter": dice.choice(MATRICES)} if "parameter" in fields else {})
    if dice.random() < 0.15:
        arguments[dice.choice([*fields, "more", ""])] = dice.choice([*NUMBERS, *ODD, *WORDS])
    form = dice.random()
    if form < 0.9:
        return name, arguments
    try:
        text = json.dumps(arguments)
    except TypeError:
        return name, arguments
    return name, text if form < 0.96 else text[: dice.randrange(len(text) + 1)]


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=10,
)
