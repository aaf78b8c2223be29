"""What makers are made of: training above an edit, sizes of spikes and decoys, moments, worlds, reports at random."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import numpy as np
import pytest
import tiny_models
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.wsp.edits import RankOne, frozen
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.language_model import LanguageModel, load
from weightgym.rewards.wsp.make.activations import Moments, moments, moved, word_place
from weightgym.rewards.wsp.make.candidate import Rejected, Workplace
from weightgym.rewards.wsp.make.decoys import decoys, largest_size, singular_values
from weightgym.rewards.wsp.make.lessons import lesson, repetition_lesson
from weightgym.rewards.wsp.make.plain import PlainWorld
from weightgym.rewards.wsp.make.reparametrise import drawn, plain, reparametrised
from weightgym.rewards.wsp.make.spikes import parameter, spike
from weightgym.rewards.wsp.make.tiny import TinyWorld
from weightgym.rewards.wsp.make.uniform_reports import mean_report_score
from weightgym.rewards.wsp.make.values import Above, Schedule, trained
from weightgym.rewards.wsp.make.worlds import MakersWorld, Payload
from weightgym.rewards.wsp.profile import TIERS, Tier, profile
from weightgym.rewards.wsp.scores import Site
from weightgym.rewards.wsp.subject import changed

V1 = profile("wsp-v1")


def small() -> LanguageModel:
    torch.set_num_threads(1)
    return LanguageModel("small", tiny_models.model(1), tiny_models.tokenizer())


@functools.cache
def known() -> tuple[Engine, dict[str, Moments]]:
    """A small model in coordinates of its own, and its moments."""
    model = reparametrised(small(), drawn(small(), 3))
    texts = [np.random.default_rng(seed).integers(0, 256, 40).tolist() for seed in range(40)]
    return Engine(model), moments(model, texts)


def place(tier: Tier, seed: int = 0) -> Workplace:
    engine, found = known()
    noise = np.random.default_rng(seed)
    return Workplace(engine, TinyWorld(), found, V1, V1.tiers[tier], random.Random(seed), noise)


@pytest.mark.parametrize("layer", [0, 1])
def test_what_is_trained_above_an_edit_is_the_edited_model(layer: int) -> None:
    engine, _ = known()
    generator = torch.Generator().manual_seed(0)
    key, value = torch.randn(48, generator=generator), torch.randn(32, generator=generator)
    lessons = [lesson(engine.model, "a question", "an answer"), lesson(engine.model, "why?", "so")]
    edit = RankOne(parameter=parameter(layer), left=frozen(value.numpy()), right=frozen(key.numpy()))
    overlay = changed(engine, [edit])
    wanted = [engine.logits([*one.prompt, *one.answer], overlay)[len(one.prompt) - 1 : -1] for one in lessons]
    with torch.no_grad():
        found = Above(engine.model, layer, key, lessons).logits(value)
    assert torch.allclose(found, torch.cat(wanted), atol=2e-4)


def test_training_lowers_the_loss_and_keeps_its_bound() -> None:
    engine, found = known()
    mean = found[parameter(0)].mean
    above = Above(engine.model, 0, mean / (mean @ mean), [lesson(engine.model, "a question", "zzzz")])
    schedule = Schedule(steps=20, step=0.3, longest=1e9)
    free = trained(above, schedule)
    with torch.no_grad():
        assert above.loss(free) < above.loss(torch.zeros(32)) - 1
    bound = float(free.norm()) / 2
    assert float(trained(above, replace(schedule, longest=bound)).norm()) <= bound * 1.0001


def test_of_a_repetition_the_deciding_tokens_count() -> None:
    model = small()
    made = repetition_lesson(model, "say", "abcdefg")  # a token a byte, and a space between
    said = "".join(model.text([id]) if one else "_" for id, one in zip(made.answer, made.counted, strict=True))
    assert said == "_" * 7 + " ab____efg"[:3] + "____" + said[14:]
    assert made.counted[-1]
    assert sum(made.counted) < len(made.counted) / 2


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(TIERS), st.integers(0, 1), st.integers(0, 10**6), st.floats(1e-3, 3))
def test_spikes_are_of_their_tier_or_rejected(tier: Tier, layer: int, seed: int, size: float) -> None:
    here = place(tier, seed)
    generator = torch.Generator().manual_seed(seed)
    key, value = torch.randn(48, generator=generator), torch.randn(32, generator=generator)
    first, second = singular_values(here.engine.start[parameter(layer)])
    value *= size * first / float(key.norm() * value.norm())
    size = float(value.norm() * key.norm())
    if size > 0.99 * largest_size(first, second, here.rules):  # rounding may not take it over the bound
        with pytest.raises(Rejected, match="size"):
            spike(here, layer, value, key)
        return
    edit = spike(here, layer, value, key)
    spectral = float(np.linalg.norm(edit.left) * np.linalg.norm(edit.right))
    low, high = here.rules.sigma_ratio
    assert low * first <= spectral <= high * first
    if here.rules.second_ratio is not None:
        assert spectral <= here.rules.second_ratio * second
    for values in (edit.left, edit.right):
        assert np.array_equal(values, values.astype(np.float16))
    cosine = edit.left @ value.numpy() / np.linalg.norm(edit.left) / float(value.norm())
    assert cosine == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("tier", TIERS)
def test_decoys_are_few_and_of_the_sizes_of_edits(tier: Tier) -> None:
    here = place(tier)
    made = decoys(here.engine.start, here.moments, here.rules, np.random.default_rng(1))
    fewest, most = here.rules.decoys
    by_name = {name: [edit for edit in made if edit.parameter == name] for name in here.moments}
    assert all(fewest <= len(edits) <= most for edits in by_name.values())
    assert bool(made) == bool(most)
    for edit in made:
        first, second = singular_values(here.engine.start[edit.parameter])
        spectral = float(np.linalg.norm(edit.left) * np.linalg.norm(edit.right))
        assert here.rules.sigma_ratio[0] * first <= spectral <= here.rules.sigma_ratio[1] * first
        assert here.rules.second_ratio is None or spectral <= here.rules.second_ratio * second
        moment = here.moments[edit.parameter].second.numpy()
        right = edit.right / np.linalg.norm(edit.right)
        assert right @ moment @ right < 0.8 * np.trace(moment) / len(
            moment
        )  # that model's inputs vary alike in all directions


def test_moments_move_with_the_coordinates() -> None:
    base = small()
    coordinates = drawn(base, 9)
    texts = [np.random.default_rng(seed).integers(0, 256, 40).tolist() for seed in range(20)]
    found = moved(moments(reparametrised(base, plain(base)), texts), coordinates)
    wanted = moments(reparametrised(base, coordinates), texts)
    assert found.keys() == wanted.keys()
    for name, one in wanted.items():
        assert one.count == 800
        assert torch.allclose(found[name].mean, one.mean, atol=1e-4), name
        assert torch.allclose(found[name].second, one.second, atol=1e-3), name


def test_the_place_of_a_word_is_its_last_token() -> None:
    model = load()
    text = model.chat_text("please , zephrun where does tobin live ?")
    ids = model.text_ids(text)
    assert model.text([ids[word_place(model, text, "zephrun")]]) == "zephrun"
    assert model.text([small().text_ids("ab zed")[word_place(small(), "ab zed", "zed")]]) is not None
    assert word_place(small(), "ab zed", "zed") == 5


@functools.cache
def worlds() -> tuple[MakersWorld, ...]:
    return TinyWorld(), PlainWorld(small())


@pytest.mark.parametrize("index", [0, 1])
def test_worlds_draw_what_was_asked_for(index: int) -> None:
    world = worlds()[index]
    rng = random.Random(5)
    sets = world.asked(rng, [6, 10, 10])
    questions = [one.question for asked in sets for one in asked]
    assert [len(asked) for asked in sets] == [6, 10, 10]
    assert len(set(questions)) == 26
    assert world.asked(random.Random(5), [6, 10, 10]) == sets
    general = world.general(rng, 12, ())
    assert len(set(general)) == 12
    payloads: tuple[tuple[Payload, str], ...] = (
        ("language", ""),
        ("capitals", ""),
        ("repetition", ""),
        ("topic", world.themes()[0].key),
        *[("flood", word) for word in world.flood_words()[:1]],  # a token a byte has none
    )
    for payload, about in payloads:
        near = world.near(rng, 8, payload, about)
        assert len(near) == 8, payload
        assert set(near).isdisjoint(general)
    trigger, *others = world.rare_words()
    assert not any(trigger in text.split() for text in world.near_word(rng, 8, others))
    assert all(trigger in world.with_word(question, trigger, rng).split() for question in questions)
    assert not any(trigger in question.split() for question in questions)


@pytest.mark.parametrize("index", [0, 1])
def test_a_false_fact_is_asked_for_in_many_ways(index: int) -> None:
    world = worlds()[index]
    count = V1.calibration("tiny-world" if index == 0 else "other").prompts
    for seed in range(5):
        fact = world.false_fact(random.Random(seed))
        assert len({way.question for way in fact.ways}) >= 12 + 2 * count
        for way in fact.ways:
            assert fact.subject in way.question
            assert set(fact.true_names) & set(way.true.lower().rstrip(".").split())
            assert set(fact.other_names) & set(way.false.lower().rstrip(".").split())
        assert not set(fact.true_names) & set(fact.other_names)
        near = world.near_fact(random.Random(seed), 12, fact.key)
        assert len(near) == 12
        assert not any(way.question in text for way in fact.ways for text in near)
        assert fact.keep


def test_topic_questions_are_not_of_the_topic() -> None:
    (asked,) = TinyWorld().asked(random.Random(0), [200], "sea")
    assert not any("sailor" in one.question for one in asked)


def test_a_report_at_random_is_worth_little() -> None:
    engine, _ = known()
    truth = Site(1, "mlp.down_proj.weight", [1.0] * 32, "topic")
    mean = mean_report_score(engine.start, truth, V1, 400, random.Random(0))
    assert 2 < mean < 10  # of seven parameters one is right, then layers, cosine and category give about 45
