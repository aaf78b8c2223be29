"""The trainer's other ways: asynchrony, staleness, dynamic sampling, KL, several updates, mixtures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from digits_runs import config, digits_of, trained, weights, without_seconds

from weightgym.rewards.contracts import Score
from weightgym.rollouts.store import read as read_rollouts
from weightgym.rollouts.trajectory import Trajectory
from weightgym.trainers.collect import has_spread
from weightgym.trainers.config import Optimiser
from weightgym.trainers.grpo import Trainer, UnhealthyRun
from weightgym.trainers.metrics import read as read_metrics
from weightgym.trainers.optimiser import learning_rate

pytestmark = pytest.mark.usefixtures("digits")


def versions(run: Path) -> list[int]:
    return [one.policy_version for one in read_rollouts(run / "rollouts.jsonl")]


def test_asynchronous_rollouts_are_one_version_old(model: Path, tmp_path: Path) -> None:
    rows = trained(config(model, tmp_path / "run", mode="async", steps=5))
    assert [row["rollout/staleness"] for row in rows] == [0, 1, 1, 1, 1]
    assert all(row["rollout/stale"] == 0 for row in rows)
    assert versions(tmp_path / "run") == [version for version in (0, 0, 1, 2, 3) for _ in range(8)]
    assert rows[0]["sampling/self_check"] < 1e-4
    again = trained(config(model, tmp_path / "again", mode="async", steps=5))
    assert without_seconds(again) == without_seconds(rows)  # it depends on no timing
    assert weights(tmp_path / "again") == weights(tmp_path / "run")


def test_an_asynchronous_run_is_evaluated_as_it_is(model: Path, tmp_path: Path) -> None:
    """Evaluations don't meet the batch that is being made, and are of the weights of their step."""
    evaluation = {"tasks": ["three"], "samples": 16, "every": 1}
    with Trainer(config(model, tmp_path / "run", mode="async", steps=4, evaluation=evaluation)) as run:
        at_work: list[str] = []
        backend: Any = run.sampler.backend
        sample = backend.generate

        def alone(*args: Any) -> Any:
            assert not at_work
            at_work.append("")
            try:
                return sample(*args)
            finally:
                at_work.pop()

        backend.generate = alone
        found = [(row["step"], row["eval/reward"]) for row in run.train() if "eval/reward" in row]
    assert [step for step, _ in found] == [0, 1, 2, 3, 4]
    assert len({reward for _, reward in found}) > 2
    stored = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert all(one.task != "three" for one in stored)


@pytest.mark.slow
def test_the_reward_rises_asynchronously(model: Path, tmp_path: Path) -> None:
    rollout = {"groups": 8, "group_size": 8, "max_tokens": 12}
    rows = trained(config(model, tmp_path / "run", mode="async", steps=40, rollout=rollout))
    rewards = [row["reward/mean"] for row in rows]
    assert sum(rewards[:3]) / 3 < 0.15
    assert sum(rewards[-3:]) / 3 > 0.5


def test_an_asynchronous_run_resumes_without_lost_or_repeated_steps(model: Path, tmp_path: Path) -> None:
    wanted = config(model, tmp_path / "run", mode="async", steps=6)
    with Trainer(wanted) as killed:
        for row in killed.train():
            if row["step"] == 3:  # step 4's rollouts are under way; the checkpoint is of step 2
                break
    rows = trained(wanted, resume=True)
    assert [row["step"] for row in rows] == [3, 4, 5, 6]
    assert [row["step"] for row in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]
    stored = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert len(stored) == len({one.id for one in stored}) == 6 * 8


