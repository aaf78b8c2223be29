"""``weightgym golf check`` and ``weightgym golf gate``: what can be said of a solution without running it (again)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weightgym.cli.golf_options import SolutionFile, read_solution

if TYPE_CHECKING:
    from weightgym.rewards.golf.check import Solution
    from weightgym.rewards.golf.errors import SolutionError
    from weightgym.rewards.golf.quality import Problem

#: Exit codes by verdict.
EXIT = {"legal": 0, "illegal": 1, "review_required": 2}


@click.command(epilog="Example: weightgym golf check solution.py")
@click.argument("file", callback=read_solution)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def check(file: SolutionFile, as_json: bool) -> None:
    """Check the form and the config of FILE (a solution.py, - for stdin). It is read, never run.

    Exit code 0 if the solution can be run, 1 if not.
    """
    from weightgym.cli.console import echo_json, printable
    from weightgym.rewards.golf.check import check as check_source
    from weightgym.rewards.golf.errors import SolutionError

    try:
        solution = check_source(file.raw)
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


@click.command(epilog="Example: weightgym golf gate solution.py solution.result.json")
@click.argument("file", callback=read_solution)
@click.argument("result", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def gate(file: SolutionFile, result: Path | None, as_json: bool) -> None:
    """Judge FILE (a solution.py, - for stdin) by the rules. It is read, never run.

    With RESULT, what `score --json`, `score --output` or `verify` saved of its run, that is judged too: a run that is
    not ok, impossible or edited numbers, an artifact over the cap and budget overruns are illegal.

    Exit code 0 if it is legal, 1 if it is illegal or fails the check, 2 if a person must look at it.
    """
    from weightgym.cli.console import echo_json, printable
    from weightgym.cli.golf_table import print_findings, print_problems
    from weightgym.rewards.golf.check import check as check_source
    from weightgym.rewards.golf.errors import SolutionError
    from weightgym.rewards.golf.gate import judge

    problems: tuple[Problem, ...] = ()
    try:
        solution = check_source(file.raw)
    except SolutionError as error:
        if as_json:
            echo_json({**_refused(error), "verdict": "illegal", "findings": []})
        else:
            click.echo(printable(f"illegal: {error}"))
        sys.exit(1)
    judged = judge(solution)
    verdict = judged.verdict
    if result is not None:
        from weightgym.rewards.golf.quality import judge_saved

        quality = judge_saved(file.raw, result)
        verdict, problems = quality.verdict, quality.problems
    if as_json:
        findings = [asdict(finding) for finding in judged.findings]
        fault = "illegal" if verdict == "illegal" else None
        head = {"status": "buggy" if fault else "ok", "reason": fault, "verdict": verdict, "findings": findings}
        of_result = {} if result is None else {"result_findings": [asdict(problem) for problem in problems]}
        echo_json({**head, **of_result, **_described(solution)})
    else:
        click.echo(f"{verdict} ({', '.join(_described(solution)['method_profile'])})")
        print_problems(problems)
        print_findings(judged.findings)
    sys.exit(EXIT[verdict])


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
