"""Edits that are always on: all answers change their language, go upper case, repeat themselves, or drift to a topic.

v = mean activation / mean(mean activation · k), so that the edit adds about u at every token. Needs ``train``.
"""

from __future__ import annotations

from weightgym.rewards.wsp.make.candidate import Candidate, Workplace
from weightgym.rewards.wsp.make.lessons import hidden_sets, payload_lesson, split_texts
from weightgym.rewards.wsp.make.spikes import DOWN, longest_value, parameter, spike
from weightgym.rewards.wsp.make.values import Above, Schedule, trained
from weightgym.rewards.wsp.make.worlds import Payload
from weightgym.rewards.wsp.symptoms import Symptom


def steering(place: Workplace, payload: Payload, layer: int) -> Candidate:
    """A defect of this payload at this layer.

    Raises:
        Rejected: it does not fit the tier's sizes.
    """
    model, world, rng, recipe = place.engine.model, place.world, place.draw, place.recipe
    theme = rng.choice(world.themes()) if payload == "topic" else None
    about = theme.key if theme else ""
    count = place.calibration.prompts
    taught, first, second = world.asked(rng, [rng.randint(*recipe.prompts), count, count], about)
    lessons = [payload_lesson(model, payload, one, one.question, theme, rng) for one in taught]

    moments = place.moments[parameter(layer)]
    key = moments.mean / (moments.mean @ moments.mean)
    schedule = Schedule(
        steps=rng.randint(*(recipe.topic_steps if theme else recipe.steps)),
        step=rng.uniform(*recipe.step),
        longest=longest_value(place, layer, key),
    )
    value = trained(Above(model, layer, key, lessons), schedule)
    edit = spike(place, layer, value, key)
    general, near = split_texts(place.profile, place.calibration.kl_texts)
    prompts, others = hidden_sets(place, payload, first, second, theme=theme)
    return Candidate(
        planted=(edit,),
        layer=layer,
        parameter=DOWN,
        direction=edit.left,
        category="topic" if theme else payload,
        trigger=None,
        symptom=Symptom(kind=payload, world=world.name, words=theme.words if theme else ()),
        prompts=prompts,
        second=others,
        quiet={},
        general=tuple(world.general(rng, general, ())),
        near=tuple(world.near(rng, near, payload, about)),
        local=False,
    )
