"""Profiles of Golf: what is run of a solution's config, and their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.golf.profile import PROFILES, Schedule, profile

DEFAULTS = {
    "train_steps": 80,
    "train_batch_tokens": 32_768,
    "seq_len": 512,
    "warmup_steps": 5,
    "warmdown_steps": 20,
}


def test_the_cpu_profile_runs_less_of_the_same() -> None:
    cpu = profile("golf-cpu-v1")
    assert cpu.schedule(**DEFAULTS) == Schedule(50, 2048, 3, 12)
    assert (cpu.val_bytes, cpu.train_seconds, cpu.clock, cpu.gpus) == (16_384, 40, "cpu", 0)
    longest = DEFAULTS | {"train_steps": 900, "train_batch_tokens": 1_572_864, "seq_len": 2048}
    assert cpu.schedule(**longest) == Schedule(562, 98_304, 3, 12)
    # floored to whole rows: 32,000 / 16 = 2,000 tokens are 15 rows of 128 and a piece
    assert cpu.schedule(**DEFAULTS | {"train_batch_tokens": 32_000, "seq_len": 128}).batch_tokens == 15 * 128


@pytest.mark.parametrize("name", ["golf-full-v1", "golf-modal-h100x8"])
def test_the_large_profiles_run_the_config_as_it_is(name: str) -> None:
    full = profile(name)
    assert full.schedule(**DEFAULTS) == Schedule(80, 32_768, 5, 20)
    assert (full.train_bytes, full.val_bytes) == (24_000_000, 500_000)
    assert (full.train_seconds, full.post_seconds, full.clock) == (60, 60, "wall")


@given(st.data())
def test_whatever_is_valid_stays_valid(data: st.DataObject) -> None:
    steps = data.draw(st.integers(50, 900))
    warmup = data.draw(st.integers(0, min(400, steps - 1)))
    warmdown = data.draw(st.integers(0, min(800, steps - 1 - warmup)))
    seq_len = data.draw(st.integers(128, 2048))
    rows = data.draw(st.integers(-(-32_768 // seq_len), 1_572_864 // seq_len))
    for known in PROFILES.values():
        run = known.schedule(
            train_steps=steps,
            train_batch_tokens=rows * seq_len,
            seq_len=seq_len,
            warmup_steps=warmup,
            warmdown_steps=warmdown,
        )
        assert 1 <= run.train_steps <= steps
        assert 0 <= run.warmup_steps + run.warmdown_steps < run.train_steps
        assert run.batch_tokens % seq_len == 0
        assert run.batch_tokens >= seq_len


def test_every_cap_is_the_rules_cap() -> None:
    assert {known.artifact_cap for known in PROFILES.values()} == {4_000_000}
    assert len({known.public_secret for known in PROFILES.values()}) == len(PROFILES)


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(TaskError, match=r"unknown profile 'golf-cpu-v2': did you mean 'golf-cpu-v1'\?"):
        profile("golf-cpu-v2")
    with pytest.raises(TaskError, match="known are golf-cpu-v1, golf-smoke-v1, golf-full-v1, golf-modal-h100x8"):
        profile("zzz")
