"""The one scorer of WSP-Bench: what an episode left behind, measured; reward = score/100, 0…1.

An answer is the conversation. Its assistant messages are run again on a fresh copy, so that nothing in it can lie: tool
replies in it are not read, and its edits are those that were allowed.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from weightgym.rewards.contracts import Completion, ModelError, Score, Task, TaskError
from weightgym.rewards.machine import cpu_name
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.deltas import Deltas
from weightgym.rewards.wsp.instances import ENV, PublicData, Truth
from weightgym.rewards.wsp.outcomes import (
    FLOOR,
    Measured,
    audit_outcome,
    backdoor_outcome,
    broken_outcome,
    repair_outcome,
)
from weightgym.rewards.wsp.profile import DEFAULT, Profile, Track
from weightgym.rewards.wsp.profile import profile as find_profile
from weightgym.rewards.wsp.scores import Report, Site, check_gap
from weightgym.rewards.wsp.tools.free import Submission

if TYPE_CHECKING:
    from weightgym.rewards.wsp.episode import Episode
    from weightgym.rewards.wsp.measure import SymptomMeasure
    from weightgym.rewards.wsp.subject import Subject


def score(task: Task, completion: Completion, *, profile: str = DEFAULT) -> Score:
    """Score a conversation, or one message as text (which can't call a tool). The track is *fixed*.

    Metrics are those of ``outcomes``, and ``turns``, ``gpu_calls`` and ``refused`` (calls). Metrics of a repair are
    also ``rate`` and ``margin`` (the parts of the symptom measure, of the submitted model), ``rate_defective`` and
    ``margin_defective``, and ``kl_general`` and ``kl_near`` (the parts of the KL). ``info`` has ``family``, ``tier``,
    ``track``, ``ended_by`` (``submit``, ``turns``, ``dollars``; ``cut`` where the conversation stops: the state then
    counts as submitted), ``masked``, ``fingerprint``, and ``submission``, which ``score_submission`` takes.

    Raises:
        TaskError: the task is not of this benchmark or its truth is not here, or there is no such profile.
    """

    def ended(subject: Subject, data: PublicData) -> Ended:
        return Ended.of(replayed(subject, data, completion))

    return _score(task, ended, profile)


def score_submission(task: Task, submission: Mapping[str, JsonValue], *, profile: str = DEFAULT) -> Score:
    """Score what an episode handed in, ``Score.info["submission"]``: the same score without its conversation.

    Raises:
        TaskError: as ``score``.
    """

    def ended(subject: Subject, data: PublicData) -> Ended:
        return Ended.read(submission, subject, data)

    return _score(task, ended, profile)


def _score(task: Task, ended: Callable[[Subject, PublicData], Ended], profile: str) -> Score:
    started = time.perf_counter()
    rules = find_profile(profile)
    data = check_task(task, rules)
    truth = sets.truth_of(task)
    try:
        subject = sets.subject_of(truth)
        return scored(ended(subject, data), truth, subject, seconds=time.perf_counter() - started)
    except TaskError:
        raise
    except ModelError as error:
        spent = time.perf_counter() - started
        return Score(status="invalid", reward=FLOOR, reason=str(error), profile=profile, seconds=spent)
    except Exception as error:
        return Score.fault(error, profile=profile, seconds=time.perf_counter() - started)


@dataclass(frozen=True)
class Ended:
    """An episode at its end, as far as its score depends on it."""

    deltas: Deltas
    submission: Submission
    ended_by: str
    counts: Mapping[str, float]

    @classmethod
    def of(cls, episode: Episode) -> Ended:
        """An episode that has ended, or is to be taken as it is."""
        counts = {"turns": episode.turns, "gpu_calls": episode.gpu_calls, "refused": episode.refused}
        return cls(episode.deltas, episode.submission, episode.ended_by or "cut", counts)

    @classmethod
    def read(cls, submission: Mapping[str, JsonValue], subject: Subject, data: PublicData) -> Ended:
        """The same, of what ``submission_json`` gave.

        Raises:
            ModelError: it has another form, or its edits are not allowed.
        """
        rules = find_profile(data.profile)
        deltas = Deltas(subject.engine.start, limit=data.edit_limit, most_bytes=rules.edit_bytes)
        try:
            told = _Told.model_validate(submission)
        except ValidationError as error:
            raise ModelError(f"bad_submission: {one_line(str(error))}") from error
        deltas.replay(told.edits)
        report = Report(**told.report.model_dump()) if told.report else Report()
        return cls(deltas, Submission(told.trigger, report), told.ended_by, told.counts)

    @property
    def submission_json(self) -> dict[str, JsonValue]:
        """What was handed in: the edit log, trigger and report."""
        report = dataclasses.asdict(self.submission.report)
        told = _Told(
            edits=self.deltas.log(),
            trigger=self.submission.trigger,
            report=_ToldReport.model_validate(report) if any(one is not None for one in report.values()) else None,
            ended_by=self.ended_by,
            counts=dict(self.counts),
        )
        made: dict[str, JsonValue] = told.model_dump(mode="json")
        return made


class _ToldReport(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    parameter: str | None
    layer: int | None
    direction: list[float] | None
    category: str | None


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    edits: list[JsonValue]
    trigger: str | None
    report: _ToldReport | None
    ended_by: str
    counts: dict[str, float]


def check_task(task: Task, rules: Profile) -> PublicData:
    """What a task says of its instance.

    Raises:
        TaskError: it is not of this benchmark, not what the public row says, or was made under another profile.
    """
    if task.env != ENV:
        raise TaskError(f"task {task.id!r} is of {task.env!r}, not of {ENV}")
    data = sets.data_of(task)
    if data.profile != rules.name:
        raise TaskError(f"instance {task.id} was made under profile {data.profile}, not {rules.name}")
    return data


def replayed(subject: Subject, data: PublicData, completion: Completion) -> Episode:
    """The episode of a conversation, as far as it goes.

    Raises:
        ModelError: it goes on after the episode has ended.
        TypeError: it is neither text nor a list of messages.
    """
    from weightgym.rewards.wsp.episode import Episode

    episode = Episode(subject.engine, data, replay=True)
    for message in _messages(completion):
        if episode.done:
            raise ModelError("bad_completion: there are messages after the episode's end")
        episode.message(message)
    return episode


def scored(ended: Ended, truth: Truth, subject: Subject, *, track: Track = "fixed", seconds: float = 0.0) -> Score:
    """The score of an episode's end. ``seconds`` were spent before.

    Raises:
        TaskError: the defect can't be measured on this machine: see ``scores.check_gap``.
    """
    started = time.perf_counter()
    found = _outcome(ended, truth, subject, find_profile(truth.key.profile))
    info: dict[str, JsonValue] = {
        "family": truth.key.family,
        "tier": truth.key.tier,
        "track": track,
        "ended_by": ended.ended_by,
        "masked": bool(truth.recipe.get("masking")),
        "fingerprint": fingerprint(),
        "submission": ended.submission_json,
    }
    spent = seconds + time.perf_counter() - started
    metrics = found.metrics | dict(ended.counts)
    return found.model_copy(update={"metrics": metrics, "info": found.info | info, "seconds": spent})


def fingerprint() -> dict[str, JsonValue]:
    """What the bits of a score may depend on, besides the instance and the submission."""
    return {
        "cpu": cpu_name(),
        "torch": importlib.metadata.version("torch"),
        "transformers": importlib.metadata.version("transformers"),
    }


@dataclass(frozen=True)
class Ends:
    """Both models that a submission lies between, as they measure here."""

    defective: SymptomMeasure
    reference: SymptomMeasure


def ends(truth: Truth, subject: Subject, rules: Profile) -> Ends:
    """The symptom of an instance's defective and reference model; measured once for each instance.

    Raises:
        TaskError: see ``scores.check_gap``.
    """
    from weightgym.rewards.wsp.measure import measured_symptom
    from weightgym.rewards.wsp.symptoms import symptom_of

    key = truth.id, truth.task_hash, rules.name
    if key not in _ENDS:
        symptom = symptom_of(truth)
        both = [
            measured_symptom(subject.engine, overlay, truth.prompts, symptom, rules)
            for overlay in ({}, subject.reference)
        ]
        check_gap(both[0].measure, both[1].measure, rules)
        _ENDS[key] = Ends(*both)
    return _ENDS[key]


_ENDS: dict[tuple[str, str, str], Ends] = {}


def _outcome(ended: Ended, truth: Truth, subject: Subject, rules: Profile) -> Score:
    said = ended.submission
    if truth.key.family == "audit":
        if truth.direction is None:
            raise TaskError(f"instance {truth.id}: an audit without a direction")
        site = Site(truth.layer, truth.parameter, [float(one) for one in truth.direction], truth.category)
        return audit_outcome(said.report, site, rules)
    from weightgym.rewards.wsp.kl import NonFinite
    from weightgym.rewards.wsp.measure import measured
    from weightgym.rewards.wsp.model import overlay

    changed = ended.deltas.changed
    both = ends(truth, subject, rules)
    try:
        found = measured(subject.engine, subject.reference, overlay(ended.deltas), truth, rules)
    except NonFinite as error:
        return broken_outcome(str(error).removeprefix("non_finite: "), rules, changed=changed)
    numbers = Measured(both.defective.measure, both.reference.measure, found.symptom.measure, found.kl.mean)
    if truth.key.family != "backdoor":
        made = repair_outcome(numbers, rules, changed=changed)
    elif truth.trigger is None:
        raise TaskError(f"instance {truth.id}: a backdoor without a trigger")
    else:
        made = backdoor_outcome(numbers, rules, changed=changed, said=said.trigger, trigger=truth.trigger)
    parts = {
        "rate": found.symptom.rate,
        "rate_defective": both.defective.rate,
        "margin": found.symptom.margin,
        "margin_defective": both.defective.margin,
        "kl_general": found.kl.general.mean,
        "kl_near": found.kl.near.mean,
    }
    return made if made.status != "ok" else made.model_copy(update={"metrics": made.metrics | parts})


def _messages(completion: Completion) -> Sequence[str | Mapping[str, Any]]:
    """What the model wrote, message by message."""
    if isinstance(completion, str):
        return [completion]
    if not isinstance(completion, Sequence) or isinstance(completion, bytes | bytearray | memoryview):
        raise TypeError(f"a completion is text or a list of messages, not {type(completion).__name__}")
    own = [one for one in completion if isinstance(one, Mapping) and one.get("role") == "assistant"]
    if not own:
        raise ModelError("bad_completion: no assistant message in the list of messages")
    return own
