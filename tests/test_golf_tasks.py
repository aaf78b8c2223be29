"""The tasks of Golf and their prompts."""

from __future__ import annotations

import pytest

from weightgym.envs.golf.tasks import SOURCE, TURNS_SOURCE, GolfTasks
from weightgym.rewards.contracts import Task, TaskError, sha256_hex
from weightgym.rewards.golf.config import KEYS
from weightgym.rewards.golf.data.stream import SECRET_VARIABLE


def prompt(id: str, profile: str = "golf-cpu-v1") -> str:
    return GolfTasks(profile).task(id).prompt[0].content


def test_24_languages_to_train_on_and_8_others() -> None:
    train, test = SOURCE.ids("train"), SOURCE.ids("test")
    assert (len(train), len(test), len({*train, *test})) == (24, 8, 32)
    assert (train[0], test[0], test[-1]) == ("lang/0", "lang/24", "lang/31")
    rows = [SOURCE.task(id) for id in (*train, *test)]
    assert [row.split for row in rows] == ["train"] * 24 + ["test"] * 8
    assert len({row.hash for row in rows}) == len({row.prompt for row in rows}) == 32
    assert all(Task.model_validate_json(row.model_dump_json()) == row for row in rows)


def test_a_task_without_its_prompt_is_the_same_row() -> None:
    bare = SOURCE.task("lang/3", prompt=False)
    assert bare.prompt == ()
    assert bare.data == SOURCE.task("lang/3").data


@pytest.mark.parametrize("id", ["lang/32", "lang/-1", "lang/03", "lang/", "lang", "no-such-task", "lang/1 "])
def test_other_ids_are_refused(id: str) -> None:
    with pytest.raises(TaskError, match=f"unknown task '{id}'"):
        SOURCE.task(id)


def test_prompts_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changing a prompt changes the task: stored scores name its hash."""
    monkeypatch.setenv(SECRET_VARIABLE, "a secret that no prompt may depend on")
    hashes = {id: SOURCE.task(id).hash[:16] for id in ("lang/0", "lang/31")}
    assert hashes == {"lang/0": "2a8c5be6f03c0c89", "lang/31": "e7fc9d5c16d5ebcc"}
    assert TURNS_SOURCE.task("lang/0").hash[:16] == "a6cd17e7cc6676a2"


def test_the_prompt_teaches_the_rules() -> None:
    text = prompt("lang/0")
    for name, key in KEYS.items():
        assert f"| {name} | {key.kind.__name__} | " in text
    assert "| learning_rate | float | 0.00001 to 0.02 | 0.002 |" in text
    assert "| train_batch_tokens | int | 32,768 to 1,572,864 | 32,768 |" in text
    for said in (
        "4,000,000 bytes at most",
        "5/8 of your train_steps",
        "50 steps of 2,048 bytes",
        "40 seconds of one CPU core",
        "16,384 to be scored on",
        "warmdown_steps < train_steps",
        "strict=True",
        "−9 for everything",
        "```python",
        "autograd.Function",
        "low-rank products",
        "NumPy neither",
        "4 GiB of memory",
    ):
        assert said in text
    assert "attempts" not in text
    assert "$" not in text.replace(text[text.index("````text") : text.index("````\n\n## The file")], "")


def test_the_prompt_tells_the_budgets_of_its_profile() -> None:
    full, modal = prompt("lang/0", "golf-full-v1"), prompt("lang/0", "golf-modal-h100x8")
    assert "24,000,000 bytes to train on, 500,000 to be scored on" in full
    assert "60 seconds on all GPUs of the machine (on a machine without one, 1,200 CPU-seconds)" in full
    assert "60 seconds on 8 H100 GPUs" in modal
    assert len({sha256_hex(text) for text in (full, modal, prompt("lang/0"))}) == 3
    with pytest.raises(TaskError, match="did you mean 'golf-full-v1'"):
        prompt("lang/0", "golf-ful-v1")
