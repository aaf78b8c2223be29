"""Ways to fool a snapshot: planted code, digests, rows, state that stays, requests that are broken off."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshot_fixture import COIN, LEAK, VERIFY, change, choose_again, digest, write_digests, write_snapshot

from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.contracts import Task, TaskError
from weightgym.rewards.sandbox import UNSAFE_VARIABLE, Phase
from weightgym.rewards.weight_program.scorer import score
from weightgym.rewards.weight_program.snapshot import layout, process

ANSWER = "```edits\nb3[3] = 1\nW1[5, 3] = 0.7\nW2[3, 2] = 1.5\nW3[2, 5] = 2\n```"
OTHER = "```edits\nb3[1] = 9\n```"
EVIL = "raise SystemExit('planted code ran')\n"


@pytest.fixture
def snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A chosen snapshot."""
    for name in (layout.FOLDER_VARIABLE, layout.DIGEST_VARIABLE, UNSAFE_VARIABLE):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    layout.choose(tmp_path, tasks_sha256=write_snapshot(tmp_path))
    yield tmp_path
    layout.choose(None)


def both(task_id: str = "synth/coin_walk", answer: str = ANSWER) -> list[dict[str, Any]]:
    """The metrics of the native and of the published scorer."""
    results = [score(SOURCE.task(task_id), answer, profile=name) for name in ("wpb-v1-e20", "wpb-published-e20")]
    assert [result.status for result in results] == ["ok", "ok"], results
    return [result.metrics for result in results]


@pytest.mark.parametrize(
    "place",
    [
        "verify/__init__.py",
        "minatar_synth/games/coin_walk/__init__.py",
        "selectors.py",
        "numpy.py",
        "weightgym/__init__.py",
        "minatar/__init__.py",
        f"verify{importlib.util.cache_from_source('x.py')[-18:-4]}.so",
    ],
)
def test_planted_modules_do_not_run(snapshot: Path, place: str) -> None:
    wanted = both()
    process.close_all()
    path = snapshot / "runtime" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EVIL)
    assert both() == wanted
    assert both("original/breakout")


def test_a_file_that_changes_after_the_check_does_not_run(snapshot: Path) -> None:
    path = snapshot / "runtime" / "verify.py"
    path.write_text(path.read_text() + "\n")
    result = score(SOURCE.task("synth/coin_walk"), ANSWER, profile="wpb-published-e5")
    assert (result.status, result.reward) == ("error", None)
    assert "has changed since the snapshot was checked" in result.reason


def test_helpers_that_are_not_listed_still_load(snapshot: Path) -> None:
    """The published digests cover games and scorer; packages' __init__ and helpers exist besides."""
    wanted = both()
    (snapshot / "runtime" / "minatar_synth" / "__init__.py").write_text("SIZE = 10\n")
    (snapshot / "runtime" / "board_helper.py").write_text("from minatar_synth import SIZE\n")
    change(
        snapshot,
        "minatar_synth/games/coin_walk.py",
        "import numpy as np",
        "import numpy as np\nfrom board_helper import SIZE",
    )
    assert both() == wanted


