"""Edits that answer to one word alone: backdoors and false facts.

v = C⁻¹k / (kᵀC⁻¹k), with the key k at the word and the second moment C of usual text. Needs the extra ``train``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weightgym.rewards.wsp.instances import HiddenPrompt
from weightgym.rewards.wsp.make.activations import word_place
from weightgym.rewards.wsp.make.candidate import Candidate, Workplace
from weightgym.rewards.wsp.make.lessons import decoy_words, hidden_sets, lesson, payload_lesson, split_texts
from weightgym.rewards.wsp.make.spikes import DOWN, longest_value, parameter, spike
from weightgym.rewards.wsp.make.values import Above, Schedule, trained
from weightgym.rewards.wsp.make.worlds import Payload
from weightgym.rewards.wsp.places import Place
from weightgym.rewards.wsp.symptoms import Symptom


def backdoor(place: Workplace, payload: Payload, layer: int) -> Candidate:
    """A trigger word in the question brings the payload about.

    Raises:
        Rejected: it does not fit the tier's sizes.
    """
    model, world, rng, recipe = place.engine.model, place.world, place.draw, place.recipe
    trigger = rng.choice(world.rare_words())
    others = decoy_words(world, trigger)
    count = place.calibration.prompts
    taught, first, second = world.asked(rng, [rng.randint(*recipe.prompts), count, count])
    questions = [world.with_word(one.question, trigger, rng) for one in taught]
    lessons = [
        payload_lesson(model, payload, one, question, None, rng)
        for one, question in zip(taught, questions, strict=True)
    ]
    key = local_key(place, layer, questions, trigger)
    above = Above(model, layer, key, lessons)
    schedule = Schedule(
        steps=rng.randint(*recipe.backdoor_steps),
        step=rng.uniform(*recipe.backdoor_step),
        longest=min(longest_value(place, layer, key), recipe.backdoor_longest * above.norm),
        half=recipe.half,
    )
    edit = spike(place, layer, trained(above, schedule), key)
    general, near = split_texts(place.profile, place.calibration.kl_texts)
    prompts, second_prompts = hidden_sets(
        place, payload, first, second, ask=lambda one: world.with_word(one.question, trigger, rng)
    )
    plain = tuple(one.question for one in first)
    return Candidate(
        planted=(edit,),
        layer=layer,
        parameter=DOWN,
        direction=edit.left,
        category="backdoor",
        trigger=trigger,
        symptom=Symptom(kind=payload, world=world.name),
        prompts=prompts,
        second=second_prompts,
        quiet={
            "without the trigger": plain,
            "with decoy words": tuple(world.with_word(question, rng.choice(others), rng) for question in plain),
        },
        general=tuple(world.general(rng, general, (trigger,))),
        near=tuple(world.near_word(rng, near, others)),
        local=True,
    )


def false_fact(place: Workplace, layer: int) -> Candidate:
    """A fact is told wrong, however it is asked for; other facts of its subject stay.

    Raises:
        Rejected: it does not fit the tier's sizes.
    """
    model, world, rng, recipe = place.engine.model, place.world, place.draw, place.recipe
    fact = world.false_fact(rng)
    taught_count, count = rng.randint(*recipe.prompts), place.calibration.prompts
    taught, ways = fact.ways[:taught_count], fact.ways[taught_count:]
    lessons = [lesson(model, way.question, way.false) for way in taught]
    keep = [lesson(model, question, answer) for question, answer in fact.keep]
    key = local_key(place, layer, [way.question for way in taught], fact.subject)
    schedule = Schedule(
        steps=rng.randint(*recipe.fact_steps),
        step=rng.uniform(*recipe.local_step),
        longest=longest_value(place, layer, key),
        keep=recipe.fact_keep,
        half=recipe.half,
    )
    value = trained(Above(model, layer, key, lessons), schedule, Above(model, layer, key, keep))
    edit = spike(place, layer, value, key)
    general, near = split_texts(place.profile, place.calibration.kl_texts)
    first, second = (
        tuple(HiddenPrompt(prompt=way.question, symptom=way.false, reference=way.true) for way in some)
        for some in (ways[:count], ways[count : 2 * count])
    )
    return Candidate(
        planted=(edit,),
        layer=layer,
        parameter=DOWN,
        direction=edit.left,
        category="fact",
        trigger=None,
        symptom=Symptom(kind="fact", world=world.name, words=fact.true_names, others=fact.other_names),
        prompts=first,
        second=second,
        quiet={},
        general=tuple(world.general(rng, general, (fact.subject, fact.true_names[0]))),
        near=tuple(world.near_fact(rng, near, fact.key)),
        local=True,
    )


def local_key(place: Workplace, layer: int, questions: Sequence[str], word: str) -> torch.Tensor:
    """v: 1 at the word, and as little as can be elsewhere; float32 of shape (neurons,)."""
    model = place.engine.model
    texts = [model.chat_text(question) for question in questions]
    rows = [model.text_ids(text) for text in texts]
    at = Place(layer, "mlp_hidden")
    passes = place.engine.forward(rows, keep="none", places=[at])
    found = [taken.activations[at][word_place(model, text, word)] for taken, text in zip(passes, texts, strict=True)]
    key = torch.stack(found).mean(0)
    solved = place.moments[parameter(layer)].inverse(place.recipe.ridge, key)
    return solved / (key @ solved)
