"""A report card of WSP-Bench as an HTML page. Needs jinja2 and matplotlib (extra ``plots``), imported on use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weightgym.trainers.curves import svg
from weightgym.trainers.pages import environment

if TYPE_CHECKING:
    from weightgym.rewards.wsp.card import Card, Spectra

#: Models in the order of the plot, the last on top.
_MARKS = (("reference", "o-", "#2f855a"), ("defective", "x--", "#c05621"), ("submitted", ".-", "#2b6cb0"))


def write_card(card: Card, page: Path) -> None:
    """Write the page; only its owner can read it, since it tells the truth of its instance.

    Raises:
        ImportError: jinja2 or matplotlib is not installed. OSError: the file can't be written.
    """
    pictures = {one.parameter: spectra_svg(one) for one in card.spectra}
    html = environment("weightgym.cli").get_template("wsp_card.html.jinja").render(card=card, pictures=pictures)
    page.touch(mode=0o600)
    page.write_text(html, "utf-8")


def spectra_svg(one: Spectra) -> bytes:
    """The largest singular values of a matrix, by rank, in the three models."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 2.6), layout="constrained")
    axes = figure.subplots()
    for name, style, color in _MARKS:
        values = getattr(one, name)
        axes.plot(range(len(values)), values, style, color=color, label=name, linewidth=1, markersize=4)
    axes.set_xlabel("singular value", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return svg(figure)
