"""The made pages of ``docs``: which there are, what is in them, and whether they are up to date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from weightgym.cli.docs_environment import environment_page, guide_of
from weightgym.cli.docs_metrics import metrics_page
from weightgym.cli.docs_text import table
from weightgym.envs import registry

INDEX = "README.md"
MADE = "Made by `weightgym docs`; the tests fail when it is out of date."
_ENVIRONMENTS = "environments"
#: Pages about the project rather than about its use.
_ABOUT = ("tests.md", "negative-results.md", "log.md")


def pages(folder: Path) -> Mapping[str, str]:
    """Every made page, by its name in the folder. The index and the quotes follow the pages that people write there."""
    made = {
        f"{_ENVIRONMENTS}/{entry.name}.md": _page(entry.name, environment_page(entry, folder))
        for entry in registry.specs()
    }
    made["metrics.md"] = _page("Metrics", metrics_page())
    made[INDEX] = _page("weightgym's pages", _index(folder))
    return made


def write(folder: Path) -> tuple[str, ...]:
    """Write all pages and remove those of environments that are no more; returns the names.

    Raises:
        FileExistsError: a file in the place of one was not made here. Nothing is written then.
    """
    made = pages(folder)
    for name in made:
        path = folder / name
        if path.is_file() and MADE not in path.read_text("utf-8"):
            raise FileExistsError(f"{path} was not made by `weightgym docs`: name another folder")
    for name in _left_over(folder, made):
        (folder / name).unlink()
    for name, text in made.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return tuple(made)


def stale(folder: Path) -> Iterator[str]:
    """The pages that differ from what they would be now, are missing, or are of nothing."""
    made = pages(folder)
    for name, text in made.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            yield name
    yield from _left_over(folder, made)


def _left_over(folder: Path, made: Mapping[str, str]) -> list[str]:
    found = sorted((folder / _ENVIRONMENTS).glob("*.md"))
    names = [f"{_ENVIRONMENTS}/{path.name}" for path in found if MADE in path.read_text("utf-8")]
    return [name for name in names if name not in made]


def _page(title: str, text: str) -> str:
    return f"# {title}\n\n{MADE}\n\n{text.rstrip()}\n"


def _index(folder: Path) -> str:
    entries = registry.specs()
    guides = sorted(path.name for path in folder.glob("*.md") if path.name not in (INDEX, "metrics.md", *_ABOUT))
    made = [("[games](games/README.md)", "Every game of WeightProgramBench: pictures, rules, caps, scores.")]
    made = [one for one in made if (folder / "games" / INDEX).is_file()]
    made.append(("[metrics](metrics.md)", "Every number that a run or a score has, with its meaning."))
    rows = [(f"[{entry.name}]({_ENVIRONMENTS}/{entry.name}.md)", entry.summary, _link(guide_of(entry, folder)))
            for entry in entries]  # fmt: skip
    parts = {
        "Environments": table(("environment", "the model is to", "guide"), rows),
        "Guides": table(("page", ""), [_row(folder, name) for name in guides]),
        "Reference": table(("page", ""), made),
        "How it was made": table(("page", ""), [_row(folder, name) for name in _ABOUT if (folder / name).is_file()]),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items())


def _link(name: str) -> str:
    return f"[{name}]({name})" if name else ""


def _row(folder: Path, name: str) -> tuple[str, str]:
    """A page's title, and its first sentence."""
    title, _, text = (folder / name).read_text("utf-8").removeprefix("# ").partition("\n")
    prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL).strip()
    first = re.split(r"(?<=[.:])\s", " ".join(prose.split("\n\n")[0].split()))[0]
    return f"[{title}]({name})", first.rstrip(":") if first.endswith(":") else first
