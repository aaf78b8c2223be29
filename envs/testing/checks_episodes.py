"""Seeds, options and episodes: the same things happen again, and nothing else lingers."""

from __future__ import annotations

import copy
from functools import partial
from itertools import combinations
from typing import Any

from weightgym.envs.testing.expect import expect_equal, expect_raises, fail, show
from weightgym.envs.testing.harness import Harness, TextEnv
from weightgym.rewards.contracts import Split, TaskError

#: Resets in a sequence that must differ from another: long enough that two tasks don't give the same by chance.
LONG = 32
SHORT = 6


def same_seed_same_tasks(h: Harness) -> None:
    """``reset(seed=s)`` starts one sequence of tasks, on used and fresh instances, after a chosen task, and for seed 0.

    Protects from ``if seed:`` (0 is a seed) and from a sequence that survives a new seed.
    """
    for split in h.subject.splits:
        for seed in (0, 1, 2**31 - 1):
            with h.env(split) as env, h.env(split) as fresh:
                env.reset(seed=seed + 1)
                first = _resets(env, seed, SHORT)
                expect_equal(f"reset(seed={seed}) twice", wanted=first, seen=_resets(env, seed, SHORT))
                expect_equal(f"reset(seed={seed}), fresh instance", wanted=first, seen=_resets(fresh, seed, SHORT))
        _seed_beside_a_task(h, split)


def _seed_beside_a_task(h: Harness, split: Split) -> None:
    ids = h.by_split(h.slow_ids)[split]
    for id in ids[:1]:
        with h.env(split) as env, h.env(split) as fresh:
            _resets(env, 3, SHORT)
            after = []
            for instance in (fresh, env):
                instance.reset(seed=7, options={"task": id})
                after.append([instance.reset() for _ in range(SHORT)])
        expect_equal("resets after reset(seed=7, options={'task': …})", wanted=after[0], seen=after[1])


def different_seeds_differ(h: Harness) -> None:
    """Other seeds give other sequences, not the neighbour's moved by one. Protects from an ignored seed and from
    ``seed + index``, under which neighbouring seeds share nearly every task.
    """
    for split in _choosing(h):
        with h.env(split) as env:
            sequences = {seed: _ids(_resets(env, seed, LONG)) for seed in range(4)}
        for one, other in combinations(sequences, 2):
            if sequences[one] == sequences[other]:
                fail(f"seeds {one} and {other} of split {split!r}", wanted="two sequences", seen="the same tasks")
        for seed in range(3):
            if sequences[seed][1:] == sequences[seed + 1][:-1]:
                fail(f"seeds {seed} and {seed + 1} of split {split!r}", wanted="unrelated sequences",
                     seen="one sequence, moved by one reset")  # fmt: skip


def unseeded_reset_moves_on(h: Harness) -> None:
    """``reset()`` takes the next task, and unseeded instances differ. Protects from reseeding at each reset (one start
    state for ever) and from a default seed (every worker plays the same tasks).
    """
    for split in _choosing(h):
        with h.env(split) as env, h.env(split) as other, h.env(split) as seeded:
            sequences = [_ids([instance.reset() for _ in range(LONG)]) for instance in (env, other)]
            after_seed = _ids(_resets(seeded, 5, LONG))
        for sequence in (*sequences, after_seed):
            if len(set(sequence)) == 1:
                fail(f"{LONG} resets in split {split!r}", wanted="more than one task", seen=f"only {sequence[0]!r}")
        if sequences[0] == sequences[1]:
            fail(f"two unseeded instances of split {split!r}", wanted="two sequences", seen="the same tasks")


def task_option_picks_the_task(h: Harness) -> None:
    """``reset(options={"task": id})`` starts that very task. Protects evaluations from scoring another one."""
    for split, ids in h.by_split(h.quick_ids).items():
        with h.env(split) as env:
            for id in ids:
                seen = env.reset(options={"task": id})[1].get("task")
                if seen != id:
                    fail(f"reset(options={{'task': {id!r}}})", wanted=f"info['task'] == {id!r}", seen=show(seen))


