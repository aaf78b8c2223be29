"""How a score of Golf came about: answer, check and gate, config, phases, bytes, verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from weightgym.rewards.contracts import Completion, ModelError, Score, Task, TaskError
from weightgym.rewards.explanation import Explanation, Step, number, quoted, reward_step
from weightgym.rewards.golf.answer import find_solution
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.profile import Profile
from weightgym.rewards.golf.profile import profile as find_profile
from weightgym.rewards.golf.report import CHARGED, Result
from weightgym.rewards.golf.scorer import WORST_BPB, answers_of, check_task

#: Findings that are listed.
_FINDINGS = 20


def explain(task: Task, completion: Completion, score: Score) -> Explanation:
    """Tell the recorded result of the best attempt; nothing is run again.

    Raises:
        TaskError: the task is not of this benchmark.
    """
    try:
        steps = list(_attempts(answers_of(completion, check_task(task)), score))
    except (ModelError, TypeError) as error:
        return Step("answer", str(error), "failed"), reward_step(score)
    found = score.info.get("result")
    try:
        result = None if found is None else _read(found, score)
    except ValidationError as error:
        return (
            *steps,
            Step("result", f"info.result is none of ours: {error.errors()[0]['msg']}", "failed"),
            reward_step(score),
        )
    if result is None:
        return *steps, reward_step(score)
    rules = _profile(result.profile or score.profile)
    steps += _gate(result)
    if result.config:
        steps.append(_config(result, rules))
    steps += [*_phases(result, rules), *_bytes(result, rules), _verdict(result)]
    formula = "" if result.val_bpb is None else f"−min(val_bpb {result.val_bpb:.6g}, {WORST_BPB:g})"
    return *steps, reward_step(score, formula)


def _read(found: Any, score: Score) -> Result:
    """The result; its times stand in the score's timings."""
    seconds = score.timings
    spent = {name.removesuffix("_cpu_s"): value for name, value in seconds.items() if name.endswith("_cpu_s")}
    more = {"cpu_s": spent, "runtime_s": seconds.get("runtime_s", 0.0)}
    return Result.model_validate({**found, **more} if isinstance(found, Mapping) else found)


def _profile(name: str) -> Profile | None:
    try:
        return find_profile(name)
    except TaskError:
        return None


def _attempts(texts: Sequence[str], score: Score) -> Iterator[Step]:
    best = int(score.metrics.get("best_attempt", len(texts)))
    if len(texts) > 1:
        valid = int(score.metrics.get("valid_attempts", 0))
        told = f"the best is number {best}" if valid else "the last one is told"
        yield Step("attempts", f"{len(texts)} answers, {valid} of them valid; {told}.")
    text = texts[best - 1] if 1 <= best <= len(texts) else texts[-1]
    try:
        source = find_solution(text)
    except SolutionError as error:
        yield Step("answer", str(error), "failed", quote=quoted(text))
        return
    told = f"solution.py, the last closed block that opens with ```python: {len(source):,} bytes."
    yield Step("answer", told, "passed", quote=quoted(source.decode()))


def _gate(result: Result) -> Sequence[Step]:
    if result.phase == "check":
        return [Step("check", f"{result.reason}: {result.message}", "failed")]
    checked = Step("check", "Its form is what the rules ask for.", "passed")
    lines = [f"{one.severity} {one.code}, line {one.line}: {one.text}" for one in result.findings[:_FINDINGS]]
    if len(result.findings) > _FINDINGS:
        lines.append(f"and {len(result.findings) - _FINDINGS} more")
    said = {None: "not judged", "review_required": "runs, but a person must look at it before it counts"}
    text = f"{said.get(result.verdict, result.verdict)}; {len(result.findings)} findings."
    return [checked, Step("gate", text, "failed" if result.verdict == "illegal" else "passed", quote="\n".join(lines))]


def _config(result: Result, rules: Profile | None) -> Step:
    numbers = {name: str(value) for name, value in result.config.items()}
    methods = ", ".join(map(str, result.method_profile)) or "none"
    share = f" The profile runs {rules.step_share[0]}/{rules.step_share[1]} of its steps." if rules else ""
    return Step("config", f"What get_config says, with the defaults. Methods: {methods}.{share}", "told", numbers)


def _phases(result: Result, rules: Profile | None) -> Iterator[Step]:
    spent = {str(phase): f"{seconds:.2f} s" for phase, seconds in result.cpu_s.items()}
    if not spent:
        return
    text = f"CPU time; {', '.join(CHARGED)} are charged: {result.runtime_s:.2f} s."
    if rules is not None:
        text += f" Allowed: {rules.train_seconds:g} s to train, {rules.post_seconds:g} s to pack and serve"
        text += f", {rules.cpu_factor} times that without a GPU." if rules.cpu_factor != 1 else "."
    failed = result.status == "buggy" and result.phase in ("train", "pack", "serve")
    yield Step("phases", text, "failed" if failed and result.reason != "artifact_cap_exceeded" else "passed", spent)


def _bytes(result: Result, rules: Profile | None) -> Iterator[Step]:
    if result.artifact_bytes is None:
        return
    names = ("source_bytes", "claimed_bytes", "audited_bytes", "artifact_bytes", "param_count")
    found = {name: getattr(result, name) for name in names}
    numbers = {name: number(value) for name, value in found.items() if value is not None}
    cap = "" if rules is None else f" {rules.artifact_cap:,} are allowed."
    text = f"The larger of claimed and audited bytes, and the source, make the artifact.{cap}"
    over = result.reason == "artifact_cap_exceeded"
    yield Step("bytes", text, "failed" if over else "passed", numbers)


def _verdict(result: Result) -> Step:
    if result.val_bpb is None:
        return Step("verdict", f"ended in phase {result.phase}: {result.reason}: {result.message}", "failed")
    numbers = {"val_bpb": number(result.val_bpb)}
    if result.apart is not None:
        numbers["apart"] = f"{result.apart:.3g} nats"
    return Step("verdict", "Both views agree: bits a byte on the validation text.", "passed", numbers)