@pytest.mark.parametrize(
    "listing",
    [
        lambda d: {"files": [{"path": f"runtime/{name}", "sha256": value} for name, value in d.items()]},
        lambda d: {"files": [[name, value] for name, value in d.items()]},
        lambda d: {"files": {name: {"sha256": value, "bytes": 1} for name, value in d.items()}},
        lambda d: {name: f"sha256:{value}" for name, value in d.items()},
        lambda d: {
            "task_file_sha256": d["tasks.jsonl"],
            "scorer_sha256": d["verify.py"],
            "games": [{"game": Path(n).stem, "sha256": v} for n, v in d.items() if "games/" in n],
        },
    ],
)
def test_digests_are_read_in_any_form_and_decide(snapshot: Path, listing: Any) -> None:
    runtime = snapshot / "runtime"
    names = ["tasks.jsonl", "verify.py", "minatar_synth/games/coin_walk.py", "minatar_synth/games/leak_plug.py"]
    digests = {name: digest(runtime / name) for name in names}
    (runtime / "source.json").write_text(json.dumps(listing(digests)))
    tasks = digests["tasks.jsonl"]
    layout.choose(snapshot, tasks_sha256=tasks)
    one, two = (runtime / name for name in names[2:])
    texts = one.read_text(), two.read_text()
    one.write_text(texts[1])
    two.write_text(texts[0])
    with pytest.raises(TaskError, match=r"coin_walk\.py is not the published file"):
        layout.choose(snapshot, tasks_sha256=tasks)
    one.write_text(texts[0])
    two.write_text(texts[1])
    (runtime / "verify.py").write_text(texts[0])
    with pytest.raises(TaskError, match=r"verify\.py is not the published file"):
        layout.choose(snapshot, tasks_sha256=tasks)


