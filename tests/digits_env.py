"""An environment that a random model can learn in seconds: the reward is the share of digits in the answer."""

from __future__ import annotations

from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Completion, Message, Score, Split, Task, TaskError, completion_text


class DigitTasks:
    """Two tasks to train on, one to test with."""

    def ids(self, split: Split) -> tuple[str, ...]:
        return ("one", "two") if split == "train" else ("three",)

    def task(self, id: str, *, prompt: bool = True) -> Task:
        if id not in ("one", "two", "three", "broken"):
            raise TaskError(f"unknown task {id!r}")
        split: Split = "test" if id == "three" else "train"
        return Task(env="digits", id=id, split=split, prompt=(Message(role="user", content=f"digits, {id}"),))


SOURCE = DigitTasks()


def score(task: Task, completion: Completion, *, profile: str = "digits-v1") -> Score:
    """The task ``broken`` is a fault of ours."""
    text = completion_text(completion)
    if task.id == "broken":
        return Score.fault(RuntimeError("broken"), profile=profile)
    if not text:
        return Score(status="invalid", reward=0.0, reason="empty: no text", profile=profile)
    return Score(status="ok", reward=sum(char in "0123456789" for char in text) / len(text), profile=profile)


SPEC = EnvSpec(
    name="digits",
    gym_id="tests/Digits-v1",
    summary="write digits",
    env="digits_env:none",
    source="digits_env:SOURCE",
    scorer="digits_env:score",
    default_profile="digits-v1",
    profiles="digits-v1",
    floor=0.0,
)
