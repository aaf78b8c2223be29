"""The engine: what a call gives never depends on what else is asked, and is what a plain model gives."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import wsp_episodes

from weightgym.rewards.wsp.engine import OPENING, ROWS, Engine, Forward, Gradient
from weightgym.rewards.wsp.kl import NonFinite
from weightgym.rewards.wsp.language_model import LanguageModel, load
from weightgym.rewards.wsp.places import Place

POINTS: Any = ("residual", "attention_output", "mlp_input", "mlp_hidden", "mlp_output")
PLACES = [Place(layer, point) for layer in (0, 1) for point in POINTS]
KINDS: dict[str, Callable[[], LanguageModel]] = {
    "untied": lambda: wsp_episodes.model(),
    "tied": lambda: wsp_episodes.model(tied=True),
    "tiny-world": load,
    "opened": lambda: wsp_episodes.model(opening="<s>You are a model of few words.</s>"),
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    torch.set_num_threads(1)
    made: LanguageModel = KINDS[request.param]()
    return made


def random_overlay(engine: Engine, dice: random.Random) -> dict[str, torch.Tensor]:
    """Other values for up to four parameters: embedding, head, norms and matrices alike."""
    special = [name for name in engine.start if "embed" in name or "lm_head" in name or "norm" in name]
    names = {*dice.sample(sorted(engine.start), dice.randrange(3)), *dice.sample(special, dice.randrange(3))}
    noise = np.random.default_rng(dice.randrange(2**32))
    return {name: changed(engine.start[name], noise) for name in sorted(names)}


def changed(weight: Any, noise: np.random.Generator) -> torch.Tensor:
    made = torch.empty(weight.shape)
    made.numpy()[...] = weight + noise.standard_normal(weight.shape).astype(np.float32) * (weight.std() + 0.05)
    return made


def random_ids(engine: Engine, dice: random.Random, most: int = 40) -> list[int]:
    """Half of them go on as chats begin, where all chats begin alike; or are no more than that."""
    ids = [dice.randrange(engine.model.network.config.vocab_size) for _ in range(dice.randint(1, most))]
    opening = engine.model.opening
    if len(opening) < OPENING or dice.randrange(2):
        return ids
    return [*opening, *ids] if dice.randrange(8) else list(opening)


def plain(model: LanguageModel, overlay: Mapping[str, torch.Tensor]) -> Any:
    """A model of transformers with these weights in it."""
    network = type(model.network)(model.network.config).eval().requires_grad_(False)
    network.load_state_dict(model.network.state_dict())
    parameters = dict(network.named_parameters())
    with torch.no_grad():
        for name, weight in overlay.items():
            parameters[name].copy_(weight)
    return network


Call = Callable[[Engine], Any]


def random_call(engine: Engine, dice: random.Random) -> Call:
    """A call of any method with weights of its own."""
    overlay = random_overlay(engine, dice)
    rows = [random_ids(engine, dice) for _ in range(dice.randint(1, 3))]
    kind, tokens, stop = dice.randrange(5), dice.randint(1, 12), dice.random() < 0.5
    places = dice.sample(PLACES, dice.randrange(4))
    if kind < 2:
        return lambda one: one.generate(rows, tokens, overlay, stop=stop)
    if kind == 2:
        return lambda one: one.logits(rows[0], overlay)
    if kind == 3:
        return lambda one: one.gradient(rows[0], rows[-1], overlay, places=PLACES[:3])
    keep: Any = dice.choice(["all", "last", "none"])
    return lambda one: one.forward(rows, overlay, keep=keep, places=places)


def same(left: Any, right: Any) -> bool:
    """To the bit."""
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right) and left.dtype == right.dtype
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, Sequence):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What calls give that are made at once, each from a thread of its own; or what they raise."""
    found: list[Any] = [None] * len(calls)
    begin = threading.Barrier(len(calls))

    def work(index: int) -> None:
        begin.wait()
        try:
            found[index] = calls[index]()
        except BaseException as error:
            found[index] = error

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_a_result_is_the_same_bits_whoever_else_asks(model: LanguageModel) -> None:
    dice = random.Random(7)
    shared, alone = Engine(model), Engine(plain_copy(model))
    calls = [random_call(shared, dice) for _ in range(64)]
    passes = []
    hook = model.network.base_model.layers[0].register_forward_pre_hook(lambda *_: passes.append(1))
    order = dice.sample(range(64), 64)
    found = dict(zip(order, together([lambda call=calls[i]: call(shared) for i in order]), strict=True))  # type: ignore[misc]
    many = len(passes)
    hook.remove()
    for index, call in enumerate(calls):
        expected = call(alone)
        assert isinstance(found[index], type(expected))
        assert same(found[index], expected), index
    passes.clear()
    hook = alone.model.network.base_model.layers[0].register_forward_pre_hook(lambda *_: passes.append(1))
    for call in calls:
        call(alone)
    hook.remove()
    assert many < len(passes)  # they did share blocks


