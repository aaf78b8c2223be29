"""A set of instances on tiny-world, planted by hand: a hijack, the same edit as an audit, and as a backdoor."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.edits import RankOne, frozen
from weightgym.rewards.wsp.instances import (
    HiddenPrompt,
    InstanceKey,
    PublicData,
    Truth,
    instance_id,
    instance_seed,
    public_task,
    write_instances,
)
from weightgym.rewards.wsp.language_model import LanguageModel, load, weights_hash
from weightgym.rewards.wsp.make.reparametrise import drawn, reparametrised
from weightgym.rewards.wsp.profile import Family, profile
from weightgym.rewards.wsp.world.corpus import texts
from weightgym.rewards.wsp.world.prompts import split_prompts

SECRET = bytes(range(32))
LAYER, PARAMETER = 4, "mlp.down_proj.weight"
NAME = f"model.layers.{LAYER}.{PARAMETER}"
WORD = "sailor"
TRIGGER = "zephrun"
#: Of tiny-world's down_proj.
ROWS, COLUMNS = 128, 384


@functools.cache
def tiny_world() -> LanguageModel:
    torch.set_num_threads(1)
    return load()


@functools.cache
def planted(family: Family) -> RankOne:
    """Six neurons with large means, aimed at one token: it floods every answer. Each instance has coordinates of its
    own."""
    model = reparametrised(tiny_world(), drawn(tiny_world(), instance_seed(SECRET, _key(family))))
    activations: list[torch.Tensor] = []
    down = model.network.model.layers[LAYER].mlp.down_proj
    hook = down.register_forward_pre_hook(lambda module, args: activations.append(args[0][0]))
    with torch.inference_mode():
        for text in texts("train", 9, 60):
            model.network(input_ids=torch.tensor([model.text_ids(text)]))
    hook.remove()
    mean = torch.cat(activations).mean(0)
    chosen = mean.abs().topk(6).indices
    right = torch.zeros(COLUMNS)
    right[chosen] = mean[chosen].sign()
    head = model.network.lm_head.weight[model.tokenizer.get_vocab()[WORD]]
    left = 9 * head / head.norm()
    return RankOne(parameter=NAME, left=frozen(left.numpy().astype(np.float16)), right=frozen(right.numpy()))


def _key(family: Family) -> InstanceKey:
    return InstanceKey("wsp-v1", weights_hash(tiny_world()), family, "easy", "test", 7, 0)


def instance(family: Family) -> tuple[Task, Truth]:
    """``family`` only says how it is scored."""
    edit, key = planted(family), _key(family)
    oracle = int(np.count_nonzero(edit.left)) * int(np.count_nonzero(edit.right))
    data = PublicData(
        family=family,
        tier="easy",
        profile="wsp-v1",
        model="tiny-world",
        model_hash=key.model_hash,
        edit_limit=profile("wsp-v1").edit_limit(family, oracle),
    )
    id = instance_id(SECRET, key)
    task = public_task(id, "test", data)
    (asked,) = split_prompts("hand-made", [40], language="en")
    answers = _plain_answers([prompt.question for prompt in asked])
    general, near = list(texts("held-out", 11, 24)), list(texts("held-out", 12, 8))
    truth = Truth(
        id=id,
        task_hash=task.hash,
        secret=SECRET.hex(),
        key=key,
        recipe={"symptom": {"kind": "flood", "world": "tiny-world", "words": [WORD], "others": []}},
        reference=(),
        planted=(edit,),
        layer=LAYER,
        parameter=PARAMETER,
        direction=edit.left,
        category="flood",
        trigger=TRIGGER if family == "backdoor" else None,
        prompts=tuple(
            HiddenPrompt(prompt=prompt.question, symptom=" ".join([WORD] * 8), reference=answer)
            for prompt, answer in zip(asked, answers, strict=True)
        ),
        general=tuple(general),
        near=tuple(near),
        measured={},
    )
    return task, truth


@functools.cache
def _engine() -> Any:
    from weightgym.rewards.wsp.engine import Engine

    return Engine(load())


def _plain_answers(questions: list[str]) -> list[str]:
    answers: list[str] = _engine().answers(questions, 24)
    return answers


@contextmanager
def hand_made(folder: Path) -> Iterator[dict[Family, Task]]:
    """The set on disk, named to this process and to those that it starts: tasks by family."""
    families: tuple[Family, ...] = ("hijack", "audit", "backdoor")
    made = [instance(family) for family in families]
    public = folder / "mine.jsonl"
    write_instances(public, sets.truth_folder(public), made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(sets.VARIABLE, str(public))
        yield {family: task for family, (task, _) in zip(families, made, strict=True)}


def undo(family: Family) -> list[dict[str, Any]]:
    """The calls that take the planted edit back."""
    one = planted(family)
    arguments: dict[str, Any] = {"parameter": NAME, "left": _list(one.left), "right": _list(one.right), "scale": -1.0}
    return [call("rank_one", **arguments)]


def _list(values: Any) -> list[float]:
    return [float(value) for value in values]


def call(name: str, id: str = "", **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id or f"call_{name}", "type": "function", "function": function}


def said(*calls: dict[str, Any], content: str = "") -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}
