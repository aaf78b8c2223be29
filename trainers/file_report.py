"""A file of scored answers, looked at: its summary, what is suspicious, and its page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightgym.trainers.findings import Finding, warnings_first
from weightgym.trainers.pages import environment
from weightgym.trainers.rescore import Rescored
from weightgym.trainers.rollout_findings import file_findings, rescored_findings
from weightgym.trainers.rollout_page import rollouts_content, tokenizer_of
from weightgym.trainers.rollout_summary import RolloutSummary, rollouts_summary
from weightgym.trainers.scored_file import ScoredFile

#: Bad lines that the page lists.
_BAD = 20


@dataclass(frozen=True)
class FileReport:
    """Everything that is shown of a file."""

    file: ScoredFile
    rollouts: RolloutSummary
    findings: list[Finding]
    rescored: Rescored | None = None

    def checked(self, check: Callable[[ScoredFile], Rescored]) -> FileReport:
        """The same with some answers scored again."""
        rescored = check(self.file)
        found = warnings_first([*self.findings, *rescored_findings(rescored)])
        return dataclasses.replace(self, findings=found, rescored=rescored)


def file_report(file: ScoredFile) -> FileReport:
    """Read a file, however large, and look at everything.

    Raises:
        ValueError: no line is a scored answer; the message says what is wrong with the first.
        OSError: it can't be read.
    """
    summary = RolloutSummary().add_all(file)
    if not summary.count:
        what = file.told[0] if file.told else "it is empty"
        raise ValueError(f"{file.path} holds no scored answer: {what}")
    return FileReport(file, summary, file_findings(file, summary))


def file_summary(report: FileReport) -> dict[str, Any]:
    """The report as JSON: numbers, no prompts and completions."""
    return {
        "file": str(report.file.path),
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
        "rollouts": rollouts_summary(report.rollouts),
        "bad_lines": {"count": report.file.bad, "first": report.file.told},
        "rescored": dataclasses.asdict(report.rescored) if report.rescored else None,
    }


def write_file_page(report: FileReport, page: Path, *, tokenizer: str) -> None:
    """Write the page.

    Args:
        tokenizer: the model whose tokenizer tells the texts of stored tokens; "" for ids.

    Raises:
        ImportError: jinja2 or matplotlib is not installed. OSError: a file can't be written.
    """
    decode, note = tokenizer_of(tokenizer, report.rollouts)
    content = rollouts_content(report.rollouts, report.file, decode, note) | {
        "name": report.file.path.name,
        "findings": report.findings,
        "bad": report.file.told[:_BAD],
        "distribution": None,
        "rescored": report.rescored,
    }
    html = environment("weightgym.trainers").get_template("file.html.jinja").render(content)
    page.write_text(html, "utf-8")