def plain_copy(model: LanguageModel) -> LanguageModel:
    return LanguageModel(model.name, plain(model, {}), model.tokenizer)


def test_logits_are_those_of_a_plain_model_with_these_weights(model: LanguageModel) -> None:
    engine, dice = Engine(model), random.Random(3)
    for trial in range(6):
        overlay = random_overlay(engine, dice) if trial else {}
        network = plain(model, overlay)
        rows = [random_ids(engine, dice, 140) for _ in range(5)]
        passed, last = engine.forward(rows, overlay), engine.forward(rows, overlay, keep="last")
        for ids, row, end in zip(rows, passed, last, strict=True):
            with torch.inference_mode():
                expected = network(input_ids=torch.tensor([ids])).logits[0]
            scale = expected.abs().max()
            for found in (row.logits, engine.logits(ids, overlay)):
                assert torch.allclose(found / scale, expected / scale, atol=1e-5)
            assert end.logits.shape == (1, expected.shape[1])
            assert torch.allclose(end.logits[0] / scale, expected[-1] / scale, atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_every_changed_parameter_counts(tied: bool) -> None:
    engine, dice = Engine(wsp_episodes.model(tied=tied)), random.Random(4)
    rows = [random_ids(engine, dice, 20) for _ in range(3)]
    noise = np.random.default_rng(0)
    before = engine.forward(rows)
    for name in engine.start:
        after = engine.forward(rows, {name: changed(engine.start[name], noise)})
        assert any(not torch.equal(one.logits, two.logits) for one, two in zip(before, after, strict=True)), name
    assert same(engine.forward(rows), before)


def test_greedy_continuations_are_those_of_a_plain_loop(model: LanguageModel) -> None:
    engine, dice = Engine(model), random.Random(5)
    end = model.tokenizer.eos_token_id
    for trial in range(3):
        overlay = random_overlay(engine, dice) if trial else {}
        network = plain(model, overlay)
        rows = [random_ids(engine, dice, 30) for _ in range(4)]
        for stop in (True, False):
            made = engine.generate(rows, 10, overlay, stop=stop)
            assert made == [loop(network, ids, 10, end, stop=stop) for ids in rows]


@torch.inference_mode()
def loop(network: Any, ids: Sequence[int], tokens: int, end: int, *, stop: bool) -> list[int]:
    made: list[int] = []
    while len(made) < tokens:
        logits = network(input_ids=torch.tensor([[*ids, *made]])).logits[0, -1]
        if not stop:
            logits[end] = -torch.inf
        if (chosen := int(logits.argmax())) == end:
            break
        made.append(chosen)
    return made


def test_what_chats_begin_with_is_read_once() -> None:
    model = KINDS["opened"]()
    engine, begun = Engine(model), len(model.opening)
    chats = [model.chat_ids(question) for question in ("Why?", "And how?", "Since when?")]
    sizes: list[tuple[int, int]] = []
    model.network.base_model.layers[0].register_forward_pre_hook(
        lambda module, args: sizes.append(tuple(args[0].shape[:2]))
    )
    read = engine.reader()
    for chat in chats:
        assert torch.equal(read(chat), engine.reader()(chat))
    assert [size for size in sizes if size != (1, begun)] == [(1, len(chat) - begun) for chat in chats for _ in "12"]
    assert sizes.count((1, begun)) == 1 + len(chats)
    sizes.clear()
    engine.generate(chats, 1)
    assert sizes == [(1, begun), (ROWS, 16), (1, begun), (ROWS, 32)]  # as many blocks as lengths


def test_activations_are_what_hooks_on_a_plain_model_see(model: LanguageModel) -> None:
    engine, dice = Engine(model), random.Random(6)
    overlay = random_overlay(engine, dice)
    network, rows = plain(model, overlay), [random_ids(engine, dice, 25) for _ in range(3)]
    for ids, row in zip(rows, engine.forward(rows, overlay, keep="none", places=PLACES), strict=True):
        assert row.logits.shape[0] == 0
        for place in PLACES:
            expected = hooked(network, ids, place)
            found = row.activations[place]
            assert found.shape == expected.shape == (len(ids), engine.width(place))
            assert torch.allclose(found, expected, atol=1e-4 * float(expected.abs().max()))


@torch.inference_mode()
def hooked(network: Any, ids: Sequence[int], place: Place) -> torch.Tensor:
    layer = network.model.layers[place.layer]
    seen: list[torch.Tensor] = []

    def see(module: Any, args: Any, output: Any) -> None:
        chosen = args[0] if place.point in ("mlp_input", "mlp_hidden") else output
        seen.append(chosen[0] if isinstance(chosen, tuple) else chosen)

    module = {
        "residual": layer,
        "attention_output": layer.self_attn.o_proj,
        "mlp_input": layer.mlp.gate_proj,
        "mlp_hidden": layer.mlp.down_proj,
        "mlp_output": layer.mlp.down_proj,
    }[place.point]
    hook = module.register_forward_hook(see)
    network(input_ids=torch.tensor([ids]))
    hook.remove()
    return seen[0][0]


@pytest.mark.parametrize("point", POINTS)
def test_gradients_are_slopes(point: Any) -> None:
    """Of a model in float64, moved a little each way."""
    model = wsp_episodes.model()
    engine, dice = Engine(model), random.Random(8)
    overlay = random_overlay(engine, dice)
    prompt, target, place = random_ids(engine, dice, 9), random_ids(engine, dice, 3), Place(0, point)
    found: Gradient = engine.gradient(prompt, target, overlay, places=[place])
    network = plain(model, overlay).double()
    assert found.log_probability == pytest.approx(moved(network, prompt, target, place, 0, 0.0), rel=1e-5)
    for index in (0, 5, engine.width(place) - 1):
        up, down = (moved(network, prompt, target, place, index, step) for step in (3e-3, -3e-3))
        assert float(found.by_place[place][index]) == pytest.approx((up - down) / 6e-3, rel=1e-2, abs=1e-3)


@torch.no_grad()
def moved(network: Any, prompt: list[int], target: list[int], place: Place, index: int, step: float) -> float:
    layer, last = network.model.layers[place.layer], len(prompt) - 1

    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        tensor[0, last, index] += step
        return tensor

    if place.point in ("mlp_input", "mlp_hidden"):
        module = layer.mlp if place.point == "mlp_input" else layer.mlp.down_proj
        hook = module.register_forward_pre_hook(lambda module, args: (change(args[0]),))
    else:
        module = {"residual": layer, "attention_output": layer.self_attn, "mlp_output": layer.mlp}[place.point]
        hook = module.register_forward_hook(
            lambda module, args, out: (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)
        )
    logs = network(input_ids=torch.tensor([[*prompt, *target[:-1]]])).logits[0, last:].log_softmax(-1)
    hook.remove()
    return float(logs[torch.arange(len(target)), torch.tensor(target)].sum())


def test_an_exception_reaches_everyone_whose_row_was_run() -> None:
    engine = Engine(wsp_episodes.model())
    blocks = 0

    def fail(*_: Any) -> None:
        nonlocal blocks
        blocks += 1
        time.sleep(0.05)  # the others are waiting by then
        raise MemoryError("full")

    hook = engine.model.network.model.layers[1].register_forward_pre_hook(fail)
    found = together([lambda: engine.forward([[1, 2, 3]]) for _ in range(3 * ROWS)])
    assert all(isinstance(one, MemoryError) for one in found)
    assert blocks < 3 * ROWS
    hook.remove()
    assert isinstance(engine.forward([[1, 2, 3]])[0], Forward)


def test_who_is_broken_off_takes_nobody_along_unheard() -> None:
    engine = Engine(wsp_episodes.model())

    def stop(*_: Any) -> None:
        time.sleep(0.05)  # the others are waiting by then
        raise KeyboardInterrupt

    hook = engine.model.network.model.layers[0].register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        engine.forward([[1]] * (2 * ROWS))  # its second block isn't run for anyone
    found = together([lambda: engine.forward([[1, 2, 3]]) for _ in range(2 * ROWS)])
    hook.remove()
    assert {type(one) for one in found} == {KeyboardInterrupt, RuntimeError}
    assert isinstance(engine.forward([[1]])[0], Forward)


def test_only_who_has_weights_that_overflow_is_told() -> None:
    engine = Engine(wsp_episodes.model())
    huge = {wsp_episodes.NAME: torch.full((32, 48), 3e38)}
    found = together([lambda i=i: engine.generate([[1, 2]] * 2, 8, huge if i % 2 else None) for i in range(12)])  # type: ignore[misc]
    assert [isinstance(one, NonFinite) for one in found] == [False, True] * 6
    assert all(found[i] == engine.generate([[1, 2]] * 2, 8) for i in range(0, 12, 2))


@pytest.mark.parametrize("rows", [[[]], [[1], []]])
def test_no_tokens_are_an_error(rows: list[list[int]]) -> None:
    engine = wsp_episodes.engine()
    for call in (lambda: engine.forward(rows), lambda: engine.generate(rows, 3), lambda: engine.logits(rows[-1])):
        with pytest.raises(ValueError, match="no token ids"):
            call()
    with pytest.raises(ValueError, match="no token ids"):
        engine.gradient([1], [], places=PLACES[:1])