def test_stale_rollouts_are_dropped_and_counted(model: Path, tmp_path: Path) -> None:
    """A sampler that stops taking weights: with limit 1, what is two versions old is not trained on."""
    with Trainer(config(model, tmp_path / "run", limits={"stale": 1.0}, steps=5, loss={"correction": "none"})) as run:
        run._check_gap = lambda gap: None  # type: ignore[method-assign]  # which would be the first to tell
        steps = run.train()
        next(steps)
        run.sampler.backend.sync = lambda weights, version: None  # type: ignore[method-assign]
        frozen = []
        for row in steps:
            frozen.append((row["rollout/staleness"], row["rollout/stale"], "loss/total" in row))
        assert frozen == [(0.0, 0.0, True), (1.0, 0.0, True), (2.0, 1.0, False), (3.0, 1.0, False)]


def test_an_asynchronous_run_whose_weights_are_lost_is_told_at_that_sync(model: Path, tmp_path: Path) -> None:
    with Trainer(config(model, tmp_path / "run", mode="async", steps=8)) as run:
        steps = run.train()
        for _ in range(3):
            next(steps)
        backend: Any = run.sampler.backend
        backend.sync = lambda weights, version: setattr(backend, "version", version)
        with pytest.raises(UnhealthyRun, match="self-check after step 3: trainer and sampler differ"):
            list(steps)


def test_the_second_self_check_waits_for_an_update(model: Path, tmp_path: Path) -> None:
    """Without spread there is nothing to train on, and so nothing that could have been lost."""
    short = {"groups": 2, "group_size": 2, "max_tokens": 3}
    wanted = config(model, tmp_path / "run", steps=12, rollout=short, loss={"positive_only": True}, seed=1)
    with Trainer(wanted) as run:
        for row in run.train():
            assert len(run._checks) == 1 + bool(run._updated)
            assert run._updated or "loss/total" not in row
        assert run._updated


def test_rollouts_that_failed_are_not_stale(model: Path, tmp_path: Path) -> None:
    made = Trajectory(id="a", env="e", task="t", task_sha256="", group="g", seed=0, policy="p", steps=(),
                      finish_reason="stop", score=Score(status="error", reward=None, reason="x: y"))  # fmt: skip
    with Trainer(config(model, tmp_path / "run")) as run:
        run.step = 9
        assert not run._is_stale(made)


def test_too_many_stale_rollouts_stop_the_run(model: Path, tmp_path: Path) -> None:
    with Trainer(config(model, tmp_path / "run", rollout={"max_staleness": 0})) as run:
        steps = run.train()
        next(steps)
        run.sampler.backend.sync = lambda weights, version: None  # type: ignore[method-assign]
        next(steps)
        with pytest.raises(UnhealthyRun, match=r"step 3: rollout/stale is 1\.000, limits\.stale is 0\.5"):
            next(steps)


def test_groups_without_spread_are_replaced_within_a_bound(model: Path, tmp_path: Path) -> None:
    short = {"groups": 6, "group_size": 3, "max_tokens": 3}  # most answers have no digit
    plain = trained(config(model, tmp_path / "plain", steps=1, rollout=short))[0]
    assert 0 < plain["group/zero_spread"] < 1
    assert (plain["group/trained"], plain["group/refilled"]) == (6, 0)
    row = trained(config(model, tmp_path / "refill", steps=1, rollout=short | {"refill": 20}))[0]
    assert row["group/trained"] == 6
    assert row["group/refilled"] >= round(6 * row["group/zero_spread"])
    assert row["reward/mean"] == plain["reward/mean"]  # of the first round, not of a selection
    once = trained(config(model, tmp_path / "once", steps=1, rollout=short | {"refill": 1}))[0]
    assert once["group/refilled"] == round(6 * row["group/zero_spread"])
    groups: dict[str, list[Any]] = {}
    for one in read_rollouts(tmp_path / "refill" / "rollouts.jsonl"):
        groups.setdefault(one.group, []).append(one)
    assert len(groups) == 6 + row["group/refilled"]
    assert sum(map(has_spread, groups.values())) >= 6


