"""The published dataset from the command line: choosing, scoring, comparing, fetching."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from snapshot_fixture import COIN, LEAK, VERIFY, digest, write_digests, write_snapshot

from weightgym.cli.main import cli
from weightgym.rewards.sandbox import support
from weightgym.rewards.weight_program.snapshot import layout, process

ANSWER = "```edits\nb3[3] = 1\nW1[5, 3] = 0.7\nW2[3, 2] = 1.5\nW3[2, 5] = 2\n```"
COMMIT = "ab" * 20


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """The options that choose a snapshot."""
    for name in ("WEIGHTGYM_SNAPSHOT", "WEIGHTGYM_SNAPSHOT_SHA256", "WEIGHTGYM_UNSAFE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "snapshot"
    yield ("--snapshot", str(folder), "--snapshot-sha256", write_snapshot(folder))
    process.close_all()


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="weightgym")


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    lines = [json.dumps({"env": "weight-program", "task": task, "completion": text}) for task, text in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tasks_and_prompt_of_a_snapshot(snapshot: tuple[str, ...]) -> None:
    listed = run("tasks", *snapshot)
    assert listed.exit_code == 0, listed.output
    assert "synth/coin_walk" in listed.output
    assert "original/breakout" in listed.output
    assert "builtin/" not in listed.output
    assert run("prompt", "synth/coin_walk", *snapshot).output.count("Play coin_walk.") == 1
    after = run("tasks")  # the choice was for one command
    assert "synth/" not in after.output
    assert layout.current() is None


def test_choosing_by_the_environment(snapshot: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHTGYM_SNAPSHOT", snapshot[1])
    assert "not the published task file" in run("tasks").output
    monkeypatch.setenv("WEIGHTGYM_SNAPSHOT_SHA256", snapshot[3])
    assert "synth/coin_walk" in run("tasks").output


@pytest.mark.parametrize(
    ("options", "profile"),
    [
        ([], "wpb-v1"),
        (["--scorer", "native", "--profile", "wpb-v1-e20"], "wpb-v1-e20"),
        (["--scorer", "snapshot"], "wpb-published"),
        (["--scorer", "snapshot", "--profile", "wpb-v1-e20"], "wpb-published-e20"),
        (["--profile", "wpb-published-e20"], "wpb-published-e20"),
    ],
)
def test_a_file_is_scored(snapshot: tuple[str, ...], tmp_path: Path, options: list[str], profile: str) -> None:
    tasks = ["synth/coin_walk", "synth/leak_plug", "original/breakout"]
    rows = write_rows(tmp_path / "a.jsonl", [(task, ANSWER) for task in tasks])
    result = run("score", rows, *snapshot, *options)
    assert result.exit_code == 0, result.output
    scores = [json.loads(line)["score"] for line in (tmp_path / "a.scored.jsonl").read_text().splitlines()]
    assert [(score["status"], score["profile"]) for score in scores] == [("ok", profile)] * 3
    assert all(score["reward"] > 0 for score in scores)


def test_without_a_sandbox_foreign_code_needs_unsafe(
    snapshot: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "find_bwrap", lambda: None)
    support.find_sandbox.cache_clear()
    rows = write_rows(tmp_path / "a.jsonl", [("synth/coin_walk", ANSWER)])
    try:
        for scorer in ("native", "snapshot"):
            result = run("score", rows, *snapshot, "--scorer", scorer)
            assert result.exit_code == 1
            assert "no bwrap found" in result.output
            assert "--unsafe runs it without a sandbox" in result.output
            assert not (tmp_path / "a.scored.jsonl").exists()
        assert "--unsafe" in run("wpb", "parity", rows, *snapshot).output
        result = run("score", rows, *snapshot, "--scorer", "snapshot", "--profile", "wpb-v1-e5", "--unsafe")
        assert result.exit_code == 0, result.output
    finally:
        support.find_sandbox.cache_clear()
    assert run("score", rows, "--scorer", "snapshot").exit_code == 2


def test_a_scorer_and_a_profile_that_exclude_each_other(snapshot: tuple[str, ...], tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a.jsonl", [("synth/coin_walk", ANSWER)])
    result = run("score", rows, *snapshot, "--scorer", "native", "--profile", "wpb-published")
    assert result.exit_code == 2
    assert "leave one out" in result.output


def test_parity_tells_every_difference(snapshot: tuple[str, ...], tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a.jsonl", [("synth/coin_walk", ANSWER), ("original/breakout", ANSWER)])
    result = run("wpb", "parity", rows, *snapshot, "--episodes", "20")
    assert result.exit_code == 0, result.output
    assert "2 of 2 rows agree over 20 episodes" in result.output
    assert run("wpb", "parity", rows).exit_code == 2

    folder = Path(snapshot[1])  # a scorer that counts differently, and one answer that only ours can read
    (folder / "runtime" / "verify.py").write_text(VERIFY.replace("return total / episodes", "return total / 19"))
    write_digests(folder)
    write_rows(rows, [("synth/coin_walk", ANSWER), ("synth/leak_plug", "```edits\nb1[0:2] = 1\n```")])
    layout.load.cache_clear()
    result = run("wpb", "parity", rows, *snapshot, "--episodes", "20")
    assert result.exit_code == 1
    assert "0 of 2 rows agree" in result.output
    assert result.output.count("synth/coin_walk") == 2
    assert "published_invalid" in result.output


def test_commands_that_can_t_use_a_snapshot_say_so(snapshot: tuple[str, ...], tmp_path: Path) -> None:
    assert run("tasks", *snapshot[2:]).exit_code == 2
    (tmp_path / "empty.jsonl").write_text("")
    assert "no rows to compare" in run("wpb", "parity", tmp_path / "empty.jsonl", *snapshot).output
    (tmp_path / "a.md").write_text(ANSWER)
    layout.choose(Path(snapshot[1]), tasks_sha256=snapshot[3])
    try:
        solved = run("wpb", "solve", "synth/coin_walk", "-o", tmp_path / "b.md")
        assert "can be scored, not solved" in solved.output
        assert "can be scored, not shown" in run("wpb", "play", tmp_path / "a.md", "--task", "synth/coin_walk").output
    finally:
        layout.choose(None)


def test_a_resumed_file_is_not_mixed_from_two_datasets(snapshot: tuple[str, ...], tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a.jsonl", [("synth/coin_walk", ANSWER)])
    assert run("score", rows, *snapshot).exit_code == 0
    before = (tmp_path / "a.scored.jsonl").read_text()
    assert run("score", rows, *snapshot, "--resume").exit_code == 0
    assert (tmp_path / "a.scored.jsonl").read_text() == before  # kept
    other = tmp_path / "other"
    sha = write_snapshot(other, {"coin_walk": COIN.replace("SCORE_CAP = 20", "SCORE_CAP = 10"), "leak_plug": LEAK})
    done = run("score", rows, "--snapshot", other, "--snapshot-sha256", sha, "--resume")
    assert done.exit_code == 0, done.output
    (score,) = [json.loads(line)["score"] for line in (tmp_path / "a.scored.jsonl").read_text().splitlines()]
    assert score["metrics"]["cap"] == 10


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub needs of huggingface.co: one dataset with one commit."""

    def __init__(self, *args: object, folder: Path, **kwargs: object) -> None:
        self.folder = folder
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        files = {str(file.relative_to(self.folder)): file for file in self.folder.rglob("*") if file.is_file()}
        listings = {
            f"/api/datasets/us/data/revision/{COMMIT}": {
                "id": "us/data",
                "sha": COMMIT,
                "siblings": [{"rfilename": name} for name in files],
            },
            f"/api/datasets/us/data/tree/{COMMIT}": [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": digest(file)[:40]}
                for name, file in files.items()
            ],
        }
        if path in listings:
            self._answer(json.dumps(listings[path]).encode(), "application/json", "0")
            return
        prefix = f"/datasets/us/data/resolve/{COMMIT}/"
        file = self.folder / path.removeprefix(prefix)
        if path.startswith(prefix) and file.is_file():
            self._answer(file.read_bytes(), "application/octet-stream", digest(file))
            return
        self.send_response(404)
        self.send_header("X-Error-Code", "RevisionNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, body: bytes, kind: str, etag: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture
def hub(snapshot: tuple[str, ...], tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server of the snapshot; gives the environment in which huggingface_hub finds it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, folder=Path(snapshot[1])))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    yield os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
    server.shutdown()
    server.server_close()


