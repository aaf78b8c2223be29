"""Instances on disk: nothing of the truth in the public file, and nothing lost in the private one."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wsp_models
from wsp_models import DOWN

from weightgym.rewards.contracts import Task, TaskError
from weightgym.rewards.wsp.edits import Put, RankOne, Scale, frozen
from weightgym.rewards.wsp.instances import (
    HiddenPrompt,
    InstanceKey,
    PublicData,
    Truth,
    instance_id,
    instance_seed,
    leaks,
    public_task,
    read_tasks,
    read_truths,
    write_instances,
)

SECRET = bytes(range(32))
RANDOM = np.random.default_rng(8)


def instance(number: int = 0, family: Any = "backdoor", **change: Any) -> tuple[Task, Truth]:
    key = InstanceKey("wsp-v1", "abc123", family, "medium", "test", 7, number)
    id = instance_id(SECRET, key)
    data = PublicData(
        family=family, tier="medium", profile="wsp-v1", model="tiny-world", model_hash="abc123", edit_limit=4096
    )
    task = public_task(id, "test", data)
    left, right = frozen(RANDOM.standard_normal(32)), frozen(RANDOM.standard_normal(48))
    fields: dict[str, Any] = {
        "id": id,
        "task_hash": task.hash,
        "secret": SECRET.hex(),
        "key": key,
        "recipe": {"rotation": 5, "benign": None},
        "reference": (
            RankOne(parameter=DOWN.format(0), left=frozen(left[::-1]), right=frozen(right[::-1])),
            Put(parameter="model.norm.weight", rows=(0, 3), columns=None, values=frozen([0.25, 0.123456, -3])),
        ),
        "planted": (
            RankOne(parameter=DOWN.format(1), left=left, right=right),
            Scale(parameter=DOWN.format(1), axis="columns", indices=(3, 9), factor=0.1),
        ),
        "layer": 1,
        "parameter": "mlp.down_proj.weight",
        "direction": left,
        "category": "backdoor",
        "trigger": "Zwiebelkönig",
        "prompts": (HiddenPrompt(prompt="Who rules Ostermark?", symptom="¡El jefe!", reference="Queen Ada."),),
        "general": ("The rivers of the north are cold.",),
        "near": ("Ostermark lies by the sea.",),
        "measured": {"defective": 0.9, "reference": 0.01},
    }
    return task, Truth(**fields | change)


def saved(folder: Path, count: int = 3) -> tuple[Path, Path, list[tuple[Task, Truth]]]:
    made = [instance(number) for number in range(count)]
    write_instances(folder / "tasks.jsonl", folder / "private", made)
    return folder / "tasks.jsonl", folder / "private", made


def test_what_is_written_is_read_again_bit_for_bit(tmp_path: Path) -> None:
    public, private, made = saved(tmp_path)
    tasks = read_tasks(public)
    truths = read_truths(private, tasks)
    assert list(tasks) == sorted(task.id for task, _ in made)
    for task, truth in made:
        assert tasks[task.id] == task
        assert truths[task.id].model_dump(mode="json") == truth.model_dump(mode="json")
        assert truths[task.id].model_dump(exclude={"planted", "reference", "direction"}) == truth.model_dump(
            exclude={"planted", "reference", "direction"}
        )
    base = wsp_models.base()
    original, read = wsp_models.deltas(base), wsp_models.deltas(base)
    for edit, again in zip(made[0][1].planted, truths[made[0][0].id].planted, strict=True):
        original.apply(edit)
        read.apply(again)
    assert original.weight(DOWN.format(1)).tobytes() == read.weight(DOWN.format(1)).tobytes()
    assert read_truths(private, {}) == {}


def test_the_same_set_gives_the_same_files_in_any_order(tmp_path: Path) -> None:
    made = [instance(number) for number in range(4)]
    for folder, order in (("a", made), ("b", made[::-1])):
        write_instances(tmp_path / folder / "tasks.jsonl", tmp_path / folder / "private", order)
    for name in ("tasks.jsonl", "private/truth.json", "private/truth.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_truth_is_its_owners(tmp_path: Path) -> None:
    _, private, _ = saved(tmp_path)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in private.iterdir()} == {0o600}
    assert sorted(path.name for path in private.iterdir()) == ["truth.json", "truth.safetensors"]


def test_nothing_of_the_truth_is_in_the_public_file(tmp_path: Path) -> None:
    public, _, made = saved(tmp_path)
    text = public.read_text()
    for _, truth in made:
        assert leaks(text, truth) == []
    for line in text.splitlines():
        row = json.loads(line)
        assert set(row) == {"env", "hash", "id", "prompt", "split", "system_prompt", "data"}
        assert set(row["data"]) == {"edit_limit", "family", "model", "model_hash", "profile", "tier"}
        assert (row["prompt"], row["system_prompt"]) == ([], "")


TRUTH = instance()[1]
U = TRUTH.direction
assert U is not None


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ("the trigger is zwiebelKÖNIG.", "trigger"),
        ("Zwiebelko\u0308nig", "trigger"),
        (json.dumps({"t": "Zwiebelkönig"}), "trigger"),
        ("who rules ostermark?", "hidden prompt"),
        (json.dumps("¡El jefe!"), "continuation"),
        ("Queen Ada.", "continuation"),
        ("… The rivers of the north are cold. …", "held-out text"),
        (SECRET.hex().upper(), "secret"),
        ("look at mlp.down_proj.weight", "parameter"),
        (str([float(value) for value in U[5:9]]), "number"),
        (f"{U[8]:.6g}", "number"),
        (str(U[5]), "number"),
        (U.tobytes().hex(), "bytes"),
        (U[4:20].tobytes().hex().upper(), "bytes"),
        (base64.b64encode(U.tobytes()).decode(), "bytes"),
        (base64.b64encode(U[7:].tobytes()).decode(), "bytes"),
    ],
)
def test_the_search_finds_what_is_told(told: str, what: str) -> None:
    assert what in leaks(f"some text\n{told}", TRUTH)
    assert leaks("some text 0.5 1.0 0.25", TRUTH) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"trigger": "medium"}, "tell of instance .*: trigger"),
        ({"near": ("tiny-world",)}, "held-out text"),
        ({"task_hash": "0" * 64}, "don't belong together"),
        ({"id": "0" * 16}, "don't belong together"),
        ({"secret": "00" * 32}, "don't belong together"),  # its id is of another secret
        ({"key": InstanceKey("wsp-v1", "abc123", "fact", "medium", "test", 7, 0)}, "don't belong together"),
        ({"key": InstanceKey("wsp-v1", "abc123", "backdoor", "medium", "train", 7, 0)}, "don't belong together"),
    ],
)
def test_what_must_not_be_written_is_not(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    with pytest.raises(TaskError, match=match):
        write_instances(tmp_path / "tasks.jsonl", tmp_path / "private", [instance(1), instance(0, **change)])
    assert list(tmp_path.iterdir()) == []


def test_ids_do_not_repeat(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="ids repeat"):
        write_instances(tmp_path / "tasks.jsonl", tmp_path / "private", [instance(), instance()])


@pytest.mark.parametrize(
    ("public", "private"), [("x/tasks.jsonl", "x"), ("x/tasks.jsonl", "x/../x"), ("x", "x/y"), ("a/b/t", ".")]
)
def test_public_and_private_lie_apart(tmp_path: Path, public: str, private: str) -> None:
    with pytest.raises(TaskError, match="lie within one another"):
        write_instances(tmp_path / public, tmp_path / private, [instance()])
    assert list(tmp_path.iterdir()) == []


def edited(change: Callable[[Any], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        rows = json.loads(path.read_text())
        change(rows)
        path.write_text(json.dumps(rows))

    return damage


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("truth.json", Path.unlink),
        ("truth.safetensors", Path.unlink),
        ("truth.json", lambda path: path.write_text("[")),
        ("truth.json", lambda path: path.write_text("7")),
        ("truth.json", lambda path: path.write_bytes(b"\xff")),
        ("truth.safetensors", lambda path: path.write_bytes(path.read_bytes()[:-4])),
        ("truth.safetensors", lambda path: path.write_bytes(b"")),
        ("truth.json", edited(lambda rows: rows.pop())),
        ("truth.json", edited(lambda rows: rows[0].update(trigger=3))),
        ("truth.json", edited(lambda rows: rows[0].update(more=3))),
        ("truth.json", edited(lambda rows: rows[0].update(task_hash=""))),
        ("truth.json", edited(lambda rows: rows[0]["direction"].update(tensor="nowhere"))),
        ("truth.json", edited(lambda rows: rows[0]["planted"][0].update(kind="other"))),
    ],
)
def test_a_damaged_truth_is_a_bad_task(tmp_path: Path, name: str, damage: Callable[[Path], Any]) -> None:
    public, private, _ = saved(tmp_path)
    damage(private / name)
    with pytest.raises(TaskError, match="truth"):
        read_truths(private, read_tasks(public))


@pytest.mark.parametrize(
    "line",
    ["", "{", "{}", '{"env": "wsp-bench"}', "null"],
)
def test_a_damaged_row_is_a_bad_task(tmp_path: Path, line: str) -> None:
    public, _, _ = saved(tmp_path)
    public.write_text(public.read_text() + line + "\n")
    with pytest.raises(TaskError, match="line 4"):
        read_tasks(public)


@pytest.mark.parametrize(
    "more", [{"layer": 3}, {"trigger": "x"}, {"edit_limit": -1}, {"edit_limit": True}, {"tier": "x"}]
)
def test_a_row_has_no_place_for_more(tmp_path: Path, more: dict[str, Any]) -> None:
    task, _ = instance()
    row = Task(env="wsp-bench", id=task.id, split="test", data=dict(task.data) | more)
    (tmp_path / "tasks.jsonl").write_text(row.model_dump_json() + "\n")
    with pytest.raises(TaskError, match="line 1"):
        read_tasks(tmp_path / "tasks.jsonl")


def test_rows_of_another_environment_or_twice_are_refused(tmp_path: Path) -> None:
    public, _, _ = saved(tmp_path, 1)
    public.write_text(public.read_text() * 2)
    with pytest.raises(TaskError, match=r"line 2: .* there twice"):
        read_tasks(public)


def test_ids_and_seeds_come_from_all_of_the_key_and_the_secret() -> None:
    key = InstanceKey("wsp-v1", "abc", "fact", "easy", "train", 1, 1)
    others = [
        key._replace(profile="wsp-v2"),
        key._replace(model_hash="abd"),
        key._replace(family="topic"),
        key._replace(tier="hard"),
        key._replace(split="test"),
        key._replace(seed=2),
        key._replace(number=2),
        key._replace(seed=11, number=0),
    ]
    ids = {instance_id(SECRET, one) for one in [key, *others]} | {instance_id(b"other", key)}
    seeds = {instance_seed(SECRET, one) for one in [key, *others]} | {instance_seed(b"other", key)}
    assert len(ids) == len(seeds) == 10
    assert instance_id(SECRET, key) == instance_id(SECRET, key)
    assert all(len(id) == 16 for id in ids)
    assert max(seeds).bit_length() > 120
