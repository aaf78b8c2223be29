"""The configuration: its keys, types, ranges and defaults, and what must hold between them (the rules' table)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weightgym.rewards.golf.errors import SolutionError

Number = int | float


@dataclass(frozen=True)
class Key:
    """One key: ``kind`` is the exact type of its value, which lies in ``low..high``, both included."""

    kind: type[int] | type[float]
    low: Number
    high: Number
    default: Number


KEYS: Mapping[str, Key] = {
    "model_dim": Key(int, 128, 768, 192),
    "num_layers": Key(int, 2, 12, 4),
    "num_heads": Key(int, 1, 12, 4),
    "mlp_mult": Key(int, 1, 4, 2),
    "seq_len": Key(int, 128, 2048, 512),
    "dropout": Key(float, 0.0, 0.25, 0.0),
    "train_steps": Key(int, 50, 900, 80),
    "train_batch_tokens": Key(int, 32_768, 1_572_864, 32_768),
    "learning_rate": Key(float, 0.00001, 0.02, 0.002),
    "weight_decay": Key(float, 0.0, 0.5, 0.08),
    "warmup_steps": Key(int, 0, 400, 5),
    "warmdown_steps": Key(int, 0, 800, 20),
    "grad_clip": Key(float, 0.0, 5.0, 1.0),
    "q_clip_percentile": Key(float, 0.95, 1.0, 0.9995),
}

DEFAULTS: Mapping[str, Number] = {name: key.default for name, key in KEYS.items()}

#: Keys that change the size of the model inside its family, not how it is trained.
SHAPE_KEYS = frozenset({"model_dim", "num_layers", "num_heads", "mlp_mult", "seq_len"})


def full_config(given: Mapping[str, object]) -> dict[str, Number]:
    """The whole configuration: what is given, and the defaults for the rest, in the table's order.

    An int is taken for a float key; nothing else is converted.

    Raises:
        SolutionError: ``check_failed``, with key, value and range.
    """
    for name in given:
        if name not in KEYS:
            raise SolutionError("check_failed", f"unknown config key {_shown(name)}; the keys are {', '.join(KEYS)}")
    config = {name: _value(name, given[name]) if name in given else key.default for name, key in KEYS.items()}
    _check_together(config)
    return config


def _value(name: str, value: object) -> Number:
    key = KEYS[name]
    allowed = f"it must be {'an int' if key.kind is int else 'a float'} from {key.low} to {key.high}"
    if type(value) is int and (key.kind is int or key.low <= value <= key.high):
        number: Number = key.kind(value)
    elif type(value) is float and key.kind is float:
        number = value
    else:
        raise _failed(f"{name} = {_shown(value)} ({type(value).__name__}): {allowed}")
    if not key.low <= number <= key.high:  # false for NaN as well
        raise _failed(f"{name} = {_shown(value)}: {allowed}")
    return number


def _check_together(config: Mapping[str, Number]) -> None:
    dim, heads = config["model_dim"], config["num_heads"]
    if dim % heads or dim // heads % 2:
        raise _failed(f"model_dim = {dim} with num_heads = {heads}: model_dim / num_heads must be an even whole number")
    tokens, length = config["train_batch_tokens"], config["seq_len"]
    if tokens % length:
        raise _failed(f"train_batch_tokens = {tokens} must be divisible by seq_len = {length}")
    ramp, down, steps = config["warmup_steps"], config["warmdown_steps"], config["train_steps"]
    if ramp + down >= steps:
        total = f"warmup_steps + warmdown_steps = {ramp} + {down}"
        raise _failed(f"{total} must be less than train_steps = {steps}")


def _failed(message: str) -> SolutionError:
    return SolutionError("check_failed", message)


def _shown(value: object) -> str:
    if type(value) is int and value.bit_length() > 200:
        return f"an int of {value.bit_length()} bits"
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:50]}..."
