"""A run's report as one HTML page that needs nothing else: no network, no scripts.

Prompts, completions and reasons are text of models and files: ``pages`` says how they are made harmless.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weightgym.trainers.curves import metric_svg, plot_run, rewards_svg
from weightgym.trainers.findings import trend
from weightgym.trainers.metrics import MEANINGS
from weightgym.trainers.pages import environment
from weightgym.trainers.report import Report, brief, flatten, sections
from weightgym.trainers.rollout_page import rollouts_content, tokenizer_of
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.run_folder import series
from weightgym.trainers.scored_file import ScoredFile


def write_page(report: Report, page: Path, picture: Path, *, tokenizer: str = "") -> None:
    """Write the page, and the curves as a PNG.

    Args:
        tokenizer: the model whose tokenizer tells the texts of tokens; by default the run's.

    Raises:
        ImportError: jinja2 or matplotlib is not installed. OSError: a file can't be written.
    """
    html = environment("weightgym.trainers").get_template("report.html.jinja").render(_content(report, tokenizer))
    plot_run(report.run.rows, picture, title=report.run.folder.resolve().name)
    page.write_text(html, "utf-8")


def _content(report: Report, tokenizer: str) -> dict[str, Any]:
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
    } | (_rollouts(report, rollouts, tokenizer) if rollouts else {})


def _rollouts(report: Report, rollouts: RolloutSummary, tokenizer: str) -> dict[str, Any]:
    decode, note = tokenizer_of(tokenizer or str(report.run.config.get("model", "")), rollouts)
    content = rollouts_content(rollouts, ScoredFile(report.run.rollouts), decode, note)
    return content | {"distribution": _distribution(rollouts), "rescored": report.rescored}


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
    parts = rollouts.timeline.parts
    return rewards_svg(parts) if any(part.mean.count for part in parts) else None
