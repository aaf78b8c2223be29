"""The scores that the repository stores: of reference answers in a guide, of all games, of scripted agents."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from weightgym.cli.docs_text import anchor, table
from weightgym.envs.registry import EnvSpec

#: The heading of a guide's section whose first table has them.
HEADING = "Reference answers"
_GAMES = Path("games", "README.md")


def stored_scores(entry: EnvSpec, guide: str, folder: Path) -> str:
    """What is known of answers to an environment's tasks; empty where nothing is stored."""
    if entry.name == "weight-program":
        return _games(folder)
    if entry.name == "wsp-bench":
        return _agents()
    section = _section(folder / guide, HEADING) if guide else ""
    found = re.search(r"^\|.*(?:\n\|.*)+", section, re.MULTILINE)
    if not found:
        return ""
    before = section[: found.start()].rstrip().rpartition("\n\n")[2]
    lead = re.split(r"(?<=[.:]) ", " ".join(before.split()))[-1]
    lead = lead if lead.endswith(":") else "They get:"
    return f"{lead}\n\n{found[0]}\n\nFrom [{guide}](../{guide}#{anchor(HEADING)}), where more is said of them."


def _agents() -> str:
    """The scripted agents' mean scores on the shipped instances, by family."""
    from weightgym.rewards.wsp import sets
    from weightgym.rewards.wsp.references import read_references

    found: dict[tuple[str, str], list[float]] = {}
    for row in read_references(sets.shipped()):
        found.setdefault((row.agent, sets.data_of(sets.task(row.id)).family), []).append(row.score)
    if not found:
        return ""
    agents, families = (tuple(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    means = {key: f"{statistics.fmean(scores):.1f} ({len(scores)})" for key, scores in found.items()}
    rows = [(f"`{agent}`", *(means.get((agent, family), "") for family in families)) for agent in agents]
    lead = "Mean scores (0 to 100) of the scripted agents on the shipped instances, with the number of scores:"
    return f"{lead}\n\n{table(('agent', *families), rows)}"


def _section(page: Path, heading: str) -> str:
    _, _, after = page.read_text("utf-8").partition(f"\n## {heading}\n")
    return after.partition("\n## ")[0]


def _games(folder: Path) -> str:
    """The original games, and the built-in ones together, of the page that ``weightgym wpb gallery`` makes."""
    if not (folder / _GAMES).is_file():
        return ""
    lines = re.findall(r"^\| \[.*\|$", (folder / _GAMES).read_text("utf-8"), re.MULTILINE)
    games = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    originals = [
        (name, cap, uniform, constant, reference)
        for name, family, _, cap, uniform, constant, reference, _ in games
        if family == "minatar"
    ]
    shares = [float(row[6]) / float(row[3]) for row in games if row[1] != "minatar"]
    linked = [(name.replace("](#", f"](../{_GAMES.as_posix()}#"), *rest) for name, *rest in originals]
    return (
        "Mean scores of an episode: of uniformly random actions, of the best constant action, and of the stored "
        "reference answer.\n\n"
        + table(("game", "cap", "uniform", "constant", "reference"), linked)
        + f"\n\nThe reference answers of the {len(shares)} built-in games reach {min(shares):.0%} to {max(shares):.0%} "
        f"of their caps (median {statistics.median(shares):.0%}): [all games](../{_GAMES.as_posix()})."
    )
