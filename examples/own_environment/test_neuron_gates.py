"""The contract suite, bound to the environment by one factory."""

from __future__ import annotations

from neuron_gates import GATES, MAX_CHARS, SPEC, NeuronGates

from weightgym.envs.testing import EnvSubject, contract_test


def gold(id: str) -> tuple[str, float]:
    """A right answer to a task, and its reward."""
    neuron = next(gates[id][1] for gates in GATES.values() if id in gates)
    return f"```edits\nb3 = {neuron}\n```", 1.0


def subject() -> EnvSubject:
    return EnvSubject(
        make=NeuronGates,
        gold=gold,
        floor=SPEC.floor,
        gym_id=SPEC.gym_id,
        invalid=("b3 = [1, 1, 1, 1, 1, -1]", "```edits\nb3 = [1, 1]\n```", "```edits\nb3[6] = 1\n```"),
        oversize=gold("any")[0].replace("\nb3", "\nb3[0] = 1" * MAX_CHARS + "\nb3"),
    )


test_contract = contract_test(subject)
