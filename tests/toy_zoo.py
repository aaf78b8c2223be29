"""Broken relatives of ``toy_env.ToyEnv``, each with one mistake that real environments make, and the check that must
notice. ``also`` lists the checks that the same mistake can't help failing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import toy_env
import toy_zoo_envs as envs
import toy_zoo_scorers as scorers
import toy_zoo_sources as sources
from toy_env import ToyEnv, toy_subject

from weightgym.envs.registry import EnvSpec
from weightgym.envs.testing import EnvSubject


@dataclass(frozen=True)
class Broken:
    name: str
    fails: str
    also: tuple[str, ...]
    subject: Callable[[], EnvSubject]
    spec: EnvSpec  # what stands in the registry as "toy" meanwhile
    gym_kwargs: dict[str, Any] | None  # what is registered in Gymnasium under toy_env.TOY.gym_id, if anything


ZOO: list[Broken] = []
OUT_OF_SPACE = ("passes_gymnasium_checker", "gymnasium_make_is_make")  # Gymnasium's checkers look at spaces, too


def broken(name: str, fails: str, *also: str, scorer: Any = None, source: str = "", gym_kwargs: Any = None,
           entry: Mapping[str, Any] = MappingProxyType({}), **subject: Any) -> None:  # fmt: skip
    changes = dict(entry)
    if source:
        changes["source"] = f"{sources.__name__}:{source}"
    if scorer is not None:
        changes["scorer"] = f"{scorers.__name__}:{scorer.__name__}"
    spec = toy_env.entry("toy", "ToyEnv", **changes)
    ZOO.append(Broken(name, fails, also, lambda: toy_subject(**subject), spec, gym_kwargs))


def flags(**more: Any) -> dict[str, Any]:
    return {"profile": ("toy-v1", "toy-strict-v1"), **more}


# Task rows and splits
broken("rows of another env", "task_rows_are_sound", source="OTHER_ENV")
broken("prompt differs each time", "task_rows_are_sound", "same_seed_same_tasks", "passes_gymnasium_checker",
       source="FICKLE")  # fmt: skip
broken("an empty split", "task_rows_are_sound", "same_seed_same_tasks", "flags_are_alive", source="EMPTY_TEST")
broken("unknown id falls back in the source", "task_rows_are_sound", "bad_options_are_refused", source="LENIENT")
broken("an id twice", "keys_are_unique", source="TWICE")
broken("an id in both splits", "splits_are_disjoint", source="SHARED_ID", quick_ids=("odd",), slow_ids=("odd",))
broken("a test task in train under another id", "splits_are_disjoint", source="SHARED_CONTENT")
broken("the same sums the other way round", "splits_are_disjoint", source="MIRRORED",
       content=lambda task: sorted([task.data["a"], task.data["b"]]))  # fmt: skip

# Answers
broken("nobody gets the whole reward", "gold_reaches_its_reward", scorer=scorers.stingy)
broken("gold no better than the floor", "gold_reaches_its_reward", gold=lambda id: (toy_env.gold_answer(id)[0], 0.0))
broken("silence is paid", "doing_nothing_gets_the_floor", scorer=scorers.pays_silence)
broken("registered floor is another", "doing_nothing_gets_the_floor", entry={"floor": -1.0})
broken("keyword is paid", "garbage_gets_the_floor", scorer=scorers.pays_keyword)
broken("recursive parser", "garbage_gets_the_floor", scorer=scorers.recursive)
broken("own mistake is paid", "garbage_gets_the_floor", invalid=("answer: 1",))
broken("bad answers are ok with 0", "garbage_gets_the_floor", scorer=scorers.zero_is_ok)
broken("reason without a text", "unicode_gets_the_floor", scorer=scorers.bare_reason)
broken("encodes as UTF-8", "unicode_gets_the_floor", scorer=scorers.encodes)
broken("reason can't be stored", "unicode_gets_the_floor", scorer=scorers.echoes)
broken("gold with a surrogate crashes", "unicode_gets_the_floor", scorer=scorers.encodes_late)
broken("oversize crashes", "oversize_gets_the_floor", scorer=scorers.oversize_crashes)
broken("oversize is cut and paid", "oversize_gets_the_floor", scorer=scorers.cuts)
broken("own oversize is paid", "oversize_gets_the_floor", oversize="answer: 3")
broken("None content crashes", "messages_are_answers", scorer=scorers.strips_content)
broken("the user's words are paid", "messages_are_answers", scorer=scorers.any_role)
broken("messages score by str()", "messages_are_answers", scorer=scorers.str_of_message)
broken("NaN in the score's info", "scores_survive_json", scorer=scorers.nan_info)

# Seeds and episodes
broken("seed 0 ignored", "same_seed_same_tasks", make=envs.SeedZeroIgnored)
broken("seed beside a task ignored", "same_seed_same_tasks", make=envs.SeedBesideTaskIgnored)
broken("every seed is 0", "different_seeds_differ", make=envs.OneSeed)
broken("seed + index", "different_seeds_differ", make=envs.SeedPlusIndex)
broken("unseeded resets repeat", "unseeded_reset_moves_on", make=envs.Stuck)
broken("default seed", "unseeded_reset_moves_on", make=envs.DefaultSeed)
broken("task option of the last task ignored", "task_option_picks_the_task", make=envs.OptionIgnored)
broken("unknown task is the first", "bad_options_are_refused", make=envs.UnknownTaskIsFirst)
broken("unknown task is a KeyError", "bad_options_are_refused", make=envs.UnknownTaskIsKeyError)
broken("unknown option ignored", "bad_options_are_refused", make=envs.UnknownOptionIgnored)
broken("refused option spoils the instance", "bad_options_are_refused", make=envs.SpoiltByRefusal)
broken("last answer lives on", "used_instance_is_as_fresh", make=envs.RemembersAnswer)
broken("infos share a list", "used_instance_is_as_fresh", make=envs.SharedTools)
broken("instances share a count", "twins_agree", "sync_vector_is_single", make=envs.CountsOpenEpisodes)
broken("step before reset is scored", "step_needs_an_episode", make=envs.EagerStep)
broken("step after the end is paid again", "step_needs_an_episode", make=envs.PaysTwice)

# Infos and observations
broken("hash of another row", "info_holds_the_task", make=envs.WrongHash)
broken("messages are not JSON", "info_holds_the_task", make=envs.TupleMessages)
broken("tools without a schema", "info_holds_the_task", make=envs.BareTools)
broken("reward differs from the score", "score_comes_at_the_end", make=envs.Bonus)
broken("a score at the start", "score_comes_at_the_end", make=envs.EarlyScore)
broken("prompt longer than its space", "observations_are_in_their_space", *OUT_OF_SPACE, make=envs.SmallSpace)
broken("verdict in bytes", "observations_are_in_their_space", *OUT_OF_SPACE, make=envs.BytesVerdict)

# Flags
broken("a flag nobody lists", "flags_are_listed", make=ToyEnv, flags=flags())
broken("a flag that make doesn't take", "flags_are_listed", flags=flags(hint=(False, True), tip=(1, 2)))
broken("a flag with one value", "flags_are_listed", flags=flags(hint=(False,)))
broken("flags hidden behind **config", "flags_are_listed", make=lambda **config: ToyEnv(**config), flags={},
       splits=("train",), gym_kwargs={}, gym_id=toy_env.TOY.gym_id)  # fmt: skip
broken("dead flag", "flags_are_alive", make=envs.DeadHint)
broken("profile is only a label", "flags_are_alive", scorer=scorers.one_tolerance)
broken("split ignored", "flags_are_alive", make=envs.SplitIgnored, splits=("test", "train"))

# The scorer
broken("env adds to the score", "scorer_agrees_with_env", make=envs.OwnMetrics)
broken("scorer needs the prompt", "scorer_agrees_with_env", scorer=scorers.reads_prompt)
broken("limit by signal", "scoring_repeats", scorer=scorers.alarm)
broken("explains only good answers", "scores_are_explained", entry={"explainer": "toy_zoo_scorers:explains_praise"})
broken("fault becomes 0", "faults_are_never_numbers", make=envs.FaultIsZero)
broken("fault is another error", "faults_are_never_numbers", make=envs.FaultIsTypeError)
broken("scorer can't be replaced", "faults_are_never_numbers", make=envs.OwnScorer)

# Gymnasium
broken("np_random never seeded", "passes_gymnasium_checker", make=envs.UnseededGenerator)
broken("another default in Gymnasium", "gymnasium_make_is_make", gym_kwargs={"hint": True}, gym_id=toy_env.TOY.gym_id)
broken("spec can't be pickled", "spec_survives_pickling", gym_kwargs={"entry_point": lambda **config: ToyEnv(**config)},
       gym_id=toy_env.TOY.gym_id)  # fmt: skip
broken("spaces without equality", "sync_vector_is_single", "async_vector_is_single", make=envs.IdentitySpace)
broken("instances share the task", "sync_vector_is_single", make=envs.SharedTask)
broken("works in the first process only", "async_vector_is_single", make=envs.HomeProcess)