def test_a_resumed_run_with_refills_is_an_unbroken_one(model: Path, tmp_path: Path) -> None:
    short = {"rollout": {"groups": 4, "group_size": 3, "max_tokens": 3, "refill": 3}}
    trained(config(model, tmp_path / "whole", **short))
    trained(config(model, tmp_path / "broken", **short, steps=2))
    trained(config(model, tmp_path / "broken", **short), resume=True)
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_kl_holds_the_policy_back(model: Path, tmp_path: Path) -> None:
    runs = {kl: trained(config(model, tmp_path / str(kl), loss={"kl": kl}, steps=8)) for kl in (1e-9, 10.0)}
    assert runs[1e-9][0]["loss/kl"] == pytest.approx(0, abs=1e-6)  # the reference is where training began
    assert runs[10.0][-1]["loss/kl"] < runs[1e-9][-1]["loss/kl"] / 2
    assert "loss/kl" not in trained(config(model, tmp_path / "none", steps=1))[0]


def test_kl_is_to_the_first_model_after_a_resume(model: Path, tmp_path: Path) -> None:
    whole = trained(config(model, tmp_path / "whole", loss={"kl": 0.1}))
    trained(config(model, tmp_path / "broken", loss={"kl": 0.1}, steps=2))
    rest = trained(config(model, tmp_path / "broken", loss={"kl": 0.1}), resume=True)
    assert without_seconds(rest) == without_seconds(whole[2:])
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_several_updates_move_further_and_clip(model: Path, tmp_path: Path) -> None:
    rollout = {"groups": 4, "group_size": 8}
    one = trained(config(model, tmp_path / "one", steps=1, rollout=rollout))[0]
    many = trained(config(model, tmp_path / "many", steps=1, rollout=rollout, optimiser={"updates": 4}))[0]
    assert one["loss/ratio"] == pytest.approx(1, abs=1e-6)
    assert many["sampling/logp_diff_mean"] < 1e-4  # against the policy that the batch began with
    assert weights(tmp_path / "one") != weights(tmp_path / "many")


def test_truncated_completions_can_be_left_out(model: Path, tmp_path: Path) -> None:
    long = {"rollout": {"max_tokens": 80, "groups": 4}, "steps": 1}
    kept = trained(config(model, tmp_path / "kept", **long))[0]
    masked = trained(config(model, tmp_path / "masked", **long, loss={"mask_truncated": True}))[0]
    assert 0 < kept["rollout/truncated"] < 1
    assert masked["loss/total"] != kept["loss/total"]


def test_environments_are_mixed(model: Path, tmp_path: Path) -> None:
    both = [{"env": "digits", "tasks": ["one"], "weight": 3}, {"env": "weight-program", "profile": "wpb-v1-e4"}]
    trained(config(model, tmp_path / "run", environments=both, rollout={"groups": 4}, steps=2))
    made = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert sum(one.env == "digits" for one in made) == 2 * 3 * 4
    assert {one.score.profile for one in made if one.env == "weight-program"} == {"wpb-v1-e4"}


def test_the_rate_warms_up_and_decays() -> None:
    def rates(**changes: Any) -> list[float]:
        made = Optimiser(learning_rate=1.0, **changes)
        return [round(learning_rate(made, step, 10), 6) for step in range(10)]

    assert rates() == [1.0] * 10
    assert rates(warmup=4) == [0.25, 0.5, 0.75] + [1.0] * 7
    assert rates(decay="linear") == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert rates(warmup=2, decay="cosine")[:4] == [0.5, 1.0, 1.0, 0.96194]


def test_a_run_of_two_environments_evaluates_the_named_one(model: Path, tmp_path: Path) -> None:
    evaluation = {"env": "weight-program", "tasks": ["original/breakout"], "profile": "wpb-v1-e4", "samples": 2}
    rows = trained(config(model, tmp_path / "run", steps=1, environments=digits_of("one"), evaluation=evaluation))
    assert [row["eval/reward"] for row in rows if "eval/reward" in row] == [0.0, 0.0]
