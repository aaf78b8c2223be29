"""The page of one environment: what the registry, its docstrings and its tasks say, and the scores that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from weightgym.cli.docs_metrics import scorer_metrics
from weightgym.cli.docs_profile import profile_section
from weightgym.cli.docs_scores import stored_scores
from weightgym.cli.docs_text import anchor, fenced, markdown, paragraphs, table
from weightgym.envs import registry
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Split, Task


def environment_page(entry: EnvSpec, folder: Path) -> str:
    """The page of an environment, without its title. ``folder`` has the pages that people write."""
    guide = guide_of(entry, folder)
    task = _example(entry)
    tools = _tools(entry, task) if task and entry.max_turns > 1 else []
    sections = {
        "The environment": markdown(registry.load(entry.env).__doc__),
        "The score": f"{_rules(entry)}\n\n{scorer_metrics(entry)}\n\nAll metrics are in [metrics](../metrics.md).",
        f"Profile {entry.default_profile}": _profile(entry, guide, folder),
        "Stored scores": stored_scores(entry, guide, folder),
        "Tools": table(("tool", "arguments", ""), map(_tool_row, tools)) if tools else "",
        "A prompt": _prompt(entry, task) if task else "No task is shipped.",
    }
    written = [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join([_sentence(entry.summary), _facts(entry, guide), *written])


def guide_of(entry: EnvSpec, folder: Path) -> str:
    """The page that people wrote about an environment, or about its benchmark; empty where there is none."""
    packages = entry.env.partition(":")[0].split(".")[:-1]
    names = (f"{name}.md" for name in (entry.name, *(package.replace("_", "-") for package in packages[-1:])))
    return next((name for name in names if (folder / name).is_file()), "")


def _facts(entry: EnvSpec, guide: str) -> str:
    solved = "no reward says that" if entry.pass_threshold is None else f"a reward of {entry.pass_threshold:g} or more"
    rows = [
        ("`gymnasium.make`", f"`{entry.gym_id}`"),
        ("name in files and commands", f"`{entry.name}`"),
        ("answers of an episode", f"{entry.max_turns} at most" if entry.max_turns > 1 else "1"),
        ("reward of an invalid answer (the floor)", f"{entry.floor:g}"),
        ("a task is solved with", solved),
        ("profiles", f"{entry.profiles}; by default `{entry.default_profile}`"),
        *((f"tasks to {split}", _ids(entry.tasks.ids(split))) for split in get_args(Split)),
    ]
    told = f"\n\n[{guide}](../{guide}) explains it." if guide else ""
    return table(("", ""), rows) + told


def _ids(ids: Sequence[str]) -> str:
    ends = dict.fromkeys((ids[0], ids[-1])) if ids else ()
    return f"{len(ids)}: {' … '.join(f'`{id}`' for id in ends)}" if ids else "none"


def _rules(entry: EnvSpec) -> str:
    """What the scorer's docstring says beside its metrics."""
    score = registry.load(entry.scorer)
    found = [one for one in paragraphs(score.__doc__) if not one.startswith(("Metrics", "Raises"))]
    return "\n\n".join(markdown(one) for one in found)


def _profile(entry: EnvSpec, guide: str, folder: Path) -> str:
    text, heading = profile_section(entry), f"Profile {entry.default_profile}"
    if guide and f"## {heading}\n" in (folder / guide).read_text("utf-8"):
        text += f"\n\nEvery decision in prose: [{heading}](../{guide}#{anchor(heading)})."
    return text


def _example(entry: EnvSpec) -> Task | None:
    """The first task to train on, or else the first of all."""
    ids = [*entry.tasks.ids("train"), *entry.tasks.ids("test")]
    return entry.tasks_under(entry.default_profile).task(ids[0]) if ids else None


def _tools(entry: EnvSpec, task: Task) -> list[dict[str, Any]]:
    env = registry.load(entry.env)(split=task.split)
    try:
        _, info = env.reset(options={"task": task.id})
        found: list[dict[str, Any]] = info["tools"]
        return found
    finally:
        env.close()


def _tool_row(tool: dict[str, Any]) -> tuple[str, str, str]:
    function = tool["function"]
    arguments = function.get("parameters", {}).get("properties", {})
    return f"`{function['name']}`", ", ".join(f"`{name}`" for name in arguments), function.get("description", "")


def _prompt(entry: EnvSpec, task: Task) -> str:
    said = "\n".join(f"[{message['role']}]\n{message['content']}\n" for message in task.messages)
    return f"`weightgym prompt {entry.name} {task.id}` prints it:\n\n{fenced(said, 'text')}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:].rstrip(".") + "."