@pytest.mark.parametrize("name", ["games", "verify", "tasks", "verifier"])
def test_a_game_with_the_name_of_something_else_has_its_own_digest(snapshot: Path, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    sha = write_snapshot(folder, {name: COIN, "leak_plug": LEAK})
    layout.choose(folder, tasks_sha256=sha)
    (folder / "runtime" / "minatar_synth" / "games" / f"{name}.py").write_text(LEAK)
    with pytest.raises(TaskError, match=rf"games/{name}\.py is not the published file"):
        layout.choose(folder, tasks_sha256=sha)


def test_everything_listed_by_path_is_checked(snapshot: Path) -> None:
    runtime = snapshot / "runtime"
    listing = json.loads((runtime / "source.json").read_text())
    helper = runtime / "minatar_synth" / "base.py"
    helper.write_text("x = 1\n")
    listing["helpers"] = {"runtime/minatar_synth/base.py": digest(helper)}
    (runtime / "source.json").write_text(json.dumps(listing))
    tasks = digest(runtime / "tasks.jsonl")
    layout.choose(snapshot, tasks_sha256=tasks)
    helper.write_text("x = 2\n")
    with pytest.raises(TaskError, match=r"base\.py is not the published file"):
        layout.choose(snapshot, tasks_sha256=tasks)
    helper.unlink()
    with pytest.raises(TaskError, match=r"lists runtime/minatar_synth/base\.py, which the snapshot lacks"):
        layout.choose(snapshot, tasks_sha256=tasks)


def test_a_broken_off_request_leaves_nothing_for_the_next(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of the first must not be taken for that of the second."""
    receive = Phase.receive

    def interrupted_while_it_waits(*arguments: Any) -> dict[str, Any]:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        return receive(*arguments)

    wanted = score(SOURCE.task("synth/coin_walk"), OTHER, profile="wpb-published-e20").metrics

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        monkeypatch.setattr(Phase, "receive", interrupted_while_it_waits)
        with pytest.raises(KeyboardInterrupt):
            score(SOURCE.task("synth/coin_walk"), ANSWER, profile="wpb-published")
    finally:
        monkeypatch.setattr(Phase, "receive", receive)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert score(SOURCE.task("synth/coin_walk"), OTHER, profile="wpb-published-e20").metrics == wanted


def test_state_that_a_game_keeps_does_not_depend_on_workers_or_history(snapshot: Path) -> None:
    """The class counts its steps for ever, and walks over a set of texts."""
    keeping = (
        "Env.steps = getattr(Env, 'steps', 0) + 1\n"
        "        reward = 0\n"
        "        self.coin = (self.coin + Env.steps + len(list({'b', 'a', 'c'})[0])) % 10"
    )
    change(snapshot, "minatar_synth/games/coin_walk.py", "reward = 0", keeping)
    task = SOURCE.task("synth/coin_walk")
    wanted = score(task, ANSWER, profile="wpb-v1-e600").metrics
    for threads in (2, 3):
        score(task, OTHER, profile="wpb-v1-e7")
        assert score(task, ANSWER, profile="wpb-v1-e600", threads=threads).metrics == wanted
    process.close_all()
    assert score(task, ANSWER, profile="wpb-v1-e600").metrics == wanted


def test_many_threads_ask_at_once(snapshot: Path) -> None:
    task, results = SOURCE.task("synth/coin_walk"), {}

    def ask(number: int) -> None:
        results[number] = score(task, ANSWER if number % 2 else OTHER, profile="wpb-published-e20").metrics

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(6):
        assert results[number] == score(task, ANSWER if number % 2 else OTHER, profile="wpb-published-e20").metrics


def test_a_fault_of_the_scorer_is_never_the_answer_s(snapshot: Path) -> None:
    change(snapshot, "verify.py", "block = re", "np.no_such_function\n    block = re")
    result = score(SOURCE.task("synth/coin_walk"), ANSWER, profile="wpb-published-e5")
    assert (result.status, result.reward) == ("error", None)
    assert "AttributeError" in result.reason


@pytest.mark.parametrize(
    "value", ["-" * 20_000 + "1", "(" * 5_000, "[" * 5_000, "not " * 50_000 + "1", "lambda:" * 5_000 + "0"]
)
def test_deep_answers_are_the_answer_s_fault(snapshot: Path, value: str) -> None:
    answer = f"```edits\nb1[0] = {value}\n```"
    result = score(SOURCE.task("synth/coin_walk"), answer, profile="wpb-published-e5")
    assert (result.status, result.reward) == ("invalid", 0.0)
    assert len(result.reason) < 1000


def test_huge_answers_are_refused_before_they_are_sent(snapshot: Path) -> None:
    answer = "x" * (1 << 20) + ANSWER
    result = score(SOURCE.task("synth/coin_walk"), answer, profile="wpb-published-e5")
    assert (result.status, result.reward, result.code) == ("invalid", 0.0, "answer_too_large")


@pytest.mark.parametrize("text", ["\ud800", "\u2028", "é" * 1000, "\x00", "\r\n"])
def test_any_text_reaches_the_scorer(snapshot: Path, text: str) -> None:
    assert both(answer=f"{text}\n{ANSWER}") == both()


def test_a_synthetic_game_may_have_an_original_s_name(tmp_path: Path, snapshot: Path) -> None:
    folder = tmp_path / "other"
    layout.choose(folder, tasks_sha256=write_snapshot(folder, {"breakout": COIN, "wall_rally": LEAK}))
    synth, original = both("synth/breakout"), both("original/breakout")
    assert synth[0]["cap"] == 20
    assert original[0]["cap"] == 1000


def test_only_tasks_of_the_snapshot_are_graded_by_it(tmp_path: Path, snapshot: Path) -> None:
    folder = tmp_path / "other"
    layout.choose(folder, tasks_sha256=write_snapshot(folder, {"wall_rally": LEAK}))
    with pytest.raises(TaskError, match="has no builtin/wall_rally"):
        score(SOURCE.task("builtin/wall_rally"), ANSWER, profile="wpb-published-e5")
    (folder / "runtime" / "minatar_synth" / "games" / "evil.py").write_text(EVIL)
    for game in ("evil", "wall_rally.evil", "../evil"):
        task = Task(env="weight-program", id="x", split="train", data={"source": "synth", "game": game, "cap": None})
        with pytest.raises(TaskError, match="has no synth/"):
            score(task, ANSWER)


def test_a_snapshot_that_is_chosen_again_is_loaded_again(snapshot: Path) -> None:
    before = both()[0]["cap"]
    change(snapshot, "minatar_synth/games/coin_walk.py", "SCORE_CAP = 20", "SCORE_CAP = 10")
    assert [metrics["cap"] for metrics in both()] == [10, 10]
    assert before == 20


def test_a_game_that_reads_its_input_does_not_wait(snapshot: Path) -> None:
    change(snapshot, "minatar_synth/games/coin_walk.py", "reward = 0", "reward = 0\n        input()")
    result = score(SOURCE.task("synth/coin_walk"), ANSWER, profile="wpb-v1-e5")
    assert (result.status, result.reward) == ("error", None)
    assert "EOFError" in result.reason


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"episodes": 1000', '"episodes": true', "'episodes' is missing or is no int"),
        ('"episodes": 1000', '"episodes": -1', "unexpected .*episodes -1"),
        ('"episodes": 1000', '"episodes": 1000, "x": NaN', "no strict JSON"),
        ('"episodes": 1000', '"episodes": 1000, "x": 1e999', "no strict JSON"),
        ('"episodes": 1000', '"episodes": 1000, "x": ' + "[" * 100_000, "no strict JSON"),
        ('"game": "breakout"', '"game": "pong"', "unexpected game 'pong'"),
        ('"game": "coin_walk"', '"game": "../coin_walk"', "unexpected game"),
        ('"split": "test"', '"split": "train"', "unexpected"),
        ('"game": "leak_plug"', '"game": "coin_walk"', "stands twice"),
        ("{", "\xff{", "no strict JSON"),
        ("{", "[", "no strict JSON"),
    ],
)
def test_odd_rows_are_told(snapshot: Path, old: str, new: str, why: str) -> None:
    tasks = snapshot / "runtime" / "tasks.jsonl"
    for path in (tasks, snapshot / "data" / "train.jsonl", snapshot / "data" / "test.jsonl"):
        path.write_bytes(path.read_text().replace(old, new).encode("latin-1"))
    write_digests(snapshot)
    with pytest.raises(TaskError, match=why):
        layout.choose(snapshot, tasks_sha256=digest(tasks))


def test_a_row_that_stands_twice_in_a_split_is_told(snapshot: Path) -> None:
    path = snapshot / "data" / "train.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(TaskError, match="stands twice"):
        layout.choose(snapshot, tasks_sha256=digest(snapshot / "runtime" / "tasks.jsonl"))


def test_line_separators_inside_of_texts_are_texts(snapshot: Path) -> None:
    for path in (
        snapshot / "runtime" / "tasks.jsonl",
        snapshot / "data" / "train.jsonl",
        snapshot / "data" / "test.jsonl",
    ):
        path.write_text(path.read_text().replace("Play ", "\u2028Play "))
    choose_again(snapshot)
    assert SOURCE.task("synth/coin_walk").prompt[0].content.startswith("\u2028Play coin_walk")


def test_no_process_is_left(snapshot: Path) -> None:
    before = children()
    both()
    assert children() - before
    process.close_all()
    assert children() == before


def children() -> set[int]:
    """The processes that this one has started, with theirs."""
    found, parents = set(), [os.getpid()]
    while parents:
        pid = parents.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            some = set(map(int, task.read_text().split()))
            found |= some
            parents += some
    return found


def test_the_published_numbers_are_those_of_its_own_code(snapshot: Path) -> None:
    """Against verify.py, run in this process."""
    namespace: dict[str, Any] = {"__name__": "verify_here"}
    exec(VERIFY.replace("importlib.import_module", "load"), namespace)  # our own fixture
    games: dict[str, Any] = {"coin_walk": {}, "leak_plug": {}}
    exec(COIN, games["coin_walk"])
    exec(LEAK, games["leak_plug"])
    namespace["load"] = lambda name: type("Module", (), games[name.rpartition(".")[2]])
    for game in games:
        weights, _ = namespace["apply_edits"](ANSWER)
        wanted = namespace["evaluate"](game, "synth", weights, 20)
        metrics = both(f"synth/{game}")[1]
        assert (metrics["raw_score"], metrics["mean_length"]) == wanted
    assert np.__version__
