"""HTML pages that need nothing else: no network, no scripts. Needs jinja2 (extra ``plots``), which is imported on use.

What is put into them is text of models and files. It is escaped by the template engine, control and direction
characters are spelled out, and a content policy (``page.html.jinja``) forbids scripts and every address outside.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

#: Characters of a text that are shown, whatever it is: a page of bounded parts is of bounded size.
_LONGEST = 100_000

if TYPE_CHECKING:
    import jinja2


def environment(package: str) -> jinja2.Environment:
    """The templates of a package, which extend ``page.html.jinja``.

    Raises:
        ImportError: jinja2 is not installed.
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(name, "templates") for name in dict.fromkeys([package, "weightgym.trainers"])]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(_cut(value, _LONGEST)),
    )
    made.filters |= {"number": _number, "picture": _picture, "short": _short}
    return made


def visible(value: Any) -> Any:
    """Text with control, direction and other invisible characters spelled out; lines and tabs stay."""
    if type(value) is not str:  # markup of the template itself, numbers
        return value
    if value.isprintable():
        return value
    return "".join(char if char in "\n\t" or char.isprintable() else ascii(char)[1:-1] for char in value)


def _short(value: Any, most: int = 200) -> Any:
    """Names of files and models, of any length, where many stand side by side."""
    return _cut(value, most)


def _cut(value: Any, most: int) -> Any:
    if type(value) is not str or len(value) <= most:
        return value
    return f"{value[:most]}… ({len(value) - most:,} characters more)"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _picture(svg: bytes) -> Any:
    """As an address, which is harmless markup and never cut."""
    from markupsafe import Markup

    return Markup("data:image/svg+xml;base64," + base64.b64encode(svg).decode())
