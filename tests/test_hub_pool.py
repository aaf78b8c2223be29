"""Scoring for event loops: processes that end, idle ones, answers that nobody waits for any more."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from pathlib import Path

import pytest
import toy_scorers

from weightgym.rewards.contracts import GraderError
from weightgym.rollouts.hub import pool as pools
from weightgym.rollouts.hub.pool import ScoringPool

pytestmark = pytest.mark.hub

TASK = toy_scorers.SOURCE.task("hard/one")


def make(workers: int = 1, *, scorer: str = toy_scorers.SCORER) -> ScoringPool:
    return ScoringPool(scorer, toy_scorers.PROFILE, workers, 60.0)


def leave_while_answers_hang() -> None:
    """A process's whole life: it scores, and ends while its workers spin."""

    async def play() -> None:
        pool = make(2)
        assert (await pool.score(TASK, "hello")).status == "ok"
        hung = [asyncio.ensure_future(pool.score(TASK, what)) for what in ("spin", "hang")]
        await asyncio.sleep(0.5)
        assert not any(one.done() for one in hung)

    asyncio.run(play())


def test_a_process_ends_though_answers_hang() -> None:
    """Python waits for worker processes at the end; an env server must not wait for them for ever."""
    process = multiprocessing.get_context("spawn").Process(target=leave_while_answers_hang)
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_idle_processes_are_stopped_and_new_ones_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_IDLE", 0.2)
    before = set(multiprocessing.active_children())
    pool = make()
    first = asyncio.run(pool.score(TASK, "hello"))
    deadline = time.monotonic() + 10
    while set(multiprocessing.active_children()) - before:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert asyncio.run(pool.score(TASK, "hello")).reward == first.reward


def test_what_nobody_waits_for_is_not_scored(tmp_path: Path) -> None:
    """One that waits for a process is dropped; a later one is scored as ever."""

    async def play() -> None:
        pool = make()
        busy = asyncio.ensure_future(pool.score(TASK, "sleep 1"))
        await asyncio.sleep(0.3)
        dropped = asyncio.ensure_future(pool.score(TASK, f"once {tmp_path / 'mark'} hello"))
        await asyncio.sleep(0.1)
        dropped.cancel()
        assert (await busy).status == "ok"
        assert (await pool.score(TASK, "hello")).status == "ok"

    asyncio.run(play())
    assert not (tmp_path / "mark").exists()


def test_waiting_has_a_bound() -> None:
    async def play() -> None:
        pool = make()
        busy = asyncio.ensure_future(pool.score(TASK, "sleep 2"))
        await asyncio.sleep(0.3)
        with pytest.raises(GraderError, match=r"scoring_timeout: toy hard/one has no score after 0\.5 s"):
            await pool.score(TASK, "hello", within=0.5)
        await busy

    asyncio.run(play())


def test_a_scorer_that_is_not_there_is_a_fault_each_time() -> None:
    pool = make(scorer="toy_scorers:nothing")
    for _ in range(2):
        with pytest.raises(GraderError, match="nothing"):
            asyncio.run(pool.score(TASK, "hello"))