def bad_options_are_refused(h: Harness) -> None:
    """An unknown task or option raises an error that names it, and the environment goes on as if it had not been asked.

    Protects from a typo that silently evaluates the wrong thing.
    """
    for id in h.slow_ids:
        with h.env(h.split_of[id]) as env, h.env(h.split_of[id]) as untouched:
            for wrong in ("no-such-task", "", id + "x", id + "\n", "../" + id, 5, [id]):
                _expect_refused(env, {"task": wrong})
            _expect_refused(env, {"task": "no-such-task"}, mention="no-such-task")
            _expect_refused(env, {"tsak": id}, mention="tsak")
            expect_equal("an episode after refused options", wanted=h.play(untouched, "", id), seen=h.play(env, "", id))


def _expect_refused(env: TextEnv, options: dict[str, Any], mention: str = "") -> None:
    call = partial(env.reset, options=options)
    expect_raises(f"reset(options={options!r})", call, TaskError, ValueError, TypeError, mention=mention)


def used_instance_is_as_fresh(h: Harness) -> None:
    """An instance that has played, was abandoned in the middle, and whose infos were written to, plays as a new one.

    Protects from state that leaks into the next episode, and from infos that share a list with the environment.
    """
    for id in h.slow_ids:
        with h.env(h.split_of[id]) as used, h.env(h.split_of[id]) as fresh:
            _vandalise(used.reset(seed=3)[1])
            h.play(used, "garbage", id)
            _vandalise(used.reset(options={"task": id})[1])
            expect_equal(f"gold episode of task {id!r} in a used instance", wanted=h.gold_trace(id),
                         seen=h.play(used, h.gold(id), id))  # fmt: skip
            expect_equal(f"empty episode of task {id!r} after a good one", wanted=h.play(fresh, "", id),
                         seen=h.play(used, "", id))  # fmt: skip


def twins_agree(h: Harness) -> None:
    """Two instances that get the same actions in turns give the same things. Protects from state that instances share,
    and from randomness outside the seed.
    """
    for id in h.slow_ids[:1]:
        with h.env(h.split_of[id]) as one, h.env(h.split_of[id]) as other:
            twins = (one, other)
            options = [{"task": id}, None, None, {"task": id}, None]
            episodes = [h.gold(id), "", "garbage", "", "more garbage"]
            for number, (option, episode) in enumerate(zip(options, episodes, strict=True)):
                seed = 11 if number == 0 else None
                starts = [twin.reset(seed=seed, options=copy.copy(option)) for twin in twins]
                expect_equal(f"start of episode {number} of twins", wanted=starts[0], seen=starts[1])
                for turn, (left, right) in enumerate(h.lockstep(twins, episode)):
                    expect_equal(f"episode {number}, step {turn} of twins", wanted=left, seen=right)


def step_needs_an_episode(h: Harness) -> None:
    """``step`` before ``reset``, and after the end, raises, and a reset puts things right. Protects from a reward
    for an episode that nobody started, and from one that is paid twice.
    """
    for split, ids in h.by_split(h.slow_ids).items():
        for id in ids[:1]:
            with h.env(split) as env, h.env(split) as fresh:
                expect_raises("step() before reset()", partial(env.step, ""), Exception)
                first = h.play(env, "", id)
                expect_raises("step() after the end", partial(env.step, ""), Exception)
                expect_equal("an episode after a wrong step()", wanted=first, seen=h.play(env, "", id))
                expect_equal("an episode after a wrong step()", wanted=h.play(fresh, "", id), seen=first)


def _resets(env: TextEnv, seed: int, count: int) -> list[tuple[Any, dict[str, Any]]]:
    return [env.reset(seed=seed), *(env.reset() for _ in range(count - 1))]


def _ids(resets: list[tuple[Any, dict[str, Any]]]) -> list[Any]:
    return [info.get("task") for _, info in resets]


def _choosing(h: Harness) -> list[Split]:
    """The splits in which there is something to choose."""
    return [split for split in h.subject.splits if len(h.tasks.ids(split)) > 1]


def _vandalise(value: Any) -> None:
    """Empty every list and dict in ``value``."""
    if isinstance(value, dict | list):
        for item in list(value.values()) if isinstance(value, dict) else value:
            _vandalise(item)
        value.clear()
