"""Variants of built-in games: the name alone makes the game, its text, its cap and its task."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from weightgym.cli.main import cli
from weightgym.envs.weight_program.env import WeightProgramEnv
from weightgym.envs.weight_program.references import reference_answer
from weightgym.envs.weight_program.tasks import SOURCE, WeightProgramTasks, variant_ids
from weightgym.rewards.contracts import TaskError
from weightgym.rewards.weight_program import baselines, builtin, variants
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.scorer import score

GAME = "wall_rally"
VARY = builtin.module(GAME).VARY
NAME = variants.name(GAME, {key: values[0] for key, values in VARY.items()} | {"CAP": 33})


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="weightgym")


def test_only_the_named_lines_differ() -> None:
    before, after = builtin.source(GAME).splitlines(), builtin.source(NAME).splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    wanted = [f"{key} = {values[0]!r}" for key, values in VARY.items()] + ["CAP = 33"]
    assert sorted(new for _, new in changed) == sorted(wanted)
    assert builtin.module(NAME).CAP == 33
    assert builtin.module(GAME).CAP != 33  # the game itself is as it was


def test_a_variant_is_a_task_of_the_training_split() -> None:
    task = SOURCE.task(f"variant/{NAME}")
    assert (task.split, task.data["cap"], task.data["source"]) == ("train", 33, "variant")
    assert task.hash != SOURCE.task(f"builtin/{GAME}").hash
    text = task.prompt[0].content
    assert "CAP = 33" in text
    assert builtin.source(NAME).strip() in text
    assert "clipped to 0...33, divided by 33" in text
    assert re.search(r"plays Wall Rally with \w+ = ", text)
    result, base = (
        score(one, reference_answer(GAME), profile="wpb-v1-e20") for one in (task, SOURCE.task(f"builtin/{GAME}"))
    )
    assert (result.status, result.metrics["cap"]) == ("ok", 33)
    assert result.metrics["raw_score"] != base.metrics["raw_score"]


KEY, LAST = sorted(VARY)[0], sorted(VARY)[-1]


@pytest.mark.parametrize(
    "name",
    [
        f"{GAME}@",
        f"{GAME}@CAP=5",  # the same game
        f"{GAME}@CAP=0",
        f"{GAME}@CAP=-5",
        f"{GAME}@CAP=5.0",
        f"{GAME}@CAP=",
        f"{GAME}@STATE=9",
        f"{GAME}@{KEY}=987654",
        f"{GAME}@{KEY}={VARY[KEY][0]},{KEY}={VARY[KEY][0]}",
        f"{GAME}@{LAST}={VARY[LAST][0]},CAP=5",  # not sorted
        f"{GAME}@{KEY}= {VARY[KEY][0]}",
        f"{GAME}@{KEY}=__import__('os')",
        f"{GAME}@CAP=5@CAP=6",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(TaskError, match=f"unknown variant.*{KEY} may be"):
        SOURCE.task(f"variant/{name}")


@given(st.text(max_size=30))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(TaskError):
        SOURCE.task(f"variant/{GAME}@{text}")


def test_a_builtin_id_is_no_variant() -> None:
    for id in (f"builtin/{NAME}", f"variant/{GAME}", f"original/{NAME}"):
        with pytest.raises(TaskError, match="unknown task"):
            SOURCE.task(id)


def test_the_stored_variants_are_extra_training_tasks() -> None:
    more = WeightProgramTasks(with_variants=True)
    assert set(more.ids("train")) - set(SOURCE.ids("train")) == set(variant_ids())
    assert more.ids("test") == SOURCE.ids("test")
    assert len(set(variant_ids())) == len(variant_ids())
    assert {variants.split(id.split("/")[1])[0] for id in variant_ids()} == set(GAMES)
    env = WeightProgramEnv(variants=True, profile="wpb-v1-e5")
    drawn = {env.reset(seed=seed)[1]["task"].split("/")[0] for seed in range(40)}
    assert drawn == {"builtin", "variant"}


@pytest.mark.parametrize("id", variant_ids())
def test_stored_variants_give_little_to_chance(id: str) -> None:
    name = str(SOURCE.task(id).data["game"])
    cap = builtin.module(name).CAP
    assert baselines.uniform(name) < baselines.MOST_UNIFORM * cap
    assert baselines.best_constant(name) < baselines.MOST_CONSTANT * cap


def test_vary_adds_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "variants.txt"
    command = ("wpb", "vary", "deep_drill", "-o", out, "--generations", "20")  # a game that is learnt quickly
    first = run(*command)
    assert first.exit_code == 0, first.output
    one = out.read_text()
    assert len(one.splitlines()) == 1
    again = run(*command)
    assert again.exit_code == 0
    assert out.read_text() == one
    more = run(*command, "--per-game", "2")
    assert more.exit_code == 0
    assert out.read_text().startswith(one)
    names = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert len(set(names)) == 2
    for name in names:
        assert SOURCE.task(f"variant/{name}", prompt=False).data["cap"] == builtin.module(name).CAP
    assert "no built-in game 'wall_rallye'" in run("wpb", "vary", "wall_rallye", "-o", out).output


def test_what_gives_too_much_to_chance_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "MOST_UNIFORM", 0.0)
    out = tmp_path / "variants.txt"
    monkeypatch.setattr("weightgym.trainers.vary.candidates", lambda game, seed: [f"{GAME}@{KEY}={VARY[KEY][0]}"])
    result = run("wpb", "vary", GAME, "-o", out, "--generations", "2")
    assert "left out, uniform play scores" in result.output
    assert f"{GAME}: only 0 variants" in result.output
    text = out.read_text()
    assert text.startswith(f"# {GAME}@{KEY}={VARY[KEY][0]}: uniform play scores")
    out.write_text(text + f"{GAME}@CAP=")  # killed while it wrote
    again = run("wpb", "vary", GAME, "-o", out, "--generations", "2")
    assert "left out" not in again.output  # it is not solved again
    assert out.read_text() == text
