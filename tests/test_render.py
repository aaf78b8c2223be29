"""Pictures and text show exactly what an episode's arrays hold."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops
from rich.console import Console

from weightgym.envs.weight_program import pictures, render
from weightgym.rewards.weight_program.channels import LAYOUT
from weightgym.rewards.weight_program.simulate import EpisodeTrace

EMPTY = (12, 12, 14)
TITLE = "original/breakout, episode 7"
SUBSETS = [c for size in range(7) for c in itertools.combinations(range(6), size)]


def fake_trace(length: int, *, density: float = 0.05, seed: int = 0) -> EpisodeTrace:
    rng = np.random.default_rng(seed)
    return EpisodeTrace(
        observations=rng.random((length + 1, 10, 10, 6)) < density,
        actions=rng.integers(6, size=length),
        executed=rng.integers(6, size=length),
        rewards=rng.integers(-1, 3, size=length),
        probabilities=rng.dirichlet(np.ones(6), size=length),
        terminal=True,
    )


def all_frames(trace: EpisodeTrace) -> list[render.Frame]:
    return render.frames(trace, range(len(trace.actions) + 1))


def lit(row: int, column: int, *channels: int) -> np.ndarray:
    observation = np.zeros((10, 10, 6), dtype=np.bool_)
    observation[row, column, list(channels)] = True
    return observation


def cell(pixels: np.ndarray, row: int, column: int) -> np.ndarray:
    """The 24×24 pixels of a cell, placed here by hand: one line of a pixel before each cell."""
    return pixels[1 + 25 * row : 25 + 25 * row, 1 + 25 * column : 25 + 25 * column]


def colours_of(pixels: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, pixels.reshape(-1, 3).tolist()))


def printed(renderable: object, width: int = 200) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(renderable)
    return out.getvalue().splitlines()


# Boards


@pytest.mark.parametrize("channel", range(6))
@pytest.mark.parametrize(("row", "column"), [(0, 0), (0, 9), (9, 0), (3, 7), (9, 9)])
def test_a_channel_shows_in_its_cell_and_nowhere_else(channel: int, row: int, column: int) -> None:
    observation = lit(row, column, channel)
    pixels = pictures.board_pixels(observation)
    assert pixels.shape == (251, 251, 3)
    for r, c in itertools.product(range(10), range(10)):
        wanted = render.COLOURS[channel] if (r, c) == (row, column) else EMPTY
        assert colours_of(cell(pixels, r, c)) == {wanted}
    lines = render.text_board(observation).plain.split("\n")
    assert [line[2 * column : 2 * column + 2] for line in lines].index("PDROTG"[channel] + " ") == row
    assert "".join(lines).count("· ") == 99


def test_every_set_of_channels_in_a_cell_looks_different() -> None:
    seen = set()
    for channels in SUBSETS:
        drawn = cell(pictures.board_pixels(lit(4, 5, *channels)), 4, 5)
        assert colours_of(drawn) == ({render.COLOURS[c] for c in channels} or {EMPTY})
        seen.add(drawn.tobytes())
    assert len(seen) == 64


@pytest.mark.parametrize("channels", SUBSETS[1:], ids=str)
def test_the_front_channel_is_in_the_middle_and_names_the_cell(channels: tuple[int, ...]) -> None:
    order = [c for c in (0, 3, 1, 2, 4, 5) if c in channels]
    drawn = cell(pictures.board_pixels(lit(2, 2, *channels)), 2, 2)
    assert tuple(drawn[12, 12]) == tuple(drawn[11, 11]) == render.COLOURS[order[0]]
    assert tuple(drawn[0, 0]) == tuple(drawn[23, 23]) == render.COLOURS[order[-1]]
    outside_in = [colour for colour, _ in itertools.groupby(map(tuple, drawn[12, :12].tolist()))]
    assert outside_in == [render.COLOURS[c] for c in reversed(order)]
    letters = ["PDROTG"[c] for c in order]
    text = letters[0] + (" " if len(order) == 1 else letters[1] if len(order) == 2 else "+")
    assert render.text_board(lit(2, 2, *channels)).plain.split("\n")[2][4:6] == text


def test_moving_everything_moves_the_picture() -> None:
    observation = fake_trace(0, density=0.3).observations[0]
    rolled = np.roll(observation, (3, 4), axis=(0, 1))
    before, after = pictures.board_pixels(observation), pictures.board_pixels(rolled)
    for row, column in itertools.product(range(10), range(10)):
        np.testing.assert_array_equal(cell(after, (row + 3) % 10, (column + 4) % 10), cell(before, row, column))


def test_text_reads_back_to_the_board() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        channel_of = rng.integers(-1, 6, size=(10, 10))  # -1: nothing there
        observation = channel_of[:, :, None] == np.arange(6)
        lines = render.text_board(observation).plain.split("\n")
        assert [["·PDROTG".index(line[2 * c]) - 1 for c in range(10)] for line in lines] == channel_of.tolist()


def test_text_cells_carry_the_colours_of_the_pictures() -> None:
    board = render.text_board(lit(0, 0, 1, 4))
    styles = [span.style for span in board.spans[:2]]
    backgrounds = [style.bgcolor.get_truecolor() for style in styles]  # type: ignore[union-attr]
    assert [tuple(colour) for colour in backgrounds] == [render.COLOURS[1], render.COLOURS[4]]


def test_only_empty_cells_and_the_box_are_dim() -> None:
    out = io.StringIO()
    frame = render.Frame(lit(0, 0, 0), 0, 0, 0, None)
    Console(file=out, width=80, color_system="truecolor", force_terminal=True).print(render.text_strip([frame], 80))
    top = out.getvalue().splitlines()[3]
    assert top.startswith("\x1b[2m│\x1b[0m\x1b[1;30;48;2;86;180;233mP\x1b[0m")
    assert top.count("\x1b[2m· \x1b[0m") == 9


def linear(colours: np.ndarray) -> np.ndarray:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* (D65) of linear RGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = np.clip(rgb, 0, 1) @ to_xyz.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


#: Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("vision", VISION)
def test_colours_stay_apart_for_colour_blind_eyes(vision: str) -> None:
    colours = np.array([*render.COLOURS, EMPTY]) / 255
    seen = lab(linear(colours) @ np.array(VISION[vision]).T)
    apart = [float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)]
    assert min(apart) > 15  # about 2 is the least that an eye can tell


# Frames


def test_frames_tell_the_story_of_the_arrays() -> None:
    trace = fake_trace(30, seed=3)
    shown = all_frames(trace)
    assert [frame.step for frame in shown] == list(range(31))
    for t, frame in enumerate(shown):
        np.testing.assert_array_equal(frame.observation, trace.observations[t])
        assert frame.score == trace.rewards[:t].sum()
        assert frame.reward == (trace.rewards[t - 1] if t else 0)
    for t, frame in enumerate(shown[:-1]):
        assert frame.choice is not None
        assert (frame.choice.action, frame.choice.executed) == (trace.actions[t], trace.executed[t])
        np.testing.assert_array_equal(frame.choice.probabilities, trace.probabilities[t])
    assert shown[-1].choice is None


def test_captions() -> None:
    choice = render.Choice(5, 5, np.full(6, 1 / 6))
    stuck = render.Choice(0, 3, np.full(6, 1 / 6))
    frame = render.Frame(lit(0, 0), 12, 0, 4, choice)
    assert (render.progress_line(frame), render.action_line(frame)) == ("step 12, score 4", "fire")
    frame = render.Frame(lit(0, 0), 9999, -1, 999, stuck)
    assert render.progress_line(frame) == "step 9999, score 999 (-1)"
    assert render.action_line(frame) == "no-op (sticky: right)"
    assert render.action_line(render.Frame(lit(0, 0), 3, 2, 4, None)) == "end"


@given(last=st.integers(0, 10_000), wanted=st.integers(2, 12))
def test_spread_steps(last: int, wanted: int) -> None:
    steps = render.spread(last, wanted)
    assert steps[0] == 0
    assert steps[-1] == last
    assert len(steps) == min(wanted, last + 1)
    gaps = [b - a for a, b in itertools.pairwise(steps)]
    assert all(gap > 0 for gap in gaps)
    assert not gaps or max(gaps) - min(gaps) <= 1


@given(last=st.integers(0, 500), stride=st.integers(1, 600))
def test_every_kth_step(last: int, stride: int) -> None:
    steps = render.every(last, stride)
    assert steps == [step for step in range(last + 1) if step % stride == 0 or step == last]


# Text


@pytest.mark.parametrize("width", [10, 22, 45, 46, 80, 142, 300])
@pytest.mark.parametrize("length", [0, 1, 5, 30])
def test_a_text_strip_fills_the_width_and_stays_within(length: int, width: int) -> None:
    shown = render.frames(fake_trace(length), render.spread(length, 6))
    strip = render.text_strip(shown, width)
    columns = max(1, (width + 2) // 24)
    lines = strip.plain.split("\n")
    assert {len(line) for line in lines if line} <= {24 * n - 2 for n in range(1, min(columns, len(shown)) + 1)}
    assert strip.plain.count("┌") == strip.plain.count("┘") == len(shown)
    rows = -(-len(shown) // columns)
    assert len(lines) == 14 * rows + (rows - 1)
    assert all(len(line) <= width for line in printed(strip, width))


def test_a_text_strip_shows_each_frame_under_its_caption() -> None:
    trace = fake_trace(9, density=0.1)
    lines = render.text_strip(all_frames(trace), 100).plain.split("\n")
    for step in range(10):
        top, left = step // 4 * 15, step % 4 * 24
        block = [line[left : left + 22] for line in lines[top : top + 14]]
        assert block[0].startswith(f"step {step}, score {trace.rewards[:step].sum()}"[:22])
        assert [line[1:-1] for line in block[3:13]] == render.text_board(trace.observations[step]).plain.split("\n")


def test_long_captions_do_not_break_the_columns() -> None:
    frame = render.Frame(lit(1, 1, 2), 10_000, 1, 12_345, render.Choice(0, 3, np.full(6, 1 / 6)))
    assert [len(line) for line in render.text_frame(frame)] == [22] * 14


@pytest.mark.parametrize("width", [30, 80])
def test_the_screen_of_the_animation(width: int) -> None:
    choice = render.Choice(3, 1, np.array([0.0, 0.04, 0.06, 0.9, 0.0, 0.0]))
    text = printed(render.text_screen(render.Frame(lit(9, 4, 0), 17, 1, 3, choice)), width)
    assert max(map(len, text)) <= width
    if width == 80:
        joined = "\n".join(text)
        assert "step 17, score 3 (+1)" in joined
        assert "right (sticky: left)" in joined
        assert "right █████████  0.90" in joined
        assert "up    █          0.06" in joined
        assert all(name in joined for name in (*LAYOUT, *render.ACTION_NAMES))
        assert len(text) == 14
    printed(render.text_screen(all_frames(fake_trace(0))[0]), width)


def test_the_legend_names_all_channels() -> None:
    assert render.text_legend().plain == "P player  D danger  R reward  O projectile  T trail  G gauge"


# Pictures


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, (636, 395)), (2, (636, 395)), (3, (825, 395)), (6, (1632, 395)), (7, (1632, 700)), (13, (1632, 1005))],
)
def test_strip_sizes(count: int, size: tuple[int, int]) -> None:
    shown = all_frames(fake_trace(count - 1))
    assert pictures.strip_image(shown, TITLE).size == size


def test_a_strip_holds_the_boards_in_reading_order(tmp_path: Path) -> None:
    shown = all_frames(fake_trace(7))
    pictures.save_strip(tmp_path / "strip.png", shown, TITLE)
    with Image.open(tmp_path / "strip.png") as image:
        assert image.format == "PNG"
        pixels = np.asarray(image.convert("RGB"))
    for index, frame in enumerate(shown):
        top, left = 90 + index // 6 * 305, 18 + index % 6 * 269
        board = pixels[top : top + 251, left : left + 251]
        np.testing.assert_array_equal(board, pictures.board_pixels(frame.observation))
    assert set(render.COLOURS) <= colours_of(pixels[-40:])  # the legend


@pytest.mark.parametrize("length", [0, 1, 4])
@pytest.mark.parametrize(("fps", "pause"), [(8, 120), (50, 20), (3, 330), (0.5, 2000)])
def test_a_gif_holds_every_frame_for_its_time(tmp_path: Path, length: int, fps: float, pause: int) -> None:
    shown = all_frames(fake_trace(length, density=0.2))
    pictures.save_gif(tmp_path / "x.gif", shown, TITLE, fps=fps)
    with Image.open(tmp_path / "x.gif") as image:
        assert image.format == "GIF"
        assert getattr(image, "n_frames", 1) == length + 1
        assert image.size == (537, 323)
        for index, frame in enumerate(shown):
            image.seek(index)
            if length:
                assert image.info["duration"] == (pause if index < length else max(pause, 1500))
                assert image.info["loop"] == 0
            board = np.asarray(image.convert("RGB"))[54:305, 18:269]
            np.testing.assert_array_equal(board, pictures.board_pixels(frame.observation))


def test_equal_boards_are_frames_of_their_own(tmp_path: Path) -> None:
    trace = fake_trace(12, density=0)
    pictures.save_gif(tmp_path / "x.gif", all_frames(trace), TITLE, fps=8)
    with Image.open(tmp_path / "x.gif") as image:
        assert getattr(image, "n_frames", 1) == 13


def difference(a: Image.Image, b: Image.Image) -> tuple[int, int, int, int]:
    box = ImageChops.difference(a, b).getbbox()
    assert box is not None
    return box


def test_titles_and_captions_are_drawn() -> None:
    shown = all_frames(fake_trace(1, density=0))
    left, top, right, bottom = difference(
        pictures.strip_image(shown, TITLE), pictures.strip_image(shown, TITLE.replace("7", "8"))
    )
    assert 0 < left < right < 400
    assert 0 < top < bottom < 54
    first, second = pictures.animation(shown, TITLE)
    left, top, right, bottom = difference(first, second)
    assert left >= 287
    assert 54 <= top < bottom < 240


def test_probability_bars_are_as_long_as_the_probabilities() -> None:
    choice = render.Choice(2, 2, np.array([0, 0.25, 0.5, 1, 0.004, 0.006]))
    (image,) = pictures.animation([render.Frame(lit(0, 0), 0, 0, 0, choice)], TITLE)
    pixels = np.asarray(image)
    lengths = []
    for action in range(6):
        bar = pixels[108 + 18 * action + 8, 287 + 50 : 287 + 151]
        lengths.append(int((bar == (150, 150, 156)).all(axis=1).sum()))
    assert lengths == [0, 26, 51, 101, 0, 2]


def test_drawing_leaves_the_episode_as_it_was() -> None:
    trace = fake_trace(3, density=0.3)
    for array in (trace.observations, trace.actions, trace.executed, trace.rewards, trace.probabilities):
        array.flags.writeable = False  # any write raises
    shown = all_frames(trace)
    render.text_strip(shown, 80)
    pictures.strip_image(shown, TITLE)
    assert len(list(pictures.animation(shown, TITLE))) == 4


def test_an_unwritable_place_is_an_os_error(tmp_path: Path) -> None:
    shown = all_frames(fake_trace(1))
    with pytest.raises(OSError, match="nowhere"):
        pictures.save_gif(tmp_path / "nowhere" / "x.gif", shown, TITLE, fps=8)
    with pytest.raises(OSError, match="nowhere"):
        pictures.save_strip(tmp_path / "nowhere" / "x.png", shown, TITLE)
