"""Task sources with one mistake each."""

from __future__ import annotations

from itertools import count

from toy_env import ROWS, SumSource

from weightgym.rewards.contracts import Message, Split, Task, TaskError


class Fickle(SumSource):
    calls = count()

    def task(self, id: str, *, prompt: bool = True) -> Task:
        task = super().task(id, prompt=prompt)
        if id != "large" or not prompt:
            return task
        said = Message(role="user", content=f"{task.prompt[0].content} ({next(self.calls)})")
        return Task(env=task.env, id=task.id, split=task.split, data=task.data, prompt=(said,))


class Lenient(SumSource):
    def task(self, id: str, *, prompt: bool = True) -> Task:
        try:
            return super().task(id, prompt=prompt)
        except TaskError:
            return super().task("small", prompt=prompt)


class Twice(SumSource):
    def ids(self, split: Split) -> tuple[str, ...]:
        ids = super().ids(split)
        return (*ids, ids[0])


OTHER_ENV = SumSource("tyo", ROWS)
FICKLE = Fickle("toy", ROWS)
EMPTY_TEST = SumSource("toy", {"train": ROWS["train"], "test": {}})
LENIENT = Lenient("toy", ROWS)
TWICE = Twice("toy", ROWS)
SHARED_ID = SumSource("toy", {"test": ROWS["test"], "train": ROWS["train"] | {"odd": (9, 9)}})
SHARED_CONTENT = SumSource("toy", {"train": ROWS["train"] | {"copy": (3, 4)}, "test": ROWS["test"]})
MIRRORED = SumSource("toy", {"train": ROWS["train"] | {"mirror": (4, 3)}, "test": ROWS["test"]})
