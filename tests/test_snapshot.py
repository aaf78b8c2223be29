"""The published dataset's layout, read from a snapshot of our own making: checked, graded, compared."""

from __future__ import annotations

import json
import os
import py_compile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshot_fixture import COIN, SYSTEM, digest, write_digests, write_snapshot

from weightgym.envs.weight_program.env import WeightProgramEnv
from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.contracts import Score, Task, TaskError
from weightgym.rewards.weight_program import opaque, reference
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.network import tensors
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.scorer import score
from weightgym.rewards.weight_program.snapshot import layout, process

ANSWER = "```edits\nb3[3] = 1\nW1[5, 3] = 0.7\nW2[3, 2] = 1.5\nW3[2, 5] = 2\n```"
IDS = ("synth/coin_walk", "original/breakout", "synth/leak_plug")


@pytest.fixture
def no_snapshot(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("WEIGHTGYM_SNAPSHOT", "WEIGHTGYM_SNAPSHOT_SHA256", "WEIGHTGYM_UNSAFE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def snapshot(tmp_path: Path, no_snapshot: None) -> Iterator[Path]:
    """A chosen snapshot."""
    layout.choose(tmp_path, tasks_sha256=write_snapshot(tmp_path))
    yield tmp_path
    layout.choose(None)


def test_tasks_have_all_fields(snapshot: Path) -> None:
    assert SOURCE.ids("train") == ("synth/coin_walk", "synth/leak_plug")
    assert SOURCE.ids("test") == ("original/breakout",)
    rows = [json.loads(line) for line in (snapshot / "runtime" / "tasks.jsonl").read_text().splitlines()]
    for index, (id, row) in enumerate(zip(IDS, rows, strict=True)):
        task = SOURCE.task(id)
        assert (task.split, task.system_prompt) == (row["split"], SYSTEM)
        assert [(message.role, message.content) for message in task.prompt] == [("user", row["prompt"])]
        for name in ("name", "game", "source", "episodes"):
            assert task.data[name] == row[name]
        assert task.data["task_id"] == index
        assert task.data["upstream_source_url"] == f"https://example.org/{row['game']}.py"
        assert task.data["upstream_revision"] == "4" * 40
        assert task.data["native_source_url"] is None
        assert task.data["family"] in ("atari_synthetic", "minatar_original")


def test_built_in_games_can_still_be_asked_for(snapshot: Path) -> None:
    assert SOURCE.task("builtin/wall_rally").split == "train"


def test_the_environment_trains_on_the_snapshot(snapshot: Path) -> None:
    env = WeightProgramEnv(split="train", profile="wpb-v1-e5")
    prompt, info = env.reset(seed=1)
    assert info["task"] in ("synth/coin_walk", "synth/leak_plug")
    assert prompt.startswith("Play ")
    _, reward, terminated, _, info = env.step(ANSWER)
    assert terminated
    assert reward == info["score"].reward


@pytest.mark.parametrize("file", ["tasks.jsonl", "verify.py", "minatar_synth/games/leak_plug.py"])
def test_a_changed_file_is_named(snapshot: Path, file: str) -> None:
    path = snapshot / "runtime" / file
    path.write_bytes(path.read_bytes() + b"\n")
    layout.load.cache_clear()
    with pytest.raises(TaskError, match=f"{file} is not the published") as error:
        SOURCE.ids("train")
    assert digest(path) in str(error.value)


def test_files_that_changed_places_are_found(snapshot: Path) -> None:
    games = snapshot / "runtime" / "minatar_synth" / "games"
    (games / "coin_walk.py").rename(games / "x.py")
    (games / "leak_plug.py").rename(games / "coin_walk.py")
    (games / "x.py").rename(games / "leak_plug.py")
    layout.load.cache_clear()
    with pytest.raises(TaskError, match=r"coin_walk\.py is not the published file"):
        SOURCE.ids("train")


@pytest.mark.parametrize("file", ["runtime/tasks.jsonl", "runtime/source.json", "data/test.jsonl"])
def test_a_missing_file_is_named_with_the_way_to_get_it(snapshot: Path, file: str) -> None:
    (snapshot / file).unlink()
    layout.load.cache_clear()
    with pytest.raises(TaskError, match=f"lacks {file}: fetch it with `weightgym wpb fetch"):
        SOURCE.ids("train")


def test_every_missing_game_is_named(snapshot: Path) -> None:
    for game in (snapshot / "runtime" / "minatar_synth" / "games").iterdir():
        game.unlink()
    layout.load.cache_clear()
    with pytest.raises(TaskError, match=r"games/coin_walk\.py, runtime/minatar_synth/games/leak_plug\.py"):
        SOURCE.ids("train")


def test_splits_must_agree_with_the_frozen_rows(snapshot: Path) -> None:
    path = snapshot / "data" / "train.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"task_id": 2', '"task_id": 1'))
    layout.load.cache_clear()
    with pytest.raises(TaskError, match=r"train\.jsonl: the row of synth/leak_plug is missing or differs"):
        SOURCE.ids("train")
    path.write_text(text + text.splitlines()[0].replace("coin_walk", "other") + "\n")
    layout.load.cache_clear()
    with pytest.raises(TaskError, match="synth/other is not in"):
        SOURCE.ids("train")


def test_another_dataset_must_be_named_by_its_digest(tmp_path: Path, no_snapshot: None) -> None:
    write_snapshot(tmp_path)
    with pytest.raises(TaskError, match=f"not the published task file.*want {layout.PUBLISHED_TASKS}"):
        layout.choose(tmp_path)
    assert layout.current() is None
    with pytest.raises(TaskError, match="there is no snapshot folder"):
        layout.choose(tmp_path / "nowhere")
    with pytest.raises(TaskError, match="choose a copy of it with --snapshot DIR"):
        SOURCE.task("synth/coin_walk")


def test_a_task_of_another_snapshot_is_refused(snapshot: Path) -> None:
    task = SOURCE.task("synth/coin_walk")
    other = Task(**task.model_dump(exclude={"hash", "data"}), data=task.data | {"snapshot": "0" * 64})
    with pytest.raises(TaskError, match="the chosen one is"):
        score(other, ANSWER)
    layout.choose(None)
    with pytest.raises(TaskError, match="needs the published dataset"):
        score(task, ANSWER)
    with pytest.raises(TaskError, match="needs the published dataset"):
        score(SOURCE.task("original/breakout"), ANSWER, profile="wpb-published")


def play_slowly(make: Callable[[], Any], answer: str, episodes: int) -> tuple[float, float]:
    """Mean score and length of a MinAtar-like game, step by step in Python."""
    wide = {name: tensor.astype(np.float64) for name, tensor in tensors(parse_edits(answer).weights).items()}
    total, steps = 0.0, 0
    for index in range(episodes):
        game, last, over = make(), 0, False
        game.random = np.random.RandomState(1729 + index)
        game.reset()
        actions = np.random.RandomState(7919 + index)
        while not over:
            action = reference.sample(reference.softmax_sums(wide, game.state()), actions.random_sample())
            last = last if game.random.random_sample() < 0.1 else action
            reward, over = game.act(last)
            total += reward
            steps += 1
    return total / episodes, steps / episodes


@pytest.mark.parametrize("game", ["coin_walk", "leak_plug"])
def test_native_scores_are_the_slow_ones(snapshot: Path, game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (snapshot / "runtime" / "minatar_synth" / "games" / f"{game}.py").read_text()
    namespace: dict[str, Any] = {}
    exec(text, namespace)  # our own fixture
    wanted = play_slowly(namespace["Env"], ANSWER, 40)
    for threads in (1, 3):
        result = score(SOURCE.task(f"synth/{game}"), ANSWER, profile="wpb-v1-e40", threads=threads)
        assert (result.metrics["raw_score"], result.metrics["mean_length"]) == wanted
        assert result.reward == wanted[0] / namespace["SCORE_CAP"]
        assert result.metrics["cap"] == namespace["SCORE_CAP"]


def test_a_state_in_another_memory_order_and_a_list_are_read(snapshot: Path) -> None:
    before = score(SOURCE.task("synth/coin_walk"), ANSWER, profile="wpb-v1-e20")
    process.close_all()
    rewritten(snapshot, "coin_walk", "return board", "return np.asfortranarray(board)")
    task = rewritten(snapshot, "coin_walk", "return reward, self.clock == 30", "return [reward, self.clock == 30]")
    assert score(task, ANSWER, profile="wpb-v1-e20").metrics == before.metrics


def without_seconds(result: Score) -> dict[str, Any]:
    return result.model_dump(exclude={"seconds"})


def test_published_scores(snapshot: Path) -> None:
    for id in IDS:
        task = SOURCE.task(id)
        ours, theirs = score(task, ANSWER, profile="wpb-v1-e30"), score(task, ANSWER, profile="wpb-published-e30")
        assert theirs.status == "ok"
        assert theirs.metrics == ours.metrics
        assert theirs.reward == ours.reward
        assert theirs.info == {"numpy": np.__version__}
        assert theirs.profile == "wpb-published-e30"
        again = score(task, ANSWER, profile="wpb-published-e30")
        assert without_seconds(again) == without_seconds(theirs)


def test_an_answer_that_the_published_scorer_refuses_gets_the_floor(snapshot: Path) -> None:
    for answer in ("nothing", "```edits\nW9[0] = 1\n```", "```edits\nb1 = __import__('os')\n```"):
        result = score(SOURCE.task("synth/coin_walk"), answer, profile="wpb-published-e5")
        assert (result.status, result.reward, result.code) == ("invalid", 0.0, "published_invalid")


def rewritten(folder: Path, game: str, old: str, new: str) -> Task:
    """The task after a change of the game's file, with digests to match."""
    path = folder / "runtime" / "minatar_synth" / "games" / f"{game}.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    write_digests(folder)
    layout.load.cache_clear()
    return SOURCE.task(f"synth/{game}")


@pytest.mark.parametrize("rules", ["wpb-v1-e5", "wpb-published-e5"])
@pytest.mark.parametrize(
    ("new", "why"),
    [("1 // (self.clock - 9)", "ZeroDivisionError"), ("__import__('os')._exit(7)", "ended: the phase ended too early")],
)
def test_a_game_that_fails_or_kills_its_process_is_our_error(snapshot: Path, rules: str, new: str, why: str) -> None:
    task = rewritten(snapshot, "coin_walk", "reward = 0", f"reward = {new}")
    result = score(task, ANSWER, profile=rules)
    assert (result.status, result.reward) == ("error", None)
    assert why in result.reason
    assert score(SOURCE.task("synth/leak_plug"), ANSWER, profile=rules).status == "ok"


def test_a_request_that_sleeps_too_long_is_ended(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = rewritten(snapshot, "coin_walk", "reward = 0", "import time; time.sleep(600)")
    monkeypatch.setattr(process, "WALL_SECONDS", 0.5)
    result = score(task, ANSWER, profile="wpb-v1-e5")
    assert (result.status, result.reward) == ("error", None)
    assert "wall_limit" in result.reason


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("return board", "return board[:5]", "10x10x6"),
        ("return board", "return board.astype(float)", "bool or one-byte"),
        ("return board", "return board.transpose(2, 0, 1)", "10x10x6"),
        ("return board", "return board.reshape(-1)", "10x10x6"),
        ("return board", "return bytes(600)", "10x10x6"),
        ("SCORE_CAP = 20", "SCORE_CAP = -5", "a cap of -5.0"),
        ("SCORE_CAP = 20", "SCORE_CAP = 0", "a cap of 0.0"),
        ("SCORE_CAP = 20", "SCORE_CAP = float('inf')", "the cap is inf"),
        ("reward, self.coin = 1,", "reward, self.coin = 1e308,", "the score is inf"),
        ("return reward, self.clock == 30", "return reward", "(reward, terminal)"),
        ("return reward, self.clock == 30", 'return float("nan"), False', "reward is finite"),
        ("class Env", "class Game", "no class Env"),
        ("def state", "def seen", "an Env without state"),
    ],
)
def test_a_game_of_another_form_is_told(snapshot: Path, old: str, new: str, why: str) -> None:
    result = score(rewritten(snapshot, "coin_walk", old, new), ANSWER, profile="wpb-v1-e5")
    assert (result.status, result.reward) == ("error", None)
    assert why in result.reason


def test_the_process_sees_no_secrets_and_ignores_bytecode(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode beside a source has no digest: a stale or planted one must not run."""
    monkeypatch.setenv("HF_TOKEN", "secret")
    prying = 'import os\nSCORE_CAP = 20 + len(os.environ.get("HF_TOKEN", ""))'
    task = rewritten(snapshot, "coin_walk", "SCORE_CAP = 20", prying)
    path = snapshot / "runtime" / "minatar_synth" / "games" / "coin_walk.py"
    honest, when = path.read_text(), path.stat()
    path.write_text(honest.replace("SCORE_CAP = 20", "SCORE_CAP = 99"))
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    py_compile.compile(str(path))
    path.write_text(honest)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert score(task, ANSWER, profile="wpb-v1-e5").metrics["cap"] == 20


@pytest.mark.parametrize("game", ["asterix", "breakout", "freeway", "seaquest", "space_invaders"])
def test_opaque_minatar_is_the_engine_s(game: str) -> None:
    """The same bits through MinAtar's own classes, with and without reused generators."""
    from weightgym.rewards.weight_program import _engine, minatar
    from weightgym.rewards.weight_program.channels import channel_masks
    from weightgym.rewards.weight_program.simulate import simulate

    minatar.environment(game, sticky=0.1)  # imports it
    module = import_module(f"minatar.environments.{game}")
    weights = np.random.default_rng(3).normal(scale=0.3, size=20_486).astype(np.float32)
    rules = profile("wpb-v1-e2" if game == "freeway" else "wpb-v1-e20")
    wanted = simulate(game, weights, rules, backend="engine")

    def make() -> Any:
        return module.Env(ramping=False)

    assert opaque.may_pool(make)
    with opaque.pooled(make) as begin:
        pooled = opaque.play(_engine, begin, channel_masks(game), weights, rules, first=0, count=rules.episodes)
    assert np.random.RandomState is type(np.random.mtrand._rand)  # put back
    plain = opaque.play(_engine, opaque.start(make), channel_masks(game), weights, rules, first=0, count=rules.episodes)
    for scores, lengths in (pooled, plain):
        assert scores.tolist() == wanted.scores.tolist()
        assert lengths.tolist() == wanted.lengths.tolist()


def test_a_generator_that_a_game_keeps_is_not_used_again() -> None:
    namespace: dict[str, Any] = {}
    exec(COIN, namespace)  # our own fixture
    begin = opaque.start(namespace["Env"])
    kept = begin(1)[1]
    address = id(begin(2)[1])
    assert address != id(kept)
    again = begin(3)[1]
    assert id(again) == address
    assert (kept.random_sample(), again.random_sample()) == (_after_reset(1), _after_reset(3))


def _after_reset(seed: int) -> float:
    """What a coin game's generator gives after its reset."""
    random = np.random.RandomState(seed)
    random.randint(10)
    return random.random_sample()


def test_the_pool_is_only_for_games_that_play_the_same_with_it() -> None:
    def game(text: str) -> opaque.Make:
        namespace: dict[str, Any] = {}
        exec(text, namespace)  # our own fixture
        return namespace["Env"]  # type: ignore[no-any-return]

    assert opaque.may_pool(game(COIN))
    strict = "if type(self.random) is not np.random.RandomState: raise TypeError"
    assert not opaque.may_pool(game(COIN.replace("self.me, self", f"{strict}\n        self.me, self")))
    keeping = "Env.kept = getattr(Env, 'kept', None) or np.random.RandomState(1)"
    kept = COIN.replace("self.random = np", f"{keeping}\n        self.random = np")
    assert not opaque.may_pool(game(kept.replace("self.clock = 5, 0", "self.clock = Env.kept.randint(10), 0")))
    assert np.random.RandomState is type(np.random.mtrand._rand)
