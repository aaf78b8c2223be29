"""Recorded answers as a policy: they are scored again, or a trainer is looked at, without any model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError, ModelError, TaskError, completion_text
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.jobs import sample_index
from weightgym.rollouts.trajectory import Step, Trajectory


class ReplayBackend:
    """Answers with what a file holds: trajectories, or ``{"env": …, "task": …, "completion": …}`` lines.

    A request gets the trajectory of its own id. Where there is none, sample ``n`` of a task gets that task's n-th
    recording: trajectories by group and index within it, other lines as they stand. In a conversation the n-th turn
    gets the n-th recorded message of the assistant. Tokens, log-probabilities and policy version are the recorded ones.

    Only the places of the lines are kept in memory. A last line that was cut off is left out.

    Raises:
        BackendError: the file can't be read, or holds another kind of line; the message names it.
    """

    tokenizer = None
    batch_size = 64
    lanes = 1
    context = None

    def __init__(self, path: Path) -> None:
        self.name = f"replay:{path}"
        self._path = path
        self._places: dict[str, int] = {}  # of trajectories: where the line begins, by id
        self._tasks: dict[tuple[str, str], list[int]] = {}
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise BackendError(f"can't read {path}: {error.strerror}") from error
        try:
            self._index()
        except BaseException:
            self._file.close()
            raise

    def _index(self) -> None:
        """Note where lines begin. The last trajectory of an id stands: a resumed run may have made it again."""
        groups: dict[str, int] = {}
        order: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        place = 0
        for number, line in enumerate(self._file, start=1):
            begin, place = place, place + len(line)
            row = self._row(number, line)
            if row is None:
                continue
            if "steps" not in row:
                self._tasks.setdefault(_key(row), []).append(begin)
                continue
            id = str(row.get("id"))
            self._places[id] = begin
            group = groups.setdefault(str(row.get("group")), len(groups))
            order.setdefault(_key(row), {})[id] = group, sample_index(id)
        for key, ids in order.items():
            self._tasks.setdefault(key, []).extend(self._places[id] for id in sorted(ids, key=lambda id: ids[id]))

    def _row(self, number: int, line: bytes) -> dict[str, Any] | None:
        if not line.strip():
            return None
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n"):
                return None  # whoever wrote it was killed
            raise BackendError(f"{self._path}:{number} is no JSON: {error}") from error
        if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("env", "task")):
            raise BackendError(f"{self._path}:{number} is no recording: it names no env and task")
        if "steps" not in row and not isinstance(row.get("completion"), str | list):
            raise BackendError(f"{self._path}:{number} is no recording: it has neither steps nor a completion")
        return row

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """What is recorded for each request; ``sampling`` changes nothing."""
        return [self._sample(request) for request in requests]

    def _sample(self, request: Request) -> Sample:
        index = sample_index(request.id)
        recorded = self._tasks.get(request.task.key, [])
        place = self._places.get(request.id, recorded[index] if 0 <= index < len(recorded) else None)
        wanted = f"sample {index} of task {request.task.id} ({request.task.env})"
        if place is None:
            raise BackendError(f"{self._path} has no {wanted}: {len(recorded)} are recorded")
        try:
            turns = self._turns(place, request)
            for one in turns:
                one.content.encode()  # JSON can carry half a surrogate pair; a trajectory can't
        except (ValidationError, ModelError, AttributeError, UnicodeEncodeError) as error:
            raise BackendError(f"{self._path}: {wanted} can't be read: {' '.join(str(error).split())}") from error
        turn: int = sum(message["role"] == "assistant" for message in request.messages)
        if turn >= len(turns):
            raise BackendError(f"{self._path} has no turn {turn + 1} of {wanted}: {len(turns)} are recorded")
        return turns[turn]

    def _turns(self, place: int, request: Request) -> list[Sample]:
        """One sample a message of the assistant, those of the prompt included."""
        self._file.seek(place)
        line = self._file.readline()
        row = json.loads(line)
        if "steps" in row:
            return _recorded_turns(Trajectory.model_validate_json(line), request.id)
        messages = row["completion"]
        if isinstance(messages, str):
            messages = [{"role": "assistant", "content": messages}]
        return [
            Sample(
                request.id,
                completion_text([message]),
                "stop",
                tool_calls=tuple(message.get("tool_calls") or ()) or None,
            )
            for message in (*request.task.messages, *messages)
            if message.get("role") == "assistant"
        ]

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Nothing: recorded answers keep their version, so that a trainer sees how old they are."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _recorded_turns(trajectory: Trajectory, id: str) -> list[Sample]:
    steps = [step for step in trajectory.steps if step.role == "assistant"]
    return [_recorded(step, trajectory, id, last=step is steps[-1]) for step in steps]


def _recorded(step: Step, trajectory: Trajectory, id: str, *, last: bool) -> Sample:
    return Sample(
        id,
        step.content,
        trajectory.finish_reason if last else "stop",
        tuple(token for token, sampled in zip(step.token_ids, step.mask, strict=True) if sampled),
        tuple(value for value, sampled in zip(step.logprobs, step.mask, strict=True) if sampled),
        trajectory.policy_version,
        step.tool_calls or None,
    )


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    """Plain lines may name an environment by its Gymnasium id."""
    try:
        return registry.spec(row["env"]).name, row["task"]
    except TaskError:
        return row["env"], row["task"]  # one that is not registered here: nobody will ask for it


def open_backend(name: str, options: BackendOptions) -> ReplayBackend:
    """For ``backends.open_backend``.

    Raises:
        BackendError: see the class.
    """
    return ReplayBackend(Path(name))
