"""The gallery: a page of all games, with a picture strip from skilled play, rules, cap and scores.

Everything on it is computed, and has the same bits on every machine: :func:`stale` says what is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.envs.weight_program.pictures import board_pixels
from weightgym.envs.weight_program.prompt import builtin_rules, lit_by
from weightgym.envs.weight_program.references import reference_answer
from weightgym.envs.weight_program.render import spread
from weightgym.envs.weight_program.rules import RULES
from weightgym.rewards.weight_program import baselines, builtin
from weightgym.rewards.weight_program.channels import CAPS, CHANNEL_MAPS, LAYOUT
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import record_episode, simulate

PAGE = "README.md"
_FRAMES = 6
_SHOWN_STEPS = 60
_GAP = 10

_COLOURS = ("light blue", "orange", "yellow", "pink", "green", "dark blue")

_HEAD = """\
# The games of WeightProgramBench

Made by `weightgym wpb gallery`; the tests fail when it is out of date. Pictures are six moments of the first {steps}
steps of an episode of the reference answer. Scores are means over the 1,000 episodes of `wpb-v1`: *uniform* plays every
action with equal probability, *constant* is the best of the six policies that always play the same action, *reference*
is the stored answer (found by `weightgym wpb solve`, or designed by hand).

Colours: {colours}.
"""


@dataclass(frozen=True)
class Entry:
    """What the page says of a game."""

    id: str  #: of its task
    family: str
    rules: str
    lit_by: tuple[str, ...]
    varies: str
    cap: int
    uniform: float
    constant: float
    reference: float
    length: float  #: mean, of the reference
    pixels: npt.NDArray[np.uint8]  #: (height, width, 3)

    @property
    def title(self) -> str:
        """The game's name, for people."""
        return self.id.split("/")[1].replace("_", " ").capitalize()

    @property
    def picture(self) -> str:
        """The name of the picture's file."""
        return self.id.replace("/", "-") + ".png"


def ids() -> tuple[str, ...]:
    """The tasks on the page: the built-in games, then the originals."""
    return tuple(f"builtin/{game}" for game in GAMES) + tuple(f"original/{game}" for game in sorted(CHANNEL_MAPS))


def entry(id: str, *, threads: int = 1) -> Entry:
    """Play a game and look at it."""
    source, game = id.split("/")
    rules = profile("wpb-v1")
    weights = parse_edits(reference_answer(game)).weights
    skilled = simulate(game, weights, rules, threads=threads)
    return Entry(
        id=id,
        **(_original(game) if source == "original" else _builtin(game)),
        lit_by=lit_by(game),
        uniform=baselines.uniform(game, threads=threads),
        constant=baselines.best_constant(game, threads=threads),
        reference=skilled.mean_score,
        length=skilled.mean_length,
        pixels=_strip(record_episode(game, weights, rules, 0).observations),
    )


def _original(game: str) -> dict[str, Any]:
    return {"family": "minatar", "rules": RULES[game], "varies": "", "cap": CAPS[game]}


def _builtin(game: str) -> dict[str, Any]:
    module = builtin.module(game)
    varies = "; ".join(
        f"`{name}` {getattr(module, name)} (or {', '.join(map(str, values))})" for name, values in module.VARY.items()
    )
    return {"family": module.FAMILY, "rules": builtin_rules(game), "varies": varies, "cap": module.CAP}


def _strip(observations: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Boards side by side, at half the size of ``board_pixels``."""
    steps = spread(min(_SHOWN_STEPS, len(observations) - 2), _FRAMES)
    boards = [board_pixels(observations[step])[::2, ::2] for step in steps]
    gap = np.full((boards[0].shape[0], _GAP, 3), 255, np.uint8)
    return np.hstack([part for board in boards for part in (board, gap)][:-1])


def page(entries: list[Entry]) -> str:
    """The whole page (Markdown)."""
    colours = ", ".join(f"{name} {colour}" for name, colour in zip(LAYOUT, _COLOURS, strict=True))
    parts = [_HEAD.format(steps=_SHOWN_STEPS, colours=colours)]
    parts.append(f"{len(entries)} games:\n\n" + _table(entries))
    return "\n".join([*parts, *(_section(one) for one in entries)])


def _table(entries: list[Entry]) -> str:
    rows = [
        f"| [{one.title}](#{one.title.lower().replace(' ', '-')}) | {one.family} | {_sentence(one.rules)} | {one.cap} "
        f"| {one.uniform:.2f} | {one.constant:.2f} | {one.reference:.2f} | {one.length:.0f} |"
        for one in entries
    ]
    head = "| game | family | | cap | uniform | constant | reference | steps |\n|---|---|---|---:|---:|---:|---:|---:|"
    return "\n".join([head, *rows, ""])


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def _section(one: Entry) -> str:
    lit = [f"- {LAYOUT[channel]}: {text}" for channel, text in enumerate(one.lit_by) if text]
    varies = f"\n\nVariants: {one.varies}." if one.varies else ""
    return (
        f"## {one.title}\n\n![{one.title}]({one.picture})\n\n"
        f"`{one.id}`, cap {one.cap}; uniform {one.uniform:.2f}, constant {one.constant:.2f}, reference "
        f"{one.reference:.2f} ({one.reference / one.cap:.0%} of the cap).\n\n"
        f"{one.rules}\n\n" + "\n".join(lit) + varies + "\n"
    )


def write(folder: Path, entries: list[Entry]) -> None:
    """Write page and pictures; pictures of games that are no more are removed.

    Raises:
        FileExistsError: the folder has another README.
    """
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    old = folder / PAGE
    if old.is_file() and not old.read_text("utf-8").startswith(_HEAD.splitlines()[0]):
        raise FileExistsError(f"{old} is not a gallery: name another folder")
    for path in _pictures(folder):
        if path.name not in {one.picture for one in entries}:
            path.unlink()
    for one in entries:
        image = Image.fromarray(one.pixels).quantize(32)
        assert np.array_equal(np.asarray(image.convert("RGB")), one.pixels), "more colours than a palette has"
        image.save(folder / one.picture, optimize=True)
    (folder / PAGE).write_text(page(entries), "utf-8")


def stale(folder: Path, entries: list[Entry]) -> Iterator[str]:
    """The files in which page or pictures differ from what the games are now."""
    from PIL import Image

    path = folder / PAGE
    if not path.is_file() or path.read_text("utf-8") != page(entries):
        yield PAGE
    for one in entries:
        path = folder / one.picture
        if not path.is_file() or not np.array_equal(np.asarray(Image.open(path).convert("RGB")), one.pixels):
            yield one.picture
    yield from sorted({path.name for path in _pictures(folder)} - {one.picture for one in entries})


def _pictures(folder: Path) -> list[Path]:
    return [path for source in ("builtin", "original") for path in folder.glob(f"{source}-*.png")]
