"""Records: whole or not at all, never over another one, never from what does not hold; and the table made of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from golf_outputs import forged, ran, small

from weightgym.rewards.golf import leaderboard
from weightgym.rewards.golf.output import Output
from weightgym.rewards.golf.records import RecordError, add, read, read_all, refresh

GOOD, LONGER = small(), small(80)
FILES = ["README.md", "diff.patch", "result.json", "solution.py"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "record"


def output(raw: bytes = GOOD, **changes: Any) -> Output:
    return forged(ran(raw), **changes)


def ids(page: str) -> list[str]:
    """The records that the page links to, in its order."""
    return [line.split("](")[0].split("[")[-1] for line in page.splitlines() if "](" in line]


def test_a_record_has_all_its_files_and_holds(root: Path) -> None:
    shelf = add(root, "first", GOOD, ran(GOOD))
    assert [one.id for one in shelf.records] == ["first"]
    assert sorted(path.name for path in (root / "first").iterdir()) == FILES
    assert (root / "first/solution.py").read_bytes() == GOOD
    assert read(root / "first").output == ran(GOOD)
    text = (root / "first/README.md").read_text()
    for part in (f"{ran(GOOD).val_bpb:.6f}", "architecture_shape", "train_steps = 50", "lang/24", "the baseline"):
        assert part in text
    assert len(text.splitlines()) < 30
    assert ids((root / "README.md").read_text()) == ["first"]
    assert sorted(path.name for path in root.iterdir()) == [".lock", "README.md", "first"]


BAD_IDS = [
    "",
    "..",
    ".",
    "../up",
    "a/b",
    "/tmp/x",
    "A",
    "ä",
    "a b",
    "a\n",
    "-rf",
    "x" * 61,
    "a.b",
    "a\0",
    "²",
    ".new-a",
]


@pytest.mark.parametrize("id", BAD_IDS)
def test_an_id_is_no_path(root: Path, id: str) -> None:
    with pytest.raises(RecordError, match="a record's id is"):
        add(root, id, GOOD, ran(GOOD))
    assert not root.exists() or sorted(path.name for path in root.iterdir()) == [".lock"]
    assert sorted(path.name for path in root.parent.iterdir()) in ([], ["record"])


def test_an_id_is_taken_once(root: Path) -> None:
    add(root, "one", GOOD, ran(GOOD))
    with pytest.raises(RecordError, match="exists"):
        add(root, "one", LONGER, ran(LONGER))
    assert read(root / "one").raw == GOOD
    for name, make in (("file", Path.touch), ("empty", Path.mkdir), ("link", lambda path: path.symlink_to("nowhere"))):
        make(root / name)
        with pytest.raises(RecordError, match="exists"):
            add(root, name, GOOD, ran(GOOD))


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "buggy", "reason": "audit_future_bytes", "val_bpb": None},
        {"source_sha256": "0" * 64},
        {"artifact_bytes": 5},
        {"evaluator": "golf-eval-0"},
    ],
)
def test_only_a_legal_run_is_kept(root: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match="only what the gate calls legal"):
        add(root, "one", GOOD, output(**wrong))
    assert not root.exists()


def test_two_recorders_at_once(root: Path) -> None:
    outcomes: list[str] = []

    def attempt(id: str) -> str:
        try:
            add(root, id, GOOD, ran(GOOD))
        except RecordError as error:
            return str(error)
        return "made"

    ran(GOOD)
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, ["same"] * 4 + [f"other-{number}" for number in range(4)]))
    assert outcomes.count("made") == 5
    assert len(set(outcomes)) == 2
    assert len(ids((root / "README.md").read_text())) == 5


KILLED = """
import os, signal, sys
from pathlib import Path
from weightgym.rewards.golf import records
from weightgym.rewards.golf.output import parse_output
where = sys.argv[1]
real = getattr(Path, where)
def last(self, *rest):
    if where == "replace":
        os.kill(os.getpid(), signal.SIGKILL)
    if self.name.startswith(".new-"):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, *rest)
