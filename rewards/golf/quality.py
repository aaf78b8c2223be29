"""The gate after the run: the verdict on a solution and the saved output of its run together.

The static verdict comes from the file, as ever. An output adds what the rules call illegal in a result: a status that
is not ok, a missing or impossible val_bpb, an artifact over the cap, a budget overrun, numbers that contradict the file
or one another. How low val_bpb is plays no part.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.golf.check import Solution, check
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.findings.view import Finding, Severity
from weightgym.rewards.golf.gate import Verdict, gate
from weightgym.rewards.golf.method import method_profile
from weightgym.rewards.golf.output import Output, OutputError, parse_output, source_sha256
from weightgym.rewards.golf.profile import Budget, Hardware, Profile, profile
from weightgym.rewards.golf.reading import VERSION
from weightgym.rewards.golf.report import Phase
from weightgym.rewards.golf.saved import LINE_START, read_outputs

_MOST_BYTES = 64 << 20
#: Seconds by which a phase may be over before it is caught.
_SLACK = 0.5
_VERDICTS: dict[Severity, Verdict] = {"illegal": "illegal", "review": "review_required"}
_ORDER: tuple[Verdict, ...] = ("legal", "review_required", "illegal")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an output."""

    severity: Severity
    code: str
    text: str


@dataclass(frozen=True)
class Quality:
    """The verdict, and what it rests on: findings in the file, problems of the output."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


def judge_output(raw: bytes, output: Output) -> Quality:
    """Judge a file and the output of its run."""
    return _judged(raw, tuple(_problems(raw, output)))


def judge_saved(raw: bytes, path: Path) -> Quality:
    """Judge a file and what is saved of its run: one output as JSON, or the JSON lines of ``score --output``, of which
    every one of this file counts.

    Raises:
        OSError: the saved file can't be read.
    """
    try:
        saved = _saved(path)
    except OutputError as error:
        return _judged(raw, (Problem("illegal", "result_broken", str(error)),))
    digest = source_sha256(raw)
    ours = [output for output in saved if output.source_sha256 == digest]
    if ours:
        return _judged(raw, tuple(dict.fromkeys(problem for one in ours for problem in _problems(raw, one))))
    found = f"it is of the file with SHA-256 {saved[0].source_sha256[:12]}…" if saved else "it is empty"
    return _judged(raw, (Problem("illegal", "result_source", f"no output of this file ({digest[:12]}…): {found}"),))


def _saved(path: Path) -> list[Output]:
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise OutputError(f"over {_MOST_BYTES:,} bytes are too many for saved outputs")
    if b"\n" + LINE_START in text:
        return [output for output, _ in read_outputs(io.BytesIO(text), path.name)]
    return [parse_output(text)]


def _judged(raw: bytes, problems: tuple[Problem, ...]) -> Quality:
    static = gate(raw)
    verdicts: list[Verdict] = [static.verdict, *(_VERDICTS[problem.severity] for problem in problems)]
    return Quality(max(verdicts, key=_ORDER.index), static.findings, problems)


def _problems(raw: bytes, output: Output) -> Iterator[Problem]:
    if output.source_sha256 != source_sha256(raw):
        yield _illegal("source", f"it is of another file: its SHA-256 is {output.source_sha256[:12]}…")
        return
    if output.status != "ok" or output.val_bpb is None:
        yield _illegal("status", f"the run was {output.status}: {_shown(output.reason)}")
        return
    if output.phase != "audit" or output.verdict not in ("legal", "review_required"):
        yield _illegal("status", f"no run is ok with verdict {output.verdict} after phase {output.phase}")
    try:
        rules = profile(output.profile)
    except TaskError:
        yield _illegal("profile", f"there is no profile {_shown(output.profile)}")
        return
    if not (output.evaluator and output.corpus and output.fingerprint):
        yield _illegal("origin", "evaluator, corpus or fingerprint is missing")
    elif output.evaluator != VERSION:
        text = f"evaluator {_shown(output.evaluator)} made it, this is {VERSION}: verify the file again"
        yield Problem("review", "result_evaluator", text)
    yield from _byte_problems(len(raw), output, rules)
    yield from _budget_problems(output, rules)
    try:
        yield from _file_problems(check(raw), output)
    except SolutionError as error:
        yield _illegal("source", f"the file fails the check, so it was never run: {error.code}")


def _byte_problems(size: int, output: Output, rules: Profile) -> Iterator[Problem]:
    claimed, audited, total = output.claimed_bytes, output.audited_bytes, output.artifact_bytes
    if claimed is None or audited is None or total is None:
        yield _illegal("artifact", "claimed_bytes, audited_bytes or artifact_bytes is missing")
        return
    if output.source_bytes != size:
        yield _illegal("artifact", f"source_bytes = {_shown(output.source_bytes)}, but the file has {size:,} bytes")
    if claimed < 0 or total != max(claimed, audited) + output.source_bytes:
        text = f"max({_shown(claimed)} claimed, {_shown(audited)} audited) + {_shown(output.source_bytes)} source"
        yield _illegal("artifact", f"artifact_bytes = {_shown(total)} is not {text}")
    if total > rules.artifact_cap:
        yield _illegal("artifact_cap", f"artifact_bytes = {_shown(total)} is over the cap of {rules.artifact_cap:,}")


def _budget_problems(output: Output, rules: Profile) -> Iterator[Problem]:
    gpus = output.fingerprint.get("gpus", [])
    device, ranks = output.fingerprint.get("device"), len(gpus) if isinstance(gpus, list) else -1
    if (
        device not in ("cpu", "cuda")
        or ranks < 0
        or (device == "cuda") != (ranks > 0)
        or rules.gpus not in (ranks, None)
    ):
        yield _illegal("origin", f"it did not run on the hardware of {rules.name}")
        return
    training, after = rules.budgets(Hardware("cuda", ranks) if ranks else Hardware("cpu"))
    parts: tuple[tuple[str, tuple[Phase, ...], Budget], ...] = (
        ("training", ("train",), training),
        ("packing and scoring", ("pack", "serve"), after),
    )
    for name, phases, budget in parts:
        for kind, spent, limit in (
            ("CPU-seconds", output.cpu_s, budget.cpu_seconds),
            ("seconds", output.phase_s, budget.wall_seconds),
        ):
            seconds = [spent.get(phase, math.nan) for phase in phases]
            if not all(0 <= one < math.inf for one in seconds):
                yield _illegal("budget", f"the {kind} of {name} are missing or impossible")
            elif limit is not None and (total := sum(seconds)) > limit + _SLACK:
                yield _illegal("budget", f"{name} took {total:,.1f} {kind}; the budget is {limit:,g}")


def _file_problems(solution: Solution, output: Output) -> Iterator[Problem]:
    """What can be read off the file must be in the output as well, to the type."""
    said, found = output.config, dict(solution.config)
    if said != found or any(type(said[name]) is not type(found[name]) for name in found):
        yield _illegal("config", "its config is not the one of the file")
    if output.method_profile != method_profile(solution):
        yield _illegal("method_profile", f"the file is {', '.join(method_profile(solution))}")


def _illegal(code: str, text: str) -> Problem:
    return Problem("illegal", f"result_{code}", text)


def _shown(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and abs(value) < 1 << 63 else ascii(value)
    return text if len(text) <= 40 else f"{text[:30]}…"
