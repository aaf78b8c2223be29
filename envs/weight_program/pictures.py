"""Frames of WeightProgramBench episodes as pictures: a strip (PNG) and an animation (GIF).

Drawing needs Pillow, which is imported on use (``ImportError`` without it; :func:`board_pixels` does without).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weightgym.envs.weight_program.render import (
    ACTION_NAMES,
    COLOURS,
    Bool,
    Choice,
    Colour,
    Frame,
    action_line,
    progress_line,
    stacked,
)
from weightgym.rewards.weight_program.channels import LAYOUT
from weightgym.rewards.weight_program.network import ACTIONS, CHANNELS, GRID

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

CELL = 24  #: pixels of a cell's side
BOARD = GRID * (CELL + 1) + 1  #: pixels of a board's side: the cells and the lines between and around them

_GAP = 18
_LINE = 18
_STRIP_COLUMNS = 6
_NARROWEST = 636  # what the legend takes
_PANEL = 250
_HOLD = 1500  # milliseconds that a GIF rests on its last frame
_BACK: Colour = (24, 24, 27)
_EMPTY: Colour = (12, 12, 14)
_GRID_LINE: Colour = (52, 52, 58)
_INK: Colour = (236, 236, 236)
_FAINT: Colour = (150, 150, 156)


def board_pixels(observation: Bool) -> npt.NDArray[np.uint8]:
    """The board as uint8 pixels (``BOARD``, ``BOARD``, 3).

    Cell (row, column) fills ``CELL``×``CELL`` pixels from (row, column)·(``CELL`` + 1) + 1 on.
    """
    pixels = np.full((BOARD, BOARD, 3), _GRID_LINE, dtype=np.uint8)
    for row in range(GRID):
        for column in range(GRID):
            top, left = row * (CELL + 1) + 1, column * (CELL + 1) + 1
            cell = pixels[top : top + CELL, left : left + CELL]
            cell[:] = _EMPTY
            channels = stacked(observation[row, column])
            for layer, channel in enumerate(reversed(channels)):
                inset = layer * CELL // (2 * len(channels))
                cell[inset : CELL - inset, inset : CELL - inset] = COLOURS[channel]
    return pixels


def strip_image(shown: Sequence[Frame], title: str) -> Image:
    """Captioned frames (at least one) in rows of six, under a title, over the legend. RGB."""
    from PIL import Image, ImageDraw

    columns = min(len(shown), _STRIP_COLUMNS)
    rows = -(-len(shown) // columns)
    pitch = BOARD + 2 * _LINE + _GAP
    width = max(columns * (BOARD + _GAP) + _GAP, _NARROWEST)
    image = Image.new("RGB", (width, 3 * _GAP + _LINE + rows * pitch + _LINE), _BACK)
    draw = ImageDraw.Draw(image)
    _write(draw, (_GAP, _GAP), title, size=18)
    for index, frame in enumerate(shown):
        left = _GAP + index % columns * (BOARD + _GAP)
        top = 2 * _GAP + _LINE + index // columns * pitch
        _write(draw, (left, top), progress_line(frame))
        _write(draw, (left, top + _LINE), action_line(frame), colour=_FAINT)
        image.paste(Image.fromarray(board_pixels(frame.observation)), (left, top + 2 * _LINE))
    for channel in range(CHANNELS):
        _legend_entry(draw, (_GAP + 100 * channel, image.height - _GAP - _LINE), channel)
    return image


def animation(shown: Sequence[Frame], title: str) -> Iterator[Image]:
    """The pictures of a GIF, one a frame: the board; next to it step, action, probabilities and legend. RGB."""
    from PIL import Image, ImageDraw

    top, left = 2 * _GAP + _LINE, 2 * _GAP + BOARD
    base = Image.new("RGB", (left + _PANEL, top + BOARD + _GAP), _BACK)
    draw = ImageDraw.Draw(base)
    _write(draw, (_GAP, _GAP), title, size=18)
    for channel in range(CHANNELS):
        place = (left + channel % 2 * 110, top + BOARD - (3 - channel // 2) * _LINE)
        _legend_entry(draw, place, channel)
    for frame in shown:
        image = base.copy()
        image.paste(Image.fromarray(board_pixels(frame.observation)), (_GAP, top))
        draw = ImageDraw.Draw(image)
        _write(draw, (left, top), progress_line(frame))
        _write(draw, (left, top + _LINE), action_line(frame), colour=_FAINT)
        _write_probabilities(draw, (left, top + 3 * _LINE), frame.choice)
        yield image


def _write_probabilities(draw: ImageDraw, place: tuple[int, int], choice: Choice | None) -> None:
    for action in range(ACTIONS):
        left, top = place[0], place[1] + action * _LINE
        chosen = choice is not None and choice.action == action
        probability = 0.0 if choice is None else float(choice.probabilities[action])
        _write(draw, (left, top), ACTION_NAMES[action], colour=_INK if chosen else _FAINT)
        draw.rectangle((left + 50, top + 4, left + 150, top + 12), fill=_EMPTY)
        if round(100 * probability):
            draw.rectangle((left + 50, top + 4, left + 50 + round(100 * probability), top + 12), fill=_FAINT)
        _write(draw, (left + 160, top), f"{probability:.2f}", colour=_INK if chosen else _FAINT)


def _legend_entry(draw: ImageDraw, place: tuple[int, int], channel: int) -> None:
    left, top = place
    draw.rectangle((left, top + 2, left + 11, top + 13), fill=COLOURS[channel])
    _write(draw, (left + 18, top), LAYOUT[channel])


def _write(draw: ImageDraw, place: tuple[int, int], text: str, *, colour: Colour = _INK, size: int = 14) -> None:
    draw.text(place, text, fill=colour, font=_font(size))


@functools.cache
def _font(size: int) -> FreeTypeFont | ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)  # Pillow's own, the same everywhere


def save_strip(path: Path, shown: Sequence[Frame], title: str) -> None:
    """Write :func:`strip_image` as a PNG file (``OSError`` when that fails)."""
    strip_image(shown, title).save(path, format="PNG")


def save_gif(path: Path, shown: Sequence[Frame], title: str, *, fps: float) -> None:
    """Write :func:`animation` as a GIF file that loops (``OSError`` when that fails).

    ``fps``: frames a second, at most 50. A GIF counts in hundredths of a second, so the pause is rounded to those.
    """
    pause = 10 * max(2, round(100 / fps))
    from PIL.Image import Dither

    palette = _gif_palette()
    pictures = (picture.quantize(palette=palette, dither=Dither.NONE) for picture in animation(shown, title))
    pauses = [pause] * (len(shown) - 1) + [max(pause, _HOLD)]
    next(pictures).save(path, format="GIF", save_all=True, append_images=pictures, duration=pauses, loop=0, disposal=1)


def _gif_palette() -> Image:
    """The pictures' flat colours, and greys for the smooth edges of letters: few, so that every match is exact."""
    from PIL import Image

    greys = np.linspace(_BACK, _INK, 24).round().astype(int).tolist()
    colours = [*COLOURS, _EMPTY, _GRID_LINE, _FAINT, *greys]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in colours for value in colour])
    return palette