setattr(Path, where, last)
records.add(Path(sys.argv[2]), "killed", Path(sys.argv[3]).read_bytes(), parse_output(Path(sys.argv[4]).read_bytes()))
"""


@pytest.mark.parametrize(("where", "kept"), [("rename", False), ("replace", True)])
def test_a_killed_recorder_leaves_a_whole_record_or_none(root: Path, tmp_path: Path, where: str, kept: bool) -> None:
    """Killed before the folder has its name, or before the table is there."""
    (tmp_path / "solution.py").write_bytes(GOOD)
    (tmp_path / "result.json").write_text(ran(GOOD).model_dump_json())
    paths = [root, tmp_path / "solution.py", tmp_path / "result.json"]
    command = [sys.executable, "-c", KILLED, where, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (root / "killed").exists() == kept
    assert [one.id for one in read_all(root).records] == ["killed"] * kept
    assert read_all(root).broken == {}
    shelf = add(root, "next", LONGER, ran(LONGER))
    assert [one.id for one in shelf.records] == ["killed", "next"][not kept :]
    assert len(ids((root / "README.md").read_text())) == 1 + kept
    assert not [path for path in root.iterdir() if path.name.startswith(".new-")]


def test_a_full_disk_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add(root, "one", GOOD, ran(GOOD))
    assert [path.name for path in root.iterdir()] == [".lock"]


# --- what lies in the folder may have been changed --------------------------------------------------------------------


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def link(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


TAMPERED: dict[str, Callable[[Path], object]] = {
    "score": lambda folder: edit(folder, val_bpb=0.5),
    "bytes": lambda folder: edit(folder, artifact_bytes=7),
    "nan": lambda folder: edit(folder, val_bpb=float("nan")),
    "negative": lambda folder: edit(folder, val_bpb=-1.0),
    "huge": lambda folder: edit(folder, val_bpb=1e308),
    "no hash": lambda folder: edit(folder, hash=""),
    "source": lambda folder: (folder / "solution.py").write_bytes(LONGER),
    "one byte more": lambda folder: (folder / "solution.py").write_bytes(GOOD + b"\n"),
    "whole result": lambda folder: (folder / "result.json").write_text(ran(LONGER).model_dump_json()),
    "known hash": lambda folder: (folder / "result.json").write_text(output(artifact_bytes=7).model_dump_json()),
    "empty": lambda folder: (folder / "result.json").write_text(""),
    "large": lambda folder: (folder / "result.json").write_text(" " * (2 << 20)),
    "missing": lambda folder: (folder / "result.json").unlink(),
    "no source": lambda folder: (folder / "solution.py").unlink(),
    "link": lambda folder: link(folder / "result.json"),
    "pipe": lambda folder: pipe(folder / "solution.py"),
    "folder": lambda folder: link(folder),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_record_is_told_and_left_out(root: Path, name: str) -> None:
    add(root, "good", LONGER, ran(LONGER))
    add(root, "bad", GOOD, ran(GOOD))
    TAMPERED[name](root / "bad")
    shelf = refresh(root)
    assert [one.id for one in shelf.records if one.id != "elsewhere"] == ["good"]
    assert list(shelf.broken) == ["bad"]
    assert shelf.broken["bad"]
    assert "\n" not in shelf.broken["bad"]
    assert "bad" not in ids((root / "README.md").read_text())


def test_folders_of_other_names_are_told(root: Path) -> None:
    add(root, "good", GOOD, ran(GOOD))
    shutil.copytree(root / "good", root / "Copy [x](y)")
    shelf = refresh(root)
    assert [one.id for one in shelf.records] == ["good"]
    assert list(shelf.broken) == ["Copy [x](y)"]


def test_a_folder_that_is_not_there_is_told(root: Path) -> None:
    with pytest.raises(RecordError, match="no folder"):
        refresh(root)


# --- texts ------------------------------------------------------------------------------------------------------------


def keep(root: Path, id: str, **changes: Any) -> None:
    add(root, id, GOOD, output(**changes))


def test_the_order_is_val_bpb_then_bytes_then_runtime(root: Path) -> None:
    size = ran(GOOD).claimed_bytes or 0
    larger = {"claimed_bytes": size + 9, "artifact_bytes": size + 9 + len(GOOD)}
    keep(root, "d", val_bpb=3.0)
    keep(root, "c", val_bpb=2.0, runtime_s=1.0, **larger)
    keep(root, "b", val_bpb=2.0, runtime_s=9.0)
    keep(root, "a", val_bpb=2.0, runtime_s=8.5)
    keep(root, "z", val_bpb=1.9999999, runtime_s=99.0, **larger)
    page = (root / "README.md").read_text()
    assert ids(page) == ["z", "a", "b", "c", "d"]
    (root / "README.md").unlink()
    refresh(root)
    assert (root / "README.md").read_text() == page


def test_one_table_for_each_profile_and_corpus(root: Path) -> None:
    corpus = {**ran(GOOD).corpus, "task": "lang/25"}
    keep(root, "here", val_bpb=3.0)
    keep(root, "there", val_bpb=2.0, corpus=corpus)
    page = (root / "README.md").read_text()
    assert page.count("\n## ") == 2
    assert "the baseline" in (root / "there/README.md").read_text()  # another contest is no rival


def test_what_a_record_improves_on(root: Path) -> None:
    keep(root, "poor", val_bpb=5.0)
    keep(root, "fair", val_bpb=4.0)
    keep(root, "good", val_bpb=3.0)
    keep(root, "last", val_bpb=6.0)
    improved = {id: (root / id / "README.md").read_text() for id in ("poor", "fair", "good", "last")}
    assert "the baseline" in improved["poor"]
    assert "[poor](../poor/): val_bpb -1.000000" in improved["fair"]
    assert "[fair](../fair/): val_bpb -1.000000" in improved["good"]
    assert "the baseline" in improved["last"]


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
@pytest.mark.parametrize(
    "raw",
    [GOOD, b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n"), GOOD.rstrip(), GOOD + b"# \x0c \xe2\x80\xa8 |x|"],
)
def test_the_patch_makes_the_solution_from_the_baseline(root: Path, tmp_path: Path, raw: bytes) -> None:
    made = ran(raw)
    assert made.status == "ok"
    add(root, "one", raw, made)
    target = tmp_path / "target.py"
    target.write_text(leaderboard.baseline_source())
    command = ["patch", "--binary", "--silent", str(target), str(root / "one/diff.patch")]
    subprocess.run(command, check=True, timeout=60)
    assert target.read_bytes() == raw


def test_a_long_file_is_compared_in_bounded_time() -> None:
    many = "".join(f"x{number % 7} = {number % 5}\n" for number in range(400_000))
    text = leaderboard.patch(many, many[::-1], "a", "b")
    assert text.count("\n-") + text.count("\n+") >= 800_000


def test_texts_can_t_become_markup(root: Path) -> None:
    evil = "`| [x](http://e) <script>alert(1)</script>\n# Big ![](http://e) \x1b[31m \u202e|"
    corpus = {"kind": evil, "task": evil, "val_sha256": evil}
    shown = {"corpus": corpus, "fingerprint": {"device": "cpu", "torch": evil, "cpu": evil * 50}}
    keep(root, "one", **shown)
    for page in (root / "README.md", root / "one/README.md"):
        text = page.read_text()
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\n# Big" not in text
        for line in text.splitlines():
            outside = "".join(line.split("`")[::2])
            assert line.count("`") % 2 == 0
            assert "e)" not in outside
            assert "script" not in outside
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) == 1
