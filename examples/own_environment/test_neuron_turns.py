"""The contract suite on the one with several turns, and what is its own."""

from __future__ import annotations

import neuron_gates
import neuron_turns
from test_neuron_gates import gold

from weightgym.envs.testing import EnvSubject, contract_test

HALF = "```edits\nb3 = [1, 0, 0, 0, 0, 0]\n```"  # of the gate "any": on at 16 of 31 inputs, and off where it has to be
LOST = "I give up."


def subject() -> EnvSubject:
    return EnvSubject(
        make=neuron_turns.NeuronTurns,
        gold=lambda id: ([LOST, gold(id)[0]], 1.0),
        floor=neuron_turns.SPEC.floor,
        gym_id=neuron_turns.SPEC.gym_id,
        noops=("", ["", "", ""]),
        invalid=(LOST, [LOST, "```edits\nb3 = [1, 1]\n```", LOST]),
        oversize=gold("any")[0].replace("\nb3", "\nb3[0] = 1" * neuron_gates.MAX_CHARS + "\nb3"),
    )


test_contract = contract_test(subject)


def test_the_best_attempt_counts_and_is_scored_again() -> None:
    env = neuron_turns.NeuronTurns()
    env.reset(options={"task": "any"})
    assert env.step(HALF)[0] == "ok: reward 0.516129 (on 0.516129, off 1, attempts 1). Try again."
    assert env.step(LOST)[1:4] == (0.0, False, False)
    _, reward, ended, _, info = env.step(LOST)
    assert (reward, ended) == (16 / 31, True)
    talk = [{"role": "assistant", "content": HALF}]
    talk += [{"role": "user", "content": "ok: reward 1"}, {"role": "assistant", "content": LOST}] * 2
    task = neuron_turns.SOURCE.task("any")
    assert neuron_gates.score_attempts(task, talk) == info["score"]
    assert neuron_gates.score_attempts(task, talk * 2).code == "attempts"
