"""The tools that run the model: what they answer, keep and refuse."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
import wsp_episodes
from wsp_episodes import NAME, ask, call, episode, message

from weightgym.rewards.wsp.edits import frozen
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.kl import text_kl
from weightgym.rewards.wsp.model import overlay
from weightgym.rewards.wsp.places import Place
from weightgym.rewards.wsp.profile import LIMITS
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools.gpu import shortened

ENGINE = wsp_episodes.engine()
RESIDUAL = {"layer": 1, "point": "residual"}
HIDDEN = {"layer": 0, "point": "mlp_hidden"}
BEYOND = {"layer": 2, "point": "residual"}


def edited(one: Episode) -> None:
    ask(one, "rank_one", parameter=NAME, left=[0.5] * 32, right="row 3", scale=0.7)


@pytest.mark.parametrize("chat", [True, False])
def test_continuations_are_the_edited_models(chat: bool) -> None:
    one = episode()
    prompts = ["abc", "x" * 30, "Añ"]
    ids = [ENGINE.model.chat_ids(text) if chat else ENGINE.model.text_ids(text) for text in prompts]
    plain = ask(one, "generate", prompts=prompts, chat=chat, max_new_tokens=6)
    edited(one)
    text = ask(one, "generate", prompts=prompts, chat=chat, max_new_tokens=6)
    made = [ENGINE.model.text(row) for row in ENGINE.generate(ids, 6, overlay(one.deltas))]
    assert [line.split(": ")[0] for line in text.splitlines()[1:]] == ["0", "1", "2"]
    assert text.splitlines()[1] == f"0: {' '.join(made[0].split())}" or not made[0].isprintable()
    assert text != plain
    assert one.gpu_calls == 2


def test_a_prompt_is_a_users_message_unless_it_says_otherwise() -> None:
    one = episode()
    said = {"prompts": ["abc"], "k": 20}
    chat = ENGINE.model.tokenizer.apply_chat_template(
        [{"role": "user", "content": "abc"}], add_generation_prompt=True, tokenize=False
    )
    assert ask(one, "next_tokens", **said) == ask(one, "next_tokens", prompts=[chat], k=20, chat=False)
    assert ask(one, "next_tokens", **said) != ask(one, "next_tokens", **said, chat=False)
    for tool in one.tools:
        fields = tool["function"]["parameters"]["properties"]
        assert ("chat" in fields) == ("prompts" in fields)


def test_next_tokens_are_the_likeliest() -> None:
    one = episode()
    edited(one)
    line = ask(one, "next_tokens", prompts=["abc"], k=2, chat=False).splitlines()[1]
    logs = ENGINE.logits(ENGINE.model.text_ids("abc"), overlay(one.deltas))[-1].log_softmax(-1)
    values, ids = logs.topk(2)
    assert line == "0: " + " ".join(
        f"{one.bench.tokens.token(int(i))!r} {v:.3f}" for i, v in zip(ids, values, strict=True)
    )


def test_captured_activations_are_kept_in_the_order_that_is_told() -> None:
    one = episode()
    edited(one)
    text = ask(one, "capture", prompts=["abc", "de"], sites=[RESIDUAL, HIDDEN], positions=[-1, 0], chat=False)
    told = [line.split(": ")[:2] for line in text.splitlines()[1:]]
    assert told[:3] == [
        ["#0", "prompt 0, layer 1 residual, position -1"],
        ["#1", "prompt 0, layer 1 residual, position 0"],
        ["#2", "prompt 0, layer 0 mlp_hidden, position -1"],
    ]
    assert len(told) == len(one.bench.captured) == 8
    places = [Place(1, "residual"), Place(0, "mlp_hidden")]
    for prompt, ids in enumerate(([97, 98, 99], [100, 101])):
        ids = ENGINE.model.text_ids("abc" if prompt == 0 else "de")
        (row,) = ENGINE.forward([ids], overlay(one.deltas), places=places)
        for site, place in enumerate(places):
            for index, position in enumerate((-1, 0)):
                kept = one.bench.captured[prompt * 4 + site * 2 + index]
                assert np.array_equal(kept, row.activations[place][position].numpy())
    assert ask(one, "capture", prompts=["x"], sites=[RESIDUAL]).splitlines()[1].startswith("#8: ")
    assert not ask(one, "project_out", parameter=NAME, direction="captured activation #8").startswith("refused")


def test_a_capture_shows_its_projection_on_a_direction() -> None:
    one = episode()
    text = ask(one, "capture", prompts=["abc"], sites=[RESIDUAL], direction=[2.0] + [0.0] * 31)
    value = one.bench.captured[0]
    assert f"projection {value[0]:+.5g} of norm {np.linalg.norm(value.astype(np.float64)):.5g}" in text


def test_a_gradient_is_the_mean_over_prompts() -> None:
    one = episode()
    edited(one)
    said = {"prompts": ["abc", "de"], "targets": ["f", "gh"], "sites": [RESIDUAL, HIDDEN], "chat": False}
    text = ask(one, "gradient", **said)
    ids = ENGINE.model.text_ids
    place = Place(1, "residual")
    each = [
        ENGINE.gradient(ids(p), ids(t), overlay(one.deltas), places=[place]) for p, t in (("abc", "f"), ("de", "gh"))
    ]
    mean = sum(row.by_place[place].numpy() for row in each) / 2
    assert one.bench.captured[0] == pytest.approx(mean, rel=1e-5, abs=1e-6)
    assert len(one.bench.captured[1]) == 48
    assert f"mean log-probability is {sum(row.log_probability for row in each) / 2:.5g}" in text
    again = episode()
    edited(again)
    assert ask(again, "gradient", **said) == text


def test_kl_is_what_the_score_takes() -> None:
    one = episode()
    assert "KL(start ∥ your edits): 0 nats a token over 5 tokens" in ask(one, "kl", texts=["abc", "de"])
    edited(one)
    mine = overlay(one.deltas)
    ids = [ENGINE.model.text_ids(text) for text in ("abc", "de")]
    expected = text_kl(ENGINE.logits, lambda row: ENGINE.logits(row, mine), ids)
    assert expected.mean > 0
    assert f" {expected.mean:.6g} nats" in ask(one, "kl", texts=["abc", "de"])


ONE_TOO_LONG = ["x", "y" * 129]
RAW: dict[str, Any] = {"sites": [RESIDUAL], "chat": False}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("generate", {"prompts": ONE_TOO_LONG, "chat": False}, "bad_prompt: prompt 1 has 129 tokens; at most 128"),
    ("next_tokens", {"prompts": ONE_TOO_LONG, "chat": False}, "bad_prompt: prompt 1 has 129"),
    ("kl", {"texts": ONE_TOO_LONG}, "bad_prompt: text 1 has 129"),
    ("gradient", {"prompts": ["x"], "targets": ["y" * 129], **RAW}, "bad_prompt: target 0 has 129"),
    ("gradient", {"prompts": ["x"], "targets": ["y"], "sites": [BEYOND]}, "bad_site: layer 2"),
    ("capture", {"prompts": ["x"], "sites": [BEYOND]}, "bad_site: layer 2; .* layers 0 to 1"),
    ("capture", {"prompts": ["abc", "x"], "positions": [1], **RAW}, "bad_position: 1 of prompt 1"),
    ("capture", {"prompts": ["x"], "positions": [-2], **RAW}, "bad_position: -2 of prompt 0"),
    ("capture", {"prompts": ["x"], "sites": [RESIDUAL, HIDDEN], "direction": [1.0] * 32}, "a direction of 32"),
    ("capture", {"prompts": ["x"], "direction": [0.0] * 32, **RAW}, "bad_direction: it is zero"),
    ("capture", {"prompts": ["x"], "direction": "captured activation #0", **RAW}, "bad_reference"),
    ("capture", {"prompts": ["x"] * 64, "sites": [RESIDUAL] * 4, "positions": [-1] * 16}, "captured_full: 4096"),
]


@pytest.mark.parametrize(("tool", "arguments", "told"), REFUSED)
def test_what_cant_be_run_is_refused_before_anything_is_spent(tool: str, arguments: Any, told: str) -> None:
    for replay in (False, True):
        one = episode(replay=replay)
        content = ask(one, tool, **arguments)
        assert content.startswith("refused: ")
        assert re.search(told, content), content
        assert (one.gpu_calls, len(one.bench.captured), one.turns) == (0, 0, 1)


def test_captured_activations_have_a_limit_in_all() -> None:
    one = episode()
    said = {"prompts": ["abcdefghijklmnop"] * 64, "sites": [RESIDUAL], "positions": list(range(16)), "chat": False}
    contents = [ask(one, "capture", **said) for _ in range(4)]
    assert [text.startswith("refused: captured_full") for text in contents] == [False, False, True, True]
    assert one.gpu_calls == 2
    assert sum(vector.nbytes + 200 for vector in one.bench.captured) <= one.profile.captured_bytes
    for _ in range(30):
        one.bench.captured.append(frozen(np.zeros(32)))
    assert not ask(one, "capture", prompts=["x"], sites=[RESIDUAL]).startswith("refused")


def test_weights_that_overflow_are_told_and_spent() -> None:
    one = episode()
    ask(one, "set_slice", parameter=NAME, rows=[0, 32], values=3e38)
    cases: dict[str, dict[str, Any]] = {
        "generate": {"prompts": ["x"] * 3},
        "next_tokens": {"prompts": ["x"]},
        "capture": {"prompts": ["x"], "sites": [RESIDUAL]},
        "gradient": {"prompts": ["x"], "targets": ["y"], "sites": [HIDDEN]},
        "kl": {"texts": ["x"]},
    }
    for tool, arguments in cases.items():
        spent = one.gpu_calls
        assert "not finite" in ask(one, tool, **arguments), tool
        assert one.gpu_calls == spent + 1
    assert one.bench.captured == []


@pytest.mark.parametrize("tool", ["generate", "next_tokens", "capture", "kl", "gradient"])
def test_the_largest_answers_stay_under_the_limit_with_every_prompt_in_it(tool: str) -> None:
    one = episode()
    few = ["abcdefghijklmnop" * 2] * 16
    arguments: dict[str, dict[str, Any]] = {
        "generate": {"prompts": few * 4, "max_new_tokens": 128},
        "next_tokens": {"prompts": few * 4, "k": 20},
        "kl": {"texts": few * 4},
        "capture": {"prompts": few, "sites": [RESIDUAL], "positions": list(range(16)), "k": 20},
        "gradient": {"prompts": few, "targets": few, "sites": [RESIDUAL, HIDDEN, RESIDUAL, HIDDEN]},
    }
    (reply,) = one.message(message(call(tool, **arguments[tool]))).messages
    size = len(reply["content"].encode())
    assert size <= LIMITS.result_bytes
    lines = reply["content"].splitlines()[1:-1]
    if tool in ("generate", "next_tokens", "kl"):
        assert [line.split(": ")[0] for line in lines] == [str(number) for number in range(64)]


@pytest.mark.parametrize("limit", [40, 100, 150, 1000])
def test_as_few_lines_as_possible_are_shortened(limit: int) -> None:
    lines = ["short", "middle" * 5, "long" * 30, "é" * 25]
    made = shortened(lines, limit)
    assert len(made) == 4
    assert made[0] == "short"
    if limit > 99:
        assert sum(len(line.encode()) + 1 for line in made) <= limit
    whole = [one == line for one, line in zip(made, lines, strict=True)]
    assert whole == {40: [1, 0, 0, 0], 100: [1, 1, 0, 0], 150: [1, 1, 0, 1], 1000: [1, 1, 1, 1]}[limit]
    assert all(one.endswith("…") for one, kept in zip(made, whole, strict=True) if not kept)


def test_an_episode_holds_only_its_edits() -> None:
    from weightgym.rewards.wsp.language_model import load

    torch.set_num_threads(1)
    engine = Engine(load())
    name, embedding = "model.layers.3.mlp.down_proj.weight", "model.embed_tokens.weight"
    data = wsp_episodes.data(limit=1 << 40)
    Episode(engine, data).message(message(call("generate", prompts=["the"])))  # what is imported and made once
    tracemalloc.start()
    try:
        begun = tracemalloc.get_traced_memory()[0]
        one = Episode(engine, data)
        for _ in range(4):
            ask(one, "generate", prompts=["the"])
            left = np.random.default_rng(0).standard_normal(128).round(3).tolist()
            one.bench.deltas.apply(_put(embedding))
            ask(one, "rank_one", parameter=name, left=left, right="row 3")
        while one.deltas.nbytes + 700_000 < one.profile.edit_bytes:
            one.deltas.apply(_put(embedding))
        with pytest.raises(Refused, match="edit_log_full"):
            one.deltas.apply(_put(embedding))
        for _ in range(3):
            ask(one, "capture", prompts=["the river of"] * 64, sites=[RESIDUAL], positions=[-1, 0, 1, 2])
        held = tracemalloc.get_traced_memory()[0] - begun
    finally:
        tracemalloc.stop()
    assert one.deltas.nbytes > 3_000_000
    assert len(one.bench.captured) == 3 * 256
    captured = sum(vector.nbytes + 200 for vector in one.bench.captured)
    assert held < one.deltas.nbytes + captured + 150_000
    assert one.profile.edit_bytes + one.profile.captured_bytes < 5_000_000


def _put(name: str) -> Any:
    from weightgym.rewards.wsp.edits import Put

    return Put(parameter=name, rows=(0, 1200), columns=(0, 128), values=frozen(np.ones((1200, 128))))
