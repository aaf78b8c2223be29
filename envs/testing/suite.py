"""The list of checks, and the two ways to run them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weightgym.envs.testing import (
    checks_answers,
    checks_config,
    checks_episodes,
    checks_gymnasium,
    checks_info,
    checks_scorer,
    checks_tasks,
    checks_vector,
)
from weightgym.envs.testing.expect import ContractError
from weightgym.envs.testing.harness import Harness
from weightgym.envs.testing.subject import EnvSubject

Check = Callable[[Harness], None]

CHECKS: tuple[Check, ...] = (
    checks_tasks.task_rows_are_sound,
    checks_tasks.keys_are_unique,
    checks_tasks.splits_are_disjoint,
    checks_answers.gold_reaches_its_reward,
    checks_answers.doing_nothing_gets_the_floor,
    checks_answers.garbage_gets_the_floor,
    checks_answers.unicode_gets_the_floor,
    checks_answers.oversize_gets_the_floor,
    checks_answers.messages_are_answers,
    checks_answers.scores_survive_json,
    checks_episodes.same_seed_same_tasks,
    checks_episodes.different_seeds_differ,
    checks_episodes.unseeded_reset_moves_on,
    checks_episodes.task_option_picks_the_task,
    checks_episodes.bad_options_are_refused,
    checks_episodes.used_instance_is_as_fresh,
    checks_episodes.twins_agree,
    checks_episodes.step_needs_an_episode,
    checks_info.info_holds_the_task,
    checks_info.score_comes_at_the_end,
    checks_info.observations_are_in_their_space,
    checks_config.flags_are_listed,
    checks_config.flags_are_alive,
    checks_scorer.scorer_agrees_with_env,
    checks_scorer.scoring_repeats,
    checks_scorer.scores_are_explained,
    checks_scorer.faults_are_never_numbers,
    checks_gymnasium.passes_gymnasium_checker,
    checks_gymnasium.gymnasium_make_is_make,
    checks_gymnasium.spec_survives_pickling,
    checks_vector.sync_vector_is_single,
    checks_vector.async_vector_is_single,
)


def contract_test(subject: Callable[[], EnvSubject]) -> Callable[..., None]:
    """A pytest function with one case a check. Bind it to a name that starts with ``test``.

    ``subject`` is called once, when the first case runs.
    """
    import pytest

    harness = functools.cache(lambda: Harness(subject()))

    @pytest.mark.parametrize("check", CHECKS, ids=[check.__name__ for check in CHECKS])
    def test_contract(check: Check) -> None:
        check(harness())

    return test_contract


def failed_checks(subject: Callable[[], EnvSubject]) -> dict[str, Exception]:
    """Run every check; the name of each failed one, and what it raised."""
    harness = Harness(subject())
    failed: dict[str, Exception] = {}
    for check in CHECKS:
        try:
            check(harness)
        except Exception as error:
            failed[check.__name__] = error
    return failed


def check_environment(subject: Callable[[], EnvSubject]) -> None:
    """Run every check, without pytest.

    Raises:
        ContractError: some checks failed; the message lists all of them, with what was wanted and seen.
    """
    failed = failed_checks(subject)
    if failed:
        lines = [f"{len(failed)} of {len(CHECKS)} contract checks failed"]
        lines += [f"{name}: {_told(error)}" for name, error in failed.items()]
        raise ContractError("\n".join(lines))


def _told(error: Exception) -> Any:
    return error if isinstance(error, ContractError) else f"raised {type(error).__name__}: {error}"
