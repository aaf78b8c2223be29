"""Episodes of WeightProgramBench as frames, and frames as text (``pictures`` draws them).

Functions of an episode's arrays, and of nothing else. Row 0 is on top. Every channel has its own letter and its own
colour (Okabe and Ito's, which people of all kinds of colour vision tell apart). Where several channels light a cell,
they are stacked in the order of :data:`PRIORITY`: text shows the front one's letter and then the second one's, or ``+``
when there are more; a picture shows nested squares, the front one in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.style import Style
from rich.table import Table
from rich.text import Text

from weightgym.rewards.weight_program.channels import LAYOUT
from weightgym.rewards.weight_program.network import GRID
from weightgym.rewards.weight_program.simulate import EpisodeTrace

Bool = npt.NDArray[np.bool_]
Colour = tuple[int, int, int]

ACTION_NAMES = ("no-op", "left", "up", "right", "down", "fire")

#: By channel, in the order of the layout: player, danger, reward, projectile, trail, gauge.
LETTERS = "PDROTG"
COLOURS: tuple[Colour, ...] = (
    (86, 180, 233),
    (213, 94, 0),
    (240, 228, 66),
    (204, 121, 167),
    (0, 158, 115),
    (0, 114, 178),
)
#: Channels from the front to the back: what moves and decides comes first.
PRIORITY = (0, 3, 1, 2, 4, 5)

TEXT_WIDTH = 2 * GRID + 2  #: characters of a text frame


@dataclass(frozen=True)
class Choice:
    """What the policy did: chosen and executed action (0-5), probabilities of the six."""

    action: int
    executed: int
    probabilities: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """One moment of an episode: how it came about, what the network sees (10×10×6), and what it does about it."""

    observation: Bool
    step: int  #: actions so far
    reward: int  #: of the last of them
    score: int  #: of all of them
    choice: Choice | None  #: None after the last action


def frames(trace: EpisodeTrace, steps: Sequence[int]) -> list[Frame]:
    """The frames of an episode of n actions at the given steps, each from 0 to n."""
    scores = np.concatenate([[0], np.cumsum(trace.rewards)])
    shown = []
    for step in steps:
        choice = None
        if step < len(trace.actions):
            choice = Choice(int(trace.actions[step]), int(trace.executed[step]), trace.probabilities[step])
        reward = int(trace.rewards[step - 1]) if step else 0
        shown.append(Frame(trace.observations[step], step, reward, int(scores[step]), choice))
    return shown


def spread(last: int, wanted: int) -> list[int]:
    """At most ``wanted`` (two or more) steps, evenly spaced, from 0 to ``last``, both included."""
    return sorted({round(step) for step in np.linspace(0, last, min(wanted, last + 1)).tolist()})


def every(last: int, stride: int) -> list[int]:
    """The steps 0, ``stride``, 2 ``stride``, …, and ``last``."""
    return sorted({*range(0, last, stride), last})


def stacked(cell: Bool) -> list[int]:
    """The lit channels of a cell (6,), front first."""
    return [channel for channel in PRIORITY if cell[channel]]


def progress_line(frame: Frame) -> str:
    """Step, score, and the reward that just came in."""
    gained = f" ({frame.reward:+d})" if frame.reward else ""
    return f"step {frame.step}, score {frame.score}{gained}"


def action_line(frame: Frame) -> str:
    """The action that the policy chooses here, and the one executed where stickiness repeated another."""
    if frame.choice is None:
        return "end"
    chosen, executed = ACTION_NAMES[frame.choice.action], ACTION_NAMES[frame.choice.executed]
    return chosen if chosen == executed else f"{chosen} (sticky: {executed})"


def text_board(observation: Bool) -> Text:
    """Ten lines of twenty characters, two a cell."""
    board = Text(no_wrap=True)
    for row in observation:
        for cell in row:
            _append_cell(board, stacked(cell))
        board.append("\n")
    board.right_crop(1)
    return board


def _append_cell(board: Text, channels: list[int]) -> None:
    if not channels:
        board.append("· ", Style(dim=True))
        return
    second = channels[min(1, len(channels) - 1)]
    marks = " " if len(channels) == 1 else LETTERS[second] if len(channels) == 2 else "+"
    board.append(LETTERS[channels[0]], _style(channels[0])).append(marks, _style(second))


def _style(channel: int) -> Style:
    return Style(color="black", bgcolor="#{:02x}{:02x}{:02x}".format(*COLOURS[channel]), bold=True)


def text_legend() -> Text:
    """Letters and names of the six channels, in one line."""
    legend = Text()
    for channel, name in enumerate(LAYOUT):
        legend.append(LETTERS[channel], _style(channel)).append(f" {name}  ")
    legend.right_crop(2)
    return legend


def text_frame(frame: Frame) -> list[Text]:
    """14 lines of ``TEXT_WIDTH`` characters: step and score, action, and the board in a box."""
    side = Text().append("│", Style(dim=True))  # a styled Text would lend its style to the line that follows
    edge = "─" * (TEXT_WIDTH - 2)
    captions = [Text(line) for line in (progress_line(frame), action_line(frame))]
    for caption in captions:
        caption.truncate(TEXT_WIDTH, pad=True)
    return [
        *captions,
        Text(f"┌{edge}┐", Style(dim=True)),
        *(side + line + side for line in text_board(frame.observation).split()),
        Text(f"└{edge}┘", Style(dim=True)),
    ]


def text_strip(shown: Sequence[Frame], width: int) -> Text:
    """Text frames side by side, as many in a row as ``width`` characters hold (at least one)."""
    columns = max(1, (width + 2) // (TEXT_WIDTH + 2))
    rows = []
    for start in range(0, len(shown), columns):
        pictures = [text_frame(frame) for frame in shown[start : start + columns]]
        rows.append(Text("\n").join(Text("  ").join(lines) for lines in zip(*pictures, strict=True)))
    strip = Text("\n\n").join(rows)
    strip.no_wrap, strip.overflow = True, "crop"
    return strip


def text_screen(frame: Frame) -> Table:
    """One frame of the terminal's animation: the board, and next to it action probabilities and legend."""
    side = Text("\n\n\n")
    for action, name in enumerate(ACTION_NAMES):
        style = Style(bold=frame.choice is not None and frame.choice.action == action)
        probability = 0.0 if frame.choice is None else float(frame.choice.probabilities[action])
        bar = "█" * round(10 * probability)
        side.append(f"{name:<6}", style).append(f"{bar:<10}").append(f" {probability:.2f}\n", style)
    for channel, name in enumerate(LAYOUT):
        side.append("\n" if channel % 2 == 0 else "").append(LETTERS[channel], _style(channel)).append(f" {name:<11}")
    screen = Table.grid(padding=(0, 2))
    screen.add_row(Text("\n").join(text_frame(frame)), side)
    return screen