def fetch(environment: dict[str, str], *args: str | Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: huggingface_hub reads its settings once."""
    arguments = ["wpb", "fetch", "--repository", "us/data", *map(str, args)]
    code = "from weightgym.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=120
    )


def test_fetch_downloads_and_checks(snapshot: tuple[str, ...], hub: dict[str, str], tmp_path: Path) -> None:
    got = tmp_path / "got"
    done = fetch(hub, "--revision", COMMIT, got, "--snapshot-sha256", snapshot[3])
    assert done.returncode == 0, done.stderr
    assert "2 training games and 1 originals, all digests match" in done.stdout
    assert layout.load(got, snapshot[3]).rows.keys() == layout.load(Path(snapshot[1]), snapshot[3]).rows.keys()

    refused = fetch(hub, "--revision", COMMIT, got)  # not the published one
    assert refused.returncode == 1
    assert "is not the published task file" in refused.stderr

    offline = fetch(hub | {"HF_ENDPOINT": "http://127.0.0.1:9"}, "--revision", "cd" * 20, got)
    assert offline.returncode == 1  # what is there is not passed off as that revision
    assert "can't download" in offline.stderr

    unknown = fetch(hub, "--revision", "cd" * 20, tmp_path / "other")
    assert unknown.returncode == 1
    assert "can't download dataset 'us/data' at revision 'cdcd" in unknown.stderr
    assert "Traceback" not in unknown.stderr


def test_fetch_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    result = run("wpb", "fetch", "--revision", COMMIT, tmp_path)
    assert result.exit_code == 1
    assert "pip install 'weightgym[hf]'" in result.output
