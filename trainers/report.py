"""A run's report: what its files say, as data. The page, the terminal and ``--json`` all show this."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weightgym.trainers.findings import Finding, LimitUse, findings, limits, trend, warnings_first
from weightgym.trainers.metrics import MEANINGS
from weightgym.trainers.rescore import Rescored
from weightgym.trainers.rollout_findings import rescored_findings, rollout_findings
from weightgym.trainers.rollout_summary import RolloutSummary, rollouts_summary
from weightgym.trainers.run_folder import Run, RunError
from weightgym.trainers.scored_file import ScoredFile

#: Sections of metrics in their order, each with the prefixes before "/" that belong to it. What has another prefix gets
#: a section of its own, after these.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Reward": ("reward",),
    "Evaluation": ("eval",),
    "Health": ("rollout", "group"),
    "Sampler": ("sampling",),
    "Loss and gradient": ("loss", "optimiser"),
    "Speed": ("speed", "seconds"),
}
#: Fields of a configuration, or whole sections, that say in brief what was run.
_BRIEF = (
    "model", "environments", "mode", "backend.kind", "parameters.kind", "steps", "seed",
    "rollout.groups", "rollout.group_size", "rollout.max_tokens", "rollout.temperature", "loss.name",
    "optimiser.learning_rate",
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """Everything that is shown of a run."""

    run: Run
    rollouts: RolloutSummary | None  #: None: the run has no file of rollouts
    findings: list[Finding]
    limits: list[LimitUse]
    rescored: Rescored | None = None

    def checked(self, check: Callable[[ScoredFile], Rescored]) -> Report:
        """The same with some rollouts scored again.

        Raises:
            RunError: the run has no rollouts.
        """
        if self.rollouts is None:
            raise RunError(f"{self.run.folder} has no rollouts.jsonl: nothing to score again")
        rescored = check(ScoredFile(self.run.rollouts))
        found = warnings_first([*self.findings, *rescored_findings(rescored)])
        return dataclasses.replace(self, findings=found, rescored=rescored)


def make_report(run: Run) -> Report:
    """Read the run's rollouts, however many, and look at everything.

    Raises:
        StoreError: a line of rollouts.jsonl is no trajectory.
    """
    rollouts = None
    found = findings(run)
    if run.rollouts.exists():
        rollouts = RolloutSummary(run.done).add_all(ScoredFile(run.rollouts, strict=True))
        found += rollout_findings(rollouts)
    return Report(run, rollouts, warnings_first(found), limits(run))


def summary(report: Report) -> dict[str, Any]:
    """The report as JSON: numbers, no prompts and completions."""
    run, rollouts = report.run, report.rollouts
    reward = trend(run, "reward/mean")
    return {
        "run": str(run.folder),
        "config": brief(run.config),
        "steps": {"done": run.done, "planned": run.planned},
        "reward": dataclasses.asdict(reward) if reward else None,
        "evaluations": run.evaluations,
        "last": run.steps[-1] if run.steps else None,
        "limits": [dataclasses.asdict(used) | {"near": used.near} for used in report.limits],
        "events": [event.model_dump(mode="json") for event in run.events],
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
        "rollouts": rollouts_summary(rollouts) if rollouts else None,
        "rescored": dataclasses.asdict(report.rescored) if report.rescored else None,
    }


def brief(config: Mapping[str, Any]) -> dict[str, str]:
    """The fields that say what was run."""
    flat = flatten(config)
    return {
        name: value
        for wanted in _BRIEF
        for name, value in flat.items()
        if name == wanted or name.startswith(f"{wanted}.")
    }


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Every field that is set, with its dotted name, as text; a list of plain values is one field."""
    flat: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            value = {str(index): one for index, one in enumerate(value)}
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            flat[prefix + name] = ", ".join(map(str, value)) or "–"
        elif value is not None:
            flat[prefix + name] = str(value)
    return flat


def sections(names: Iterable[str]) -> dict[str, list[str]]:
    """Those metrics by section, both in the order of ``SECTIONS`` and ``MEANINGS``; ``step`` is in none."""
    order = {name: index for index, name in enumerate(MEANINGS)}
    wanted = sorted(set(names) - {"step"}, key=lambda name: (order.get(name, len(order)), name))
    prefixes = {prefix: title for title, members in SECTIONS.items() for prefix in members}
    titles = {name: prefixes.get(name.partition("/")[0], name.partition("/")[0]) for name in wanted}
    ordered = dict.fromkeys(itertools.chain(SECTIONS, titles.values()))
    grouped = {title: [name for name in wanted if titles[name] == title] for title in ordered}
    return {title: members for title, members in grouped.items() if members}
