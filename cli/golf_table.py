"""How outputs, verdicts and records of Golf look to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from weightgym.cli.console import print_table, printable, table
from weightgym.rewards.failures import SandboxError
from weightgym.rewards.golf.config import DEFAULTS

if TYPE_CHECKING:
    from weightgym.rewards.golf.findings.view import Finding
    from weightgym.rewards.golf.output import Output
    from weightgym.rewards.golf.quality import Problem, Quality
    from weightgym.rewards.golf.records import Record

_RIGHT = ("val_bpb", "artifact bytes", "claimed", "audited", "source", "runtime")


def error_json(error: SandboxError) -> dict[str, Any]:
    """What stands for a solution that could not be scored, in a list of results."""
    return {"status": "error", "reason": "sandbox_error", "message": " ".join(str(error).split())}


def print_outputs(found: Sequence[tuple[str, Output | SandboxError]]) -> None:
    """One output as a list of its fields, several as a table with a line each."""
    cells = [{"file": printable(name), **_cells(one)} for name, one in found]
    if len(cells) == 1:
        rows = table("", "", header=False)
        for name, text in cells[0].items():
            rows.add_row(name, text)
    else:
        columns = list(dict.fromkeys(name for one in cells for name in one))
        rows = table(*columns, right=_RIGHT)
        for one in cells:
            rows.add_row(*(one.get(name, "—") for name in columns))
    print_table(rows)


def _cells(one: Output | SandboxError) -> dict[str, str]:
    if isinstance(one, SandboxError):
        return {"status": "error", "reason": "sandbox_error"}
    found: dict[str, str] = {"status": one.status}
    if one.reason:
        found["reason"] = f"{one.reason}: {printable(one.message)}" if one.message else one.reason
    if one.val_bpb is not None:
        found["val_bpb"] = f"{one.val_bpb:.5f}"
    numbers = {"artifact bytes": one.artifact_bytes, "claimed": one.claimed_bytes, "audited": one.audited_bytes}
    found |= {name: f"{number:,}" for name, number in numbers.items() if number is not None}
    found |= {"source": f"{one.source_bytes:,}", "CPU-seconds": seconds(one), "runtime": f"{one.runtime_s:.1f} s"}
    found |= {"verdict": one.verdict} if one.verdict else {}
    return found | {"method": ", ".join(one.method_profile), "config": config(one)}


def seconds(output: Output) -> str:
    """The CPU-seconds of each phase."""
    return ", ".join(f"{phase} {used:.1f}" for phase, used in output.cpu_s.items()) or "—"


def config(output: Output) -> str:
    """What the configuration says otherwise than the defaults."""
    changed = [f"{name} = {value}" for name, value in output.config.items() if value != DEFAULTS.get(name)]
    return ", ".join(changed) or ("the defaults" if output.config else "—")


def print_quality(quality: Quality) -> None:
    """What is wrong with a saved output, and what the gate found in the file."""
    print_problems(quality.problems)
    print_findings(quality.findings)


def print_problems(problems: Sequence[Problem]) -> None:
    """One line each; nothing for none."""
    rows = table("severity", "code", "in the result")
    for problem in problems:
        rows.add_row(problem.severity, problem.code, printable(problem.text))
    if problems:
        print_table(rows)


def print_findings(findings: Sequence[Finding]) -> None:
    """One line each; nothing for none."""
    rows = table("line", "severity", "code", "finding", right=("line",))
    for finding in findings:
        rows.add_row(str(finding.line), finding.severity, finding.code, printable(finding.text))
    if findings:
        print_table(rows)


def print_records(ranked: Sequence[Record]) -> None:
    """One table of the leaderboard, best first."""
    rows = table("#", "record", "val_bpb", "artifact bytes", "runtime", "method", "config", right=("#", *_RIGHT))
    for number, one in enumerate(ranked, start=1):
        shown = _cells(one.output)
        cells = [shown.get(name, "—") for name in ("val_bpb", "artifact bytes", "runtime", "method", "config")]
        rows.add_row(str(number), one.id, *cells)
    print_table(rows)


def echo_broken(broken: dict[str, str], root: object) -> None:
    """Say on stderr which folders are no records that hold, and why."""
    for name, why in broken.items():
        click.echo(printable(f"LEFT OUT: {root}/{name}: {why}"), err=True)
