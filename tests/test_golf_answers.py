"""Golf's reference answers: legal, deterministic, within the cap, and in the order that they claim."""

from __future__ import annotations

import functools
import sys
from importlib.resources import files
from itertools import pairwise

import pytest
from golf_ranking import ranks, spearman

from weightgym.envs.golf.references import LADDER, NAMES, PACKED, about, reference_answer, solution
from weightgym.envs.golf.tasks import GolfTasks
from weightgym.rewards.contracts import TaskError
from weightgym.rewards.golf.answer import find_solution
from weightgym.rewards.golf.check import check
from weightgym.rewards.golf.data.corpus import language_corpus
from weightgym.rewards.golf.evaluators import shared
from weightgym.rewards.golf.gate import gate
from weightgym.rewards.golf.method import method_profile
from weightgym.rewards.golf.profile import profile
from weightgym.rewards.golf.report import Result

HELD_OUT = "lang/24"
METHODS = {
    "timid": ("config_only",),
    "baseline": ("baseline",),
    "tuned": ("config_only",),
    "short_rows": ("architecture_shape",),
    "shared_block": ("new_computation",),
    "hashed_ngrams": ("new_computation",),
    "convolutions": ("new_computation",),
    "counts": ("new_computation",),
    "counts_and_network": ("new_computation",),
    "counts_and_copies": ("new_computation", "compression_serialization"),
    "shared_codebook": ("new_computation", "compression_serialization"),
    "hashed_int4": ("new_computation", "compression_serialization"),
}
SMOKE, CPU = "golf-smoke-v1", "golf-cpu-v1"


@functools.cache
def evaluated(name: str, rules: str = SMOKE, task: str = HELD_OUT) -> Result:
    result = shared(rules).evaluate(solution(name).encode(), language_corpus(profile(rules), task))
    assert result.status == "ok", f"{name}: {result.reason} {result.message}"
    return result


def bits(name: str, task: str = HELD_OUT) -> float:
    score = evaluated(name, CPU, task).val_bpb
    assert score is not None
    return score


def test_the_list_is_whole() -> None:
    stored = {one.name for one in (files("weightgym.envs.golf") / "answers").iterdir()} - {"__pycache__"}
    assert stored == {f"{name}.py" for name in NAMES}
    assert len(LADDER) >= 8
    assert tuple(METHODS) == NAMES
    assert set(PACKED.values()) <= set(LADDER)
    with pytest.raises(TaskError, match="no reference answer 'best'"):
        solution("best")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_legal_and_what_it_says(name: str) -> None:
    raw = solution(name).encode()
    found = gate(raw)
    assert (found.verdict, found.findings) == ("legal", ())
    assert method_profile(check(raw)) == METHODS[name]
    assert find_solution(reference_answer(name)) == raw
    assert about(name).endswith(".")


def test_together_they_are_of_every_kind() -> None:
    assert len({method for methods in METHODS.values() for method in methods}) == 5


def test_no_prompt_holds_an_answer() -> None:
    prompt = GolfTasks().task(HELD_OUT).prompt[0].content
    for name in NAMES:
        body = [line for line in solution(name).splitlines() if len(line) > 60]
        assert not [line for line in body if line.strip() in prompt], name
        assert solution(name).split('"""')[2].strip() not in prompt


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_repeats_itself(name: str) -> None:
    first = evaluated(name)
    again = shared(SMOKE).evaluate(solution(name).encode(), language_corpus(profile(SMOKE), HELD_OUT))
    assert (again.val_bpb, again.artifact_bytes) == (first.val_bpb, first.artifact_bytes)
    assert first.verdict == "legal"
    assert first.artifact_bytes is not None
    assert first.artifact_bytes < 4_000_000
    assert first.apart is not None
    assert first.apart < 1e-4


def in_order(names: tuple[str, ...], task: str, step: float) -> None:
    scores = {name: bits(name, task) for name in names}
    for weaker, stronger in pairwise(names):
        assert scores[stronger] < scores[weaker] - step, scores
    for name in names:
        assert evaluated(name, CPU, task).cpu_s["train"] < 40


@pytest.mark.slow
def test_a_part_of_the_ladder_is_in_order() -> None:
    """Those that are quick."""
    in_order(("timid", "short_rows", "convolutions", "counts"), HELD_OUT, 0.05)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("task", [HELD_OUT, "lang/29"])
def test_the_ladder_is_in_order(task: str) -> None:
    in_order(LADDER, task, 0.05)
    assert bits(LADDER[-1], task) < bits("baseline", task) - 0.5


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(("packed", "model"), PACKED.items())
def test_packed_ones_are_smaller_and_as_good(packed: str, model: str) -> None:
    small, whole = evaluated(packed, CPU), evaluated(model, CPU)
    assert small.param_count == whole.param_count
    assert (small.artifact_bytes or sys.maxsize) < 0.6 * (whole.artifact_bytes or 0)
    assert bits(packed) < bits(model) + 0.05


def test_rank_correlation() -> None:
    assert ranks([3.0, 1.0, 3.0, 2.0]).tolist() == [3.5, 1, 3.5, 2]
    assert spearman([1, 2, 3, 4], [1.1, 1.2, 8, 9]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3, 4, 5], [2, 1, 3, 4, 5]) == pytest.approx(0.9)
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.948683, abs=1e-6)
    assert spearman([1, 1], [1, 2]) != spearman([1, 1], [1, 2])  # NaN: nothing to rank
