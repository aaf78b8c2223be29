"""The contract suite: correct environments pass every check, and every check notices the mistakes it is for."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
import toy_env
import toy_zoo

from weightgym.envs import registry
from weightgym.envs.base import SingleTurnEnv
from weightgym.envs.testing import CHECKS, ContractError, EnvSubject, check_environment, contract_test, failed_checks
from weightgym.rewards.contracts import Split

NAMES = [check.__name__ for check in CHECKS]


@pytest.fixture(scope="module", autouse=True)
def _registered_toys() -> Iterator[None]:
    # Workers of vector environments must inherit what is registered here.
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    with registry.override(toy_env.TOY), registry.override(toy_env.GUESS):
        yield
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture(autouse=True)
def _gymnasium_id(request: pytest.FixtureRequest) -> Iterator[None]:
    case = request.node.callspec.params.get("case") if hasattr(request.node, "callspec") else None
    kwargs: dict[str, Any] = dict(case.gym_kwargs or {}) if case else {}
    gymnasium.register(toy_env.TOY.gym_id, kwargs.pop("entry_point", toy_env.TOY.env), kwargs=kwargs)
    yield
    del gymnasium.registry[toy_env.TOY.gym_id]


test_toy = contract_test(lambda: toy_env.toy_subject(gym_id=toy_env.TOY.gym_id))
test_toy_without_gym_id = contract_test(toy_env.toy_subject)
test_several_turns = contract_test(toy_env.guess_subject)
test_environment_that_shares_no_code = contract_test(toy_env.plain_subject)


@pytest.mark.parametrize("case", toy_zoo.ZOO, ids=lambda case: case.name.replace(" ", "-"))
def test_mistake_fails_its_check_and_no_other(case: toy_zoo.Broken) -> None:
    with registry.override(case.spec):
        failed = failed_checks(case.subject)
    assert sorted(failed) == sorted({case.fails, *case.also})
    error = failed[case.fails]
    assert isinstance(error, ContractError), error  # told, not stumbled over
    assert "wanted:" in str(error)
    assert "seen:" in str(error)


def test_every_check_is_proven_to_fail() -> None:
    assert {case.fails for case in toy_zoo.ZOO} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


def test_every_check_says_what_it_protects_from() -> None:
    for check in CHECKS:
        assert len(check.__doc__ or "") > 80, check.__name__


def test_check_environment_passes_in_silence() -> None:
    check_environment(toy_env.toy_subject)


def test_check_environment_lists_every_failure() -> None:
    with pytest.raises(ContractError) as caught:
        check_environment(lambda: toy_env.toy_subject(floor=-1.0, flags={"hint": (False, True)}))
    text = str(caught.value)
    assert "flags_are_listed: flags of the subject\n  wanted: values for profile" in text
    assert "doing_nothing_gets_the_floor: the floor\n  wanted: 0.0, as registered\n  seen:   -1.0" in text
    assert f"of {len(CHECKS)} contract checks failed" in text


def test_subject_is_made_once_and_not_at_import() -> None:
    made: list[int] = []

    def subject() -> EnvSubject:
        made.append(1)
        return toy_env.toy_subject()

    case = contract_test(subject)
    assert made == []
    case(CHECKS[0])
    case(CHECKS[1])
    assert made == [1]


def test_broken_factory_fails_every_check() -> None:
    class NeverMade(SingleTurnEnv):
        def __init__(self, *, split: Split = "train") -> None:
            raise ZeroDivisionError("no such luck")

    failed = failed_checks(lambda: toy_env.toy_subject(make=NeverMade, flags={}))
    assert set(failed) == set(NAMES) - {"flags_are_listed"}


@pytest.mark.parametrize("nothing", [{"quick_ids": ()}, {"slow_ids": ()}, {"slow_ids": ("smal",)}, {"noops": ()}])
def test_nothing_to_look_at_is_no_pass(nothing: dict[str, Any]) -> None:
    failed = failed_checks(lambda: toy_env.toy_subject(**nothing))
    assert {"doing_nothing_gets_the_floor", "garbage_gets_the_floor"} & set(failed)
    assert all(f"{next(iter(nothing))} of the subject" in str(error) for error in failed.values())


@pytest.mark.parametrize(("left_out", "check"), [
    ("tasks", "task_rows_are_sound"),
    ("scorer", "scorer_agrees_with_env"),
    ("with_scorer", "faults_are_never_numbers"),
])  # fmt: skip
def test_what_a_stranger_leaves_out_is_named(left_out: str, check: str) -> None:
    facts = vars(toy_env.plain_subject()) | {left_out: None}
    failed = failed_checks(lambda: EnvSubject(**facts))
    assert f"EnvSubject({left_out}=…)" in str(failed[check])


def test_gold_episodes_are_scored_a_few_times_only() -> None:
    calls: list[str] = []

    def counting(task: Any, completion: Any, *, profile: str = "toy-v1") -> Any:
        result = toy_env.score(task, completion, profile=profile)
        calls.extend([task.id] * (result.status == "ok"))
        return result

    toy_env.counting = counting  # type: ignore[attr-defined]
    with registry.override(toy_env.entry("toy", "ToyEnv", scorer="toy_env:counting")):
        assert failed_checks(toy_env.toy_subject) == {}
    assert len(calls) <= 24
    assert {calls.count(id) for id in ("middle", "large", "even")} == {0}  # one task a split is enough


def test_quick_and_slow_ids_are_respected() -> None:
    seen: set[str] = set()

    class Watched(toy_env.ToyEnv):
        def step(self, action: Any) -> Any:
            seen.update({self.task.id} if self.task else ())
            return super().step(action)

    subject = toy_env.toy_subject(make=Watched, quick_ids=("middle",), slow_ids=("large",))
    for name in ("gold_reaches_its_reward", "doing_nothing_gets_the_floor", "garbage_gets_the_floor"):
        contract_test(lambda: subject)(CHECKS[NAMES.index(name)])
    assert seen == {"middle", "large"}


def test_package_is_cheap_and_the_suite_needs_no_pytest() -> None:
    code = (
        "import sys, weightgym.envs, weightgym.envs.registry\n"
        "assert not {'numpy', 'gymnasium'} & set(sys.modules), 'weightgym.envs is not cheap'\n"
        "import weightgym.envs.testing\n"
        "assert 'pytest' not in sys.modules, 'the suite imports pytest'\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)
