"""An environment of one's own, whole: the model writes the six numbers of one neuron, so that it computes a gate.

docs/write-an-environment.md goes through it. To make yours, copy the folder, and change the names first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import gymnasium

from weightgym.envs.base import SingleTurnEnv, reward_of
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Completion, Message, ModelError, Score, Split, Task, TaskError, completion_text

#: Split → gate → when it is on, and a neuron that computes it: five weights and the bias.
GATES: dict[Split, dict[str, tuple[str, list[float]]]] = {
    "train": {
        "any": ("at least one input is on", [1, 1, 1, 1, 1, -0.5]),
        "two": ("at least two inputs are on", [1, 1, 1, 1, 1, -1.5]),
        "most": ("at least three inputs are on", [1, 1, 1, 1, 1, -2.5]),
        "first": ("the first input is on", [1, 0, 0, 0, 0, -0.5]),
        "last-off": ("the last input is off", [0, 0, 0, 0, -1, 0.5]),
    },
    "test": {
        "four": ("at least four inputs are on", [1, 1, 1, 1, 1, -3.5]),
        "third": ("the third input is on", [0, 0, 1, 0, 0, -0.5]),
    },
}
PROFILE = "gates-v1"  #: the name of these rules: whoever changes the rules changes it
MAX_CHARS = 10_000
ATTEMPTS = 3  #: of an episode of several turns
PROMPT = """# Set a neuron: on when {when}

A neuron has five inputs, each 0 or 1, and six numbers b3: five weights and a bias, all 0 at first. It is on when
b3[0] * first + b3[1] * second + … + b3[4] * fifth + b3[5] > 0. Write b3 so that it is on exactly when {when}.
The answer is one block, and nothing else; a number has at most three digits before its point, and three after it:

```edits
b3 = [0, -2, 0, 0, -1, 0]
b3[5] = -1.5
```"""
_NUMBER = r"-?[0-9]{1,3}(?:\.[0-9]{1,3})?"
_BLOCK = re.compile(r"```edits\n(.+)\n```", re.DOTALL)
_WHOLE = re.compile(rf"b3 ?= ?\[ ?({_NUMBER}(?: ?, ?{_NUMBER}){{5}}) ?\]")
_ONE = re.compile(rf"b3\[([0-5])\] ?= ?({_NUMBER})")


class Gates:
    """The task source: every gate is a task. Its data is the truth table, one digit for each of the 32 inputs."""

    def ids(self, split: Split) -> tuple[str, ...]:
        return tuple(GATES[split])

    def task(self, id: str, *, prompt: bool = True) -> Task:
        for split, gates in GATES.items():
            if id in gates:
                when, neuron = gates[id]
                messages = (Message(role="user", content=PROMPT.format(when=when)),) if prompt else ()
                return Task(env=SPEC.name, id=id, split=split, prompt=messages, data={"table": table(neuron)})
        raise TaskError(f"{SPEC.name}: unknown task {id!r}")


def table(neuron: Iterable[Decimal | float]) -> str:
    """What the neuron says to each input, from 00000 to 11111. Decimals of so few digits are added exactly."""
    *weights, bias = map(Decimal, neuron)
    sums = (sum(itertools.compress(weights, bits), bias) for bits in itertools.product((0, 1), repeat=5))
    return "".join("1" if total > 0 else "0" for total in sums)


def read(text: str) -> list[Decimal]:
    """The six numbers of an answer. It is read, never run: no eval.

    Raises:
        ModelError: it is no answer; a code, and what is wrong.
    """
    if len(text) > MAX_CHARS:
        raise ModelError(f"too_long: {len(text)} characters, at most {MAX_CHARS} are read")
    if not (block := _BLOCK.fullmatch(text.strip())):
        raise ModelError("no_block: the answer is one block between a line ```edits and a line ```")
    neuron = [Decimal(0)] * 6
    for number, line in enumerate(block[1].split("\n"), 1):
        if whole := _WHOLE.fullmatch(line.strip()):
            neuron = [Decimal(value.strip()) for value in whole[1].split(",")]
        elif one := _ONE.fullmatch(line.strip()):
            neuron[int(one[1])] = Decimal(one[2])
        else:
            raise ModelError(f"syntax: line {number} is neither b3 = [six numbers] nor b3[0 to 5] = number")
    return neuron


def score(task: Task, completion: Completion, *, profile: str = PROFILE) -> Score:
    """``on + off - 1``, at least 0: the gate itself gets 1, and a neuron that always says the same gets 0.

    Metrics:
        on: of the inputs at which the gate is on, the share at which the neuron is, too.
        off: the same where the gate is off.
    """
    try:
        said = table(read(completion_text(completion)))
    except ModelError as error:  # the model's fault: the floor, and why
        return Score(status="invalid", reward=SPEC.floor, reason=str(error), profile=profile)
    pairs = list(zip(str(task.data["table"]), said, strict=True))
    on, off = (pairs.count((value, value)) / sum(wanted == value for wanted, _ in pairs) for value in "10")
    return Score(status="ok", reward=max(0.0, on + off - 1), metrics={"on": on, "off": off}, profile=profile)


def score_attempts(task: Task, completion: Completion, *, profile: str = PROFILE) -> Score:
    """The best attempt of a conversation of ``neuron_turns.py``, or that of one answer alone. Whatever stands between
    the attempts is not believed: the assistant's messages are scored again.

    Metrics:
        attempts: how many there were.
    """
    attempts: Sequence[Completion] = [completion]
    if not isinstance(completion, str):
        attempts = [[one] for one in completion if isinstance(one, Mapping) and one.get("role") == "assistant"]
    if not 1 <= len(attempts) <= ATTEMPTS:
        reason = f"attempts: {len(attempts)} messages of the assistant, want 1 to {ATTEMPTS}"
        return Score(status="invalid", reward=SPEC.floor, reason=reason, profile=profile)
    return best_of([score(task, one, profile=profile) for one in attempts])


def best_of(scores: Sequence[Score]) -> Score:
    """The best valid one (the first of equals), else the last. Both the environment and the scorer end here."""
    valid = [one for one in scores if one.status == "ok"]
    best = max(valid, key=reward_of) if valid else scores[-1]
    return best.model_copy(update={"metrics": best.metrics | {"attempts": float(len(scores))}})


class NeuronGates(SingleTurnEnv):
    """Write the six numbers of one neuron, so that it computes a gate of five inputs."""

    def __init__(self, *, split: Split = "train") -> None:
        super().__init__(SPEC.name, split=split)


SOURCE = Gates()
SPEC = EnvSpec(
    name="neuron-gates",
    gym_id="mine/NeuronGates-v1",
    summary="write the six numbers of one neuron that computes a gate",
    env="neuron_gates:NeuronGates",
    source="neuron_gates:SOURCE",
    scorer="neuron_gates:score",
    default_profile=PROFILE,
    profiles=PROFILE,
    floor=0.0,
    pass_threshold=1.0,
)
gymnasium.register(id=SPEC.gym_id, entry_point=SPEC.env)
