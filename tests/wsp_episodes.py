"""Episodes on a tiny random model, and assistant messages with tool calls, for tests of WSP-Bench."""

from __future__ import annotations

import functools
import json
from typing import Any

import tiny_models
import torch

from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.prices import Prices

NAME = "model.layers.1.mlp.down_proj.weight"
#: Elements of NAME.
ELEMENTS = 32 * 48
FREE = Prices()


def model(seed: int = 0, *, tied: bool = False, opening: str = "") -> LanguageModel:
    """A random one. ``opening``: what its chats begin with."""
    torch.set_num_threads(1)
    network, tokenizer = tiny_models.model(seed, tied=tied).requires_grad_(False), tiny_models.tokenizer()
    tokenizer.chat_template = opening + tokenizer.chat_template
    return LanguageModel("random", network, tokenizer)


@functools.cache
def engine(seed: int = 0, *, tied: bool = False) -> Engine:
    return Engine(model(seed, tied=tied))


def data(tier: Any = "easy", *, family: Any = "topic", limit: int = 4096) -> PublicData:
    return PublicData(family=family, tier=tier, profile="wsp-v1", model="random", model_hash="0" * 64, edit_limit=limit)


def episode(tier: str = "easy", *, limit: int = 4096, prices: Prices = FREE, replay: bool = False) -> Episode:
    return Episode(engine(), data(tier, limit=limit), prices=prices, replay=replay)


def call(name: str, arguments: Any = None, id: str = "a", **named: Any) -> dict[str, Any]:
    """A tool call; ``arguments`` as text, or by name."""
    text = arguments if arguments is not None else json.dumps(named)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def message(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def ask(one: Episode, name: str, **named: Any) -> str:
    """The content of the one reply to the one call of a message, without its status line."""
    (reply, *_) = one.message(message(call(name, **named))).messages
    content, _, line = reply["content"].rpartition("\n")
    assert line.startswith("[turn ")
    return content
