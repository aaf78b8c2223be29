"""The gallery is what the games are now."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from weightgym.envs.weight_program import gallery

FOLDER = Path(__file__).parents[1] / "docs" / "games"


@pytest.mark.slow
def test_the_page_in_the_repository_is_up_to_date() -> None:
    entries = [gallery.entry(id, threads=2) for id in gallery.ids()]
    assert list(gallery.stale(FOLDER, entries)) == [], "run: weightgym wpb gallery"


def test_every_kind_of_change_makes_it_stale(tmp_path: Path) -> None:
    entries = [gallery.entry(id) for id in ("builtin/wall_rally", "original/breakout")]
    gallery.write(tmp_path, entries)
    assert list(gallery.stale(tmp_path, entries)) == []
    text = (tmp_path / gallery.PAGE).read_text()
    assert "![Wall rally](builtin-wall_rally.png)" in text
    assert "`original/breakout`, cap 1000" in text
    pixels = entries[0].pixels.copy()
    pixels[5, 5] ^= 255
    for change, outdated in [
        ({"cap": 1}, [gallery.PAGE]),
        ({"reference": 0.5}, [gallery.PAGE]),
        ({"rules": "Other rules."}, [gallery.PAGE]),
        ({"pixels": pixels}, ["builtin-wall_rally.png"]),
    ]:
        other = dataclasses.replace(entries[0], **change)  # type: ignore[arg-type]
        assert list(gallery.stale(tmp_path, [other, entries[1]])) == outdated
    assert list(gallery.stale(tmp_path, entries[1:])) == [gallery.PAGE, "builtin-wall_rally.png"]
    (tmp_path / "holiday.png").write_bytes(b"mine")
    gallery.write(tmp_path, entries[1:])
    assert list(gallery.stale(tmp_path, entries[1:])) == []
    assert (tmp_path / "holiday.png").read_bytes() == b"mine"


def test_another_readme_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / gallery.PAGE).write_text("# Mine\n")
    with pytest.raises(FileExistsError, match="is not a gallery"):
        gallery.write(tmp_path, [gallery.entry("builtin/wall_rally")])
    assert (tmp_path / gallery.PAGE).read_text() == "# Mine\n"
    assert not list(tmp_path.glob("*.png"))


def test_an_entry_is_what_scoring_says() -> None:
    one = gallery.entry("original/breakout")
    assert one.reference == 491.472
    assert one.uniform == 0.482
    assert one.pixels.shape[2] == 3
    assert one.pixels.dtype == np.uint8
