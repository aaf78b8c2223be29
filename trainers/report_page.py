"""A run's report as one HTML page that needs nothing else: no network, no scripts.

Prompts, completions and reasons are text of models and files: ``pages`` says how they are made harmless.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightgym.rollouts.trajectory import Trajectory
from weightgym.trainers.curves import metric_svg, plot_run, rewards_svg
from weightgym.trainers.findings import trend
from weightgym.trainers.metrics import MEANINGS
from weightgym.trainers.pages import environment
from weightgym.trainers.report import Report, brief, flatten, sections
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.run_folder import series

#: Characters of a message that are shown; whole texts are in rollouts.jsonl.
_SHOWN = 100_000
#: Rows of a table.
_ROWS = 100
#: Samples in the order of the page, and what they are.
_SAMPLES: Mapping[str, str] = {
    "best": "the best reward",
    "worst": "the lowest reward of an answer that could be read",
    "random": "chosen by a hash, whatever its reward",
    "invalid": "could not be read",
    "fault": "no reward through our fault",
}


def write_page(report: Report, page: Path, picture: Path) -> None:
    """Write the page, and the curves as a PNG.

    Raises:
        ImportError: jinja2 or matplotlib is not installed. OSError: a file can't be written.
    """
    html = environment("weightgym.trainers").get_template("report.html.jinja").render(_content(report))
    plot_run(report.run.rows, picture, title=report.run.folder.resolve().name)
    page.write_text(html, "utf-8")


def _content(report: Report) -> dict[str, Any]:
    run, rollouts = report.run, report.rollouts
    return {
        "run": run,
        "name": run.folder.resolve().name,
        "brief": brief(run.config),
        "config": flatten(run.config),
        "reward": trend(run, "reward/mean"),
        "findings": report.findings,
        "limits": report.limits,
        "sections": {title: [_metric(report, name) for name in names] for title, names in _sections(report).items()},
        "rollouts": rollouts,
        "distribution": _distribution(rollouts) if rollouts else None,
        "tasks": sorted(rollouts.tasks.values(), key=lambda one: (one.env, one.task))[:_ROWS] if rollouts else [],
        "reasons": rollouts.reasons[:_ROWS] if rollouts else [],
        "samples": _samples(rollouts) if rollouts else [],
    }


def _sections(report: Report) -> dict[str, list[str]]:
    return sections(name for row in report.run.rows for name in row)


def _metric(report: Report, name: str) -> dict[str, Any]:
    """Name, meaning, last value and curve; a metric that never changes needs no curve."""
    _, values = series(report.run.rows, name)
    constant = len(set(values)) == 1 and len(values) > 1
    return {
        "name": name,
        "meaning": MEANINGS.get(name, "not explained: written by another version"),
        "last": values[-1],
        "constant": constant,
        "svg": None if constant else metric_svg(report.run.rows, name),
    }


def _distribution(rollouts: RolloutSummary) -> bytes | None:
    parts = [part for _, part in sorted(rollouts.parts.items())]
    return rewards_svg(parts) if parts else None


def _samples(rollouts: RolloutSummary) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "what": what, "rollout": one, "messages": _messages(one), "prompt": len(one.prompt)}
        for kind, what in _SAMPLES.items()
        if (one := rollouts.samples.get(kind))
    ]


def _messages(one: Trajectory) -> list[dict[str, Any]]:
    made = []
    for step in one.steps:
        calls = [json.dumps(call, ensure_ascii=False, indent=1) for call in step.tool_calls]
        text = "\n".join([step.content, *calls]) if calls else step.content
        made.append(
            {"role": step.role, "text": text[:_SHOWN], "more": len(text) - _SHOWN, "tokens": len(step.token_ids)}
        )
    return made
