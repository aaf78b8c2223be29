"""``weightgym doctor``."""

from __future__ import annotations

import click

_EPILOG = """\b
Examples:
  weightgym doctor
  weightgym doctor --json | jq .sandbox
"""


@click.command(epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Say whether this machine can run foreign code in a sandbox, what works, and what to install.

    Exit code 0: it can; 1: it can't.
    """
    from weightgym.cli.console import echo_json
    from weightgym.rewards.sandbox.probe import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            click.echo(f"{finding.state:<8} {finding.part:<16} {finding.text}")
    works = all(finding.state != "failed" for finding in findings)
    if as_json:
        rows = [{"part": row.part, "state": row.state, "text": row.text} for row in findings]
        echo_json({"sandbox": works, "findings": rows})
    else:
        click.echo("\nForeign code can be sandboxed here." if works else "\nForeign code can't be sandboxed here.")
    raise SystemExit(0 if works else 1)
