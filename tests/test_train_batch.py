"""Trajectories as tensors: every token in its place, padding nowhere else."""

from __future__ import annotations

import pytest
import torch
from test_rollouts import a_trajectory

from weightgym.rollouts.trajectory import Step, Trajectory
from weightgym.trainers.batch import make_batch
from weightgym.trainers.batch import rows as make_rows


def turns(*lengths: int) -> Trajectory:
    """A prompt, an answer, a prompt, an answer … of that many tokens each; token ids count up from 1."""
    steps, token = [], 1
    for index, length in enumerate(lengths):
        mine = bool(index % 2)
        ids = tuple(range(token, token + length))
        logprobs = tuple(-0.5 * id if mine else 0.0 for id in ids)
        role = "assistant" if mine else "user"
        steps.append(
            Step.model_validate(
                {"role": role, "content": "", "token_ids": ids, "logprobs": logprobs, "mask": (mine,) * length}
            )
        )
        token += length
    return a_trajectory(steps=tuple(steps))


def test_rows_end_together_and_hold_every_trained_token() -> None:
    written = [turns(3, 2), turns(1, 4), turns(2, 2, 3, 1)]
    batch = make_batch(make_rows(written, [1.0, 2.0, 3.0]))
    assert batch.ids.shape == (3, 8)
    assert batch.targets.shape == batch.mask.shape == batch.sampler_logp.shape == (3, 6)
    for row, one in enumerate(branch for trajectory in written for branch in trajectory.branches):
        length = len(one.token_ids)
        assert batch.ids[row, -length:].tolist() == list(one.token_ids)
        assert batch.attention[row].tolist() == [0] * (8 - length) + [1] * length
        trained = [id for id, flag in zip(one.token_ids, one.mask, strict=True) if flag]
        assert batch.targets[row][batch.mask[row]].tolist() == trained
        assert batch.sampler_logp[row][batch.mask[row]].tolist() == [-0.5 * id for id in trained]
    assert torch.equal(batch.targets, batch.ids[:, -6:])
    assert batch.advantages.tolist() == [1.0, 2.0, 3.0]


def test_a_row_is_the_same_in_any_company() -> None:
    one = turns(2, 3)
    alone = make_batch(make_rows([one], [1.0]))
    together = make_batch(make_rows([one, turns(9, 7)], [1.0, 0.0]))
    assert together.targets[0, -3:].tolist() == alone.targets[0].tolist()
    assert together.mask[0].tolist() == [False] * 4 + alone.mask[0].tolist()


def test_every_branch_is_a_row_with_its_episodes_advantage() -> None:
    first, second = turns(2, 2), turns(3, 1)
    again = second.steps[0].model_copy(update={"starts_branch": True})
    both = a_trajectory(steps=(*first.steps, again, *second.steps[1:]))
    assert both.branches == first.branches + second.branches
    assert [row.advantage for row in make_rows([both, first], [0.5, -1.0])] == [0.5, 0.5, -1.0]


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="2 trajectories, but 1 advantages"):
        make_rows([turns(1, 1), turns(1, 1)], [1.0])
    with pytest.raises(ValueError, match="trajectory a has no token to train on"):
        make_rows([turns(3)], [1.0])
