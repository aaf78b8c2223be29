"""``wpb play`` shows the episode that the scorer plays; ``wpb selftest`` tells a good engine from a bad one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from weightgym.cli.main import cli
from weightgym.envs.weight_program import pictures
from weightgym.rewards.weight_program import selftest
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.network import zero_weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import EpisodeTrace, record_episode, simulate

GOOD = Path(__file__).parents[1] / "examples" / "answers" / "breakout.md"
ALWAYS_LEFT = "I hug the wall.\n\n```edits\nb3[1] = 50  # left\n```\n"
#: A terminal of 80 columns that shows colours, as rich finds out.
TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "80", "NO_COLOR": None, "TTY_INTERACTIVE": None}
FILE = {"FORCE_COLOR": None, "COLUMNS": "100", "TTY_COMPATIBLE": None}


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.txt"
    path.write_text(ALWAYS_LEFT)
    return path


def play(*arguments: object, stdin: str | bytes | None = None, env: dict[str, str | None] | None = None) -> Result:
    words = ["play", *map(str, arguments)]
    if "--task" not in words:
        words += ["--task", "original/breakout"]
    return CliRunner().invoke(cli, ["wpb", *words], prog_name="weightgym", input=stdin, env=env or FILE)


def trace_of(text: str, episode: int = 0, game: str = "breakout") -> EpisodeTrace:
    return record_episode(game, parse_edits(text).weights, profile("wpb-v1"), episode)


def said(result: Result) -> str:
    """The output as one line, however it was wrapped."""
    return " ".join(result.output.split())


# What is shown


@pytest.mark.parametrize("episode", [0, 1, 999])
def test_the_episode_is_the_scorers(answer: Path, episode: int) -> None:
    result = play(answer, "--episode", episode)
    trace = trace_of(ALWAYS_LEFT, episode)
    steps = len(trace.actions)
    assert result.exit_code == 0, result.output
    last_line = result.output.splitlines()[-1]
    assert last_line == (
        f"original/breakout, episode {episode} of wpb-v1: score {trace.rewards.sum()} in {steps} steps; the game ended"
    )
    assert f"step {steps}, score {trace.rewards.sum()}" in result.output
    assert "\x1b" not in result.output  # no colours in a file


def test_scores_add_up_to_the_profiles_scores() -> None:
    weights = parse_edits(ALWAYS_LEFT).weights
    episodes = simulate("breakout", weights, profile("wpb-v1-e20"))
    traces = [trace_of(ALWAYS_LEFT, episode) for episode in range(20)]
    assert [int(trace.rewards.sum()) for trace in traces] == episodes.scores.tolist()
    assert [len(trace.actions) for trace in traces] == episodes.lengths.tolist()


@pytest.mark.parametrize("task", ["asterix", "breakout", "freeway", "seaquest", "space_invaders"])
def test_every_original_game_can_be_shown(answer: Path, task: str) -> None:
    result = play(answer, "--task", f"original/{task}", "--steps", 5)
    assert result.exit_code == 0, result.output
    assert "step 5, score" in result.output


def test_an_episode_that_never_ends_says_so(tmp_path: Path) -> None:
    (tmp_path / "idle.txt").write_text("```edits\nb3[0] = 50\n```")
    result = play(tmp_path / "idle.txt", "--task", "original/seaquest", "--steps", 1)
    assert "in 10,000 steps; cut at the limit of 10,000 actions" in said(result)


def test_stdin_is_read_and_two_runs_are_equal(answer: Path) -> None:
    from_file = play(answer)
    from_stdin = play("-", stdin=ALWAYS_LEFT)
    assert from_file.output == from_stdin.output == play(answer).output


def test_six_frames_by_default_and_as_many_as_asked_for() -> None:
    frames = [
        play(GOOD, *flags).output.count("┌")
        for flags in ([], ["--steps", 3], ["--steps", 20, "--every", 5], ["--steps", 21, "--every", 5])
    ]
    assert frames == [6, 4, 5, 6]


@pytest.mark.parametrize(("columns", "beside"), [(30, 1), (80, 3), (150, 6)])
def test_frames_stand_side_by_side_where_the_width_permits(answer: Path, columns: int, beside: int) -> None:
    result = play(answer, "--steps", 8, env={**FILE, "COLUMNS": str(columns)})
    boxes = [line for line in result.output.splitlines() if line.startswith("┌")]
    assert [line.count("┌") for line in boxes] == [beside] * (6 // beside)
    assert all(len(line) <= columns for line in result.output.splitlines()[:-1])


def test_a_terminal_gets_an_animation(answer: Path) -> None:
    result = play(answer, "--steps", 2, "--fps", 50, env=TERMINAL)
    assert result.exit_code == 0, result.output
    assert [f"step {step}, score 0" in result.output for step in range(4)] == [True, True, True, False]
    assert "\x1b[" in result.output
    assert "projectile" in result.output
    assert "original/breakout, episode 0 of wpb-v1: score " in result.output.splitlines()[-1]


def test_a_terminal_gets_a_strip_when_it_asks_for_one(answer: Path) -> None:
    result = play(answer, "--steps", 9, "--no-animation", env=TERMINAL)
    shown = [step for step in range(10) if f"step {step}, score" in result.output]
    assert len(shown) == 6
    assert "\x1b[?25l" not in result.output  # hides the cursor: a live display


# Files


def test_a_gif_has_a_frame_for_every_step(answer: Path, tmp_path: Path) -> None:
    trace = trace_of(ALWAYS_LEFT)
    steps = len(trace.actions)
    result = play(answer, "-o", tmp_path / "x.gif", "--fps", 10)
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path / 'x.gif'} ({steps + 1} frames)" in said(result)
    assert "┌" not in result.output
    with Image.open(tmp_path / "x.gif") as image:
        assert getattr(image, "n_frames", 1) == steps + 1
        assert image.info["duration"] == 100
        for step in (0, steps // 2, steps):
            image.seek(step)
            board = np.asarray(image.convert("RGB"))[54:305, 18:269]
            np.testing.assert_array_equal(board, pictures.board_pixels(trace.observations[step]))


def test_a_png_strip(answer: Path, tmp_path: Path) -> None:
    trace = trace_of(ALWAYS_LEFT)
    result = play(answer, "-o", tmp_path / "X.PNG")
    assert result.exit_code == 0, result.output
    with Image.open(tmp_path / "X.PNG") as image:
        assert image.format == "PNG"
        assert image.size == (1632, 395)
        pixels = np.asarray(image)
    np.testing.assert_array_equal(pixels[90:341, 18:269], pictures.board_pixels(trace.observations[0]))
    np.testing.assert_array_equal(pixels[90:341, 1363:1614], pictures.board_pixels(trace.observations[-1]))


@pytest.mark.parametrize(("suffix", "every", "frames"), [(".gif", 4, 4), (".gif", 100, 2), (".png", 1, 11)])
def test_every_kth_step_goes_into_the_file(tmp_path: Path, suffix: str, every: int, frames: int) -> None:
    path = tmp_path / f"x{suffix}"
    result = play(GOOD, "--steps", 10, "--every", every, "-o", path, env=TERMINAL)
    assert f"({frames} frames)" in said(result), result.output
    assert path.stat().st_size > 1000


# What goes wrong


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```edits\nW1[0, 99] = 1\n```", "W1"),
        ("```edits\nW1[0, 0] = 1 + 1\n```", "line"),
        ("I could not do it.", "edits"),
        ("```edits\n```", "no_edits"),
        ("", "edits"),
    ],
)
def test_an_invalid_answer_is_reported_with_its_reason(text: str, reason: str) -> None:
    result = play("-", stdin=text)
    assert result.exit_code == 1
    assert result.output.startswith("Error: invalid answer: ")
    assert reason in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--episode", 1000], 2, "1000 is not in the range 0<=x<=999"),
        (["--episode", -1], 2, "-1 is not in the range 0<=x<=999"),
        (["--fps", 0], 2, "0 is not in the range"),
        (["--fps", "nan"], 2, "'nan' is not a valid integer"),
        (["--steps", 0], 2, "0 is not in the range x>=1"),
        (["--every", 0], 2, "0 is not in the range x>=1"),
        (["--task", "original/brekout"], 1, "did you mean 'original/breakout'?"),
        (["-o", "x.mp4"], 2, "'x.mp4' ends in neither .gif nor .png"),
        (["-o", "gif"], 2, "'gif' ends in neither .gif nor .png"),
        (["-o", "no/such/folder/x.gif"], 2, "there is no folder 'no/such/folder'"),
    ],
)
def test_bad_flags_are_named(answer: Path, flags: list[object], code: int, message: str) -> None:
    result = play(answer, *flags)
    assert result.exit_code == code, result.output
    assert message in said(result)
    assert "Traceback" not in result.output


def test_a_missing_file_and_one_that_is_not_text(tmp_path: Path) -> None:
    assert "No such file" in play(tmp_path / "none.txt").output
    result = play("-", stdin=b"```edits\nb3[0] = 1\n```\xff")
    assert result.exit_code == 1
    assert "is not UTF-8 text" in said(result)


@pytest.mark.parametrize(("suffix", "most"), [(".gif", "2,000"), (".png", "240")])
def test_too_many_frames_are_refused_before_anything_is_written(tmp_path: Path, suffix: str, most: str) -> None:
    (tmp_path / "idle.txt").write_text("```edits\nb3[0] = 50\n```")
    path = tmp_path / f"x{suffix}"
    result = play(tmp_path / "idle.txt", "--task", "original/seaquest", "-o", path, "--every", 1)
    assert result.exit_code == 1
    assert f"10,001 frames are too many for a {suffix} file, which takes {most}: give --steps" in said(result)
    assert not path.exists()


def test_without_pillow_one_line_says_what_to_install(
    answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    result = play(answer, "-o", tmp_path / "x.gif")
    assert result.exit_code == 1
    assert result.output == "Error: pictures need Pillow: pip install 'weightgym[games]'\n"
    assert play(answer).exit_code == 0  # text does without


# The sample answer


def test_the_sample_answer_plays_well() -> None:
    weights = parse_edits(GOOD.read_text()).weights
    scores = simulate("breakout", weights, profile("wpb-v1-e100")).scores
    idle = simulate("breakout", zero_weights(), profile("wpb-v1-e100")).scores
    assert idle.mean() < 1
    assert scores.mean() > 300


# The self-test


def selftest_result(*flags: str) -> Result:
    return CliRunner().invoke(cli, ["wpb", "selftest", *flags], prog_name="weightgym", env=FILE)


def test_selftest_passes_here() -> None:
    result = selftest_result()
    assert result.exit_code == 0, result.output
    assert "tanh (baseline)" in result.output
    assert "exp (baseline)" in result.output


def test_selftest_fails_when_a_value_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [selftest.Row("tanh (good)", 12_345, 0), selftest.Row("exp (bad)", 678, 2)]
    monkeypatch.setattr(selftest, "run", lambda full, progress, *, threads: rows)
    result = selftest_result()
    assert result.exit_code == 1
    assert "12,345" in result.output
    assert "Error: 2 wrong values" in result.output


def test_selftest_full_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def run(full: bool, progress: object, *, threads: int) -> list[selftest.Row]:
        assert callable(progress)
        for share in (0.25, 1.0):
            progress(share)
        seen.append((full, threads >= 1))
        return [selftest.Row("tanh (all)", 1 << 31, 0)]

    monkeypatch.setattr(selftest, "run", run)
    result = selftest_result("--full")
    assert result.exit_code == 0, result.output
    assert seen == [(True, True)]
    assert "2,147,483,648" in result.output


def test_selftest_without_an_engine_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: object, **options: object) -> None:
        raise ImportError("no module named '_engine'")

    monkeypatch.setattr(selftest, "run", run)
    result = selftest_result()
    assert result.exit_code == 1
    assert "install a C++17 compiler and reinstall weightgym" in said(result)


def test_a_movie_of_a_long_episode_is_short_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "idle.txt").write_text("```edits\nb3[0] = 50\n```")  # 10,000 steps
    path = tmp_path / "x.gif"
    result = play(tmp_path / "idle.txt", "--task", "original/seaquest", "-o", path)
    assert result.exit_code == 0, result.output
    assert "shown: the first 200 steps (--steps); wrote" in said(result)
    assert "(201 frames)" in said(result)
    longer = play(tmp_path / "idle.txt", "--task", "original/seaquest", "-o", path, "--every", 100)
    assert "(101 frames)" in said(longer)
