"""``weightgym golf check`` and ``weightgym golf gate``: what can be said of a solution without running it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from weightgym.rewards.golf.check import Solution
    from weightgym.rewards.golf.errors import SolutionError

_EXIT = {"legal": 0, "illegal": 1, "review_required": 2}


@click.command(epilog="Example: weightgym golf check solution.py")
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def check(file: IO[bytes], as_json: bool) -> None:
    """Check the form and the config of FILE (a solution.py, - for stdin). It is read, never run.

    Exit code 0 if the solution can be run, 1 if not.
    """
    from weightgym.cli.console import echo_json, printable
    from weightgym.rewards.golf.check import check as check_source
    from weightgym.rewards.golf.errors import SolutionError

    try:
        solution = check_source(_read(file))
    except SolutionError as error:
        if as_json:
            echo_json(_refused(error))
        else:
            click.echo(printable(f"buggy: {error}"))
        sys.exit(1)
    if as_json:
        echo_json({"status": "ok", "reason": None, **_described(solution)})
        return
    given = ", ".join(f"{name} = {solution.config[name]}" for name in solution.given) or "the defaults"
    click.echo(f"ok: {solution.source.size:,} bytes of source; config: {given}")


@click.command(epilog="Example: weightgym golf gate solution.py")
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def gate(file: IO[bytes], as_json: bool) -> None:
    """Judge FILE (a solution.py, - for stdin) by the rules. It is read, never run.

    Exit code 0 if it is legal, 1 if it is illegal or fails the check, 2 if a person must look at it.
    """
    from weightgym.cli.console import echo_json, print_table, printable, table
    from weightgym.rewards.golf.check import check as check_source
    from weightgym.rewards.golf.errors import SolutionError
    from weightgym.rewards.golf.gate import judge

    try:
        solution = check_source(_read(file))
    except SolutionError as error:
        if as_json:
            echo_json({**_refused(error), "verdict": "illegal", "findings": []})
        else:
            click.echo(printable(f"illegal: {error}"))
        sys.exit(1)
    judged = judge(solution)
    if as_json:
        findings = [asdict(finding) for finding in judged.findings]
        fault = "illegal" if judged.verdict == "illegal" else None
        head = {"status": "buggy" if fault else "ok", "reason": fault, "verdict": judged.verdict, "findings": findings}
        echo_json({**head, **_described(solution)})
    else:
        click.echo(f"{judged.verdict} ({', '.join(_described(solution)['method_profile'])})")
        rows = table("line", "severity", "code", "finding", right=("line",))
        for finding in judged.findings:
            rows.add_row(str(finding.line), finding.severity, finding.code, printable(finding.text))
        if judged.findings:
            print_table(rows)
    sys.exit(_EXIT[judged.verdict])


def _read(file: IO[bytes]) -> bytes:
    from weightgym.rewards.golf.source import MAX_BYTES

    return file.read(MAX_BYTES + 1)


def _refused(error: SolutionError) -> dict[str, Any]:
    return {"status": "buggy", "reason": error.code, "phase": "check", "message": error.message, "line": error.line}


def _described(solution: Solution) -> dict[str, Any]:
    from weightgym.rewards.golf.method import method_profile

    return {
        "phase": "check",
        "source_bytes": solution.source.size,
        "config": dict(solution.config),
        "method_profile": list(method_profile(solution)),
        "extends": [name for name in solution.functions if name != "get_config"],
    }
