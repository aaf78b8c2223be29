"""What is worth a second look in a file of scored answers, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from weightgym.rewards.one_line import one_line
from weightgym.trainers.findings import Finding, invalid_series, jump_finding, kl_series, warnings_first
from weightgym.trainers.jumps import jumps
from weightgym.trainers.part_summary import PartSummary
from weightgym.trainers.rescore import Rescored
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.scored_file import ScoredFile

#: Answers that a share or a correlation is told of, at least.
_LEAST = 20


def file_findings(file: ScoredFile, summary: RolloutSummary) -> list[Finding]:
    """All of a file that is not of a run, warnings first."""
    found = [*_lines(file, summary), *_shares(summary), *rollout_findings(summary)]
    for part in summary.parts.values():
        found += _jumps(part)
    return warnings_first(found)


def rollout_findings(summary: RolloutSummary) -> list[Finding]:
    """What a run's metrics don't say of its answers; in a file all the more."""
    return [*_contradictions(summary), *_profiles(summary), *_broken(summary), *_lengths(summary)]


def _lines(file: ScoredFile, summary: RolloutSummary) -> Iterator[Finding]:
    if file.bad:
        text = f"{file.bad} lines are neither rollouts nor scored rows and are left out; the first: {file.told[0]}"
        yield Finding("warning", text, "whether the file is what you think it is")
    if file.half:
        yield Finding("note", "the last line is half: left out", "the writer was killed, or is still going")
    same = summary.duplicates
    if same.repeated_ids:
        names = ", ".join(one_line(id, 60) for id in same.ids[:3])
        text = f"{same.repeated_ids} lines have an id that a line before them has ({names})"
        yield Finding("warning", text, "whether a file was joined to itself; --explain takes a line, too: --explain :7")


def _shares(summary: RolloutSummary) -> Iterator[Finding]:
    groups, same = summary.groups, summary.duplicates
    if groups.count and groups.flat > 0.5 * groups.count:
        what = "groups" if groups.named else "tasks"
        text = f"{groups.flat / groups.count:.0%} of {groups.count} {what} have equal rewards and teach nothing"
        yield Finding("warning", text, "tasks that are too easy or too hard")
    for count, most, what, look in (
        (summary.statuses["invalid"], 0.5, "answers can't be read", "the invalid reasons"),
        (summary.truncated, 0.3, "answers are cut at their limit of tokens", "the limit, and the random sample"),
        (summary.statuses["error"] + summary.statuses["timeout"], 0, "answers have no reward through our fault",
         "the sample of a fault"),
    ):  # fmt: skip
        if count > most * summary.count:
            yield Finding("warning", f"{count} of {summary.count} {what}", look)
    if same.share > 0.5 and same.answers >= _LEAST:
        text = f"{same.share:.0%} of answers were given before, word by word, to the same task"
        yield Finding("warning", text, "temperature; whether the policy collapsed onto few answers")


def _contradictions(summary: RolloutSummary) -> Iterator[Finding]:
    same = summary.duplicates
    if same.contradictions:
        first = same.contradicting[0]
        text = (
            f"{same.contradictions} answers have another reward than the same answer to the same task under the same "
            f"profile: lines {first.lines[0]} and {first.lines[1]} ({first.rewards[0]!r} and {first.rewards[1]!r})"
        )
        yield Finding("warning", text, "--rescore: the scorer is not deterministic, or it changed between the two")


def _profiles(summary: RolloutSummary) -> Iterator[Finding]:
    profiles = defaultdict(list)
    for env, profile in [*summary.parts, *summary.left_out]:
        profiles[env].append(profile)
    for env, names in profiles.items():
        if len(names) > 1:
            told = ", ".join(one_line(name, 40) or "(none)" for name in sorted(names)[:5])
            text = f"{one_line(env, 40)}: scores of {len(names)} profiles ({told}), which don't compare"
            yield Finding("warning", text, "each profile's section by itself")


def _broken(summary: RolloutSummary) -> Iterator[Finding]:
    for name, broken in list(summary.broken.items())[:5]:
        first = one_line(broken.id, 60)
        text = f"metric {one_line(name, 60)} is no finite number in {broken.count} answers (first: {first})"
        yield Finding("warning", text, "the scorer: what does it divide by?")


def _lengths(summary: RolloutSummary) -> Iterator[Finding]:
    for part in summary.parts.values():
        correlation = part.correlation
        if correlation is not None and abs(correlation) > 0.5 and len(part.lengths.values) >= _LEAST:
            what = "longer" if correlation > 0 else "shorter"
            text = f"{one_line(part.env, 40)}: {what} answers get more reward (rank correlation {correlation:.2f})"
            yield Finding("note", text, "length against reward: is it the length that is rewarded?")


def _jumps(part: PartSummary) -> Iterator[Finding]:
    parts = [one for one in part.timeline.parts if one.mean.count]
    others = {"the invalid share": invalid_series([one.invalid / one.count for one in parts])}
    for name in part.components:
        if name.rpartition("/")[2].startswith("kl") and all(name in one.means for one in parts):
            others[name] = kl_series([one.means[name].value for one in parts])
    of = "policy version" if part.over_versions else "line"
    for one in jumps([float(one.first) for one in parts], [one.mean.value for one in parts], others):
        yield jump_finding(one, of)


def rescored_findings(rescored: Rescored) -> Iterator[Finding]:
    """Scores that came out another way."""
    if rescored.different:
        text = f"{len(rescored.different)} of {rescored.count} answers scored again got another score"
        yield Finding("warning", text, "the differences below")
    if rescored.impossible:
        first = rescored.impossible[0]
        text = f"{len(rescored.impossible)} of the chosen answers could not be scored again: {first.what[0]}"
        yield Finding("warning", text, "whether the environment and its tasks are installed here")
