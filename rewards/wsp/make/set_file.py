"""Making a set: what is missing of it, one instance after the other, each kept as it comes.

What is made goes into a journal in the private folder, a line each; at the end the set is written from it. A run that
was killed goes on with the same call. Needs the extra ``train``.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from weightgym.rewards.append import append_whole
from weightgym.rewards.contracts import Split, Task, TaskError, canonical_json
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.instances import InstanceKey, Truth, read_tasks, read_truths, write_instances
from weightgym.rewards.wsp.language_model import TINY_WORLD, LanguageModel
from weightgym.rewards.wsp.make.candidate import Rejected
from weightgym.rewards.wsp.make.generator import Made, Maker
from weightgym.rewards.wsp.make.tiny import TinyWorld
from weightgym.rewards.wsp.make.worlds import MakersWorld
from weightgym.rewards.wsp.profile import Family, Profile, Tier
from weightgym.rewards.wsp.sets import truth_folder

#: Family, tier, and a reason for which candidates were rejected (or ``kept``).
Counts = Counter[tuple[str, str, str]]
KEPT = "kept"

_LEAST_SECRET = 16


@dataclass(frozen=True)
class Wanted:
    """What a set is to have: ``count`` instances of every family and tier."""

    families: Sequence[Family]
    tiers: Sequence[Tier]
    count: int
    split: Split
    seed: int

    def keys(self, profile: str, model_hash: str) -> Iterator[InstanceKey]:
        """Their keys, in order."""
        for number in range(self.count):
            for family in self.families:
                for tier in self.tiers:
                    yield InstanceKey(profile, model_hash, family, tier, self.split, self.seed, number)


class SetFile:
    """The files of a set: the public ``NAME.jsonl``, the private folder ``NAME.truth`` and ``NAME.rejections.jsonl``.

    One process at a time.

    Raises:
        TaskError: they are damaged.
    """

    def __init__(self, public: Path) -> None:
        if public.suffix != ".jsonl":
            raise TaskError(f"output {public}: the name of a set ends in .jsonl")
        self.public, self.private = public, truth_folder(public)
        self._journal = self.private / "made.jsonl"
        self._report = public.with_suffix(".rejections.jsonl")
        self.counts: Counts = Counter()
        self.pairs: dict[InstanceKey, tuple[Task, Truth]] = {}
        self._read()

    @property
    def secret(self) -> bytes | None:
        """Of the instances that are there."""
        return next((bytes.fromhex(truth.secret) for _, truth in self.pairs.values()), None)

    def add(self, made: Made) -> None:
        """Keep an instance: a kill after this does not lose it.

        Raises:
            OSError: the disk is full, say.
        """
        key = made.truth.key
        reasons = [*(one.reason for one in made.rejected), KEPT]
        self.private.mkdir(parents=True, exist_ok=True, mode=0o700)
        row = {"task": made.task.model_dump(mode="json"), "truth": made.truth.model_dump(mode="json"), "of": reasons}
        with open(self._journal, "ab", buffering=0) as file:
            self._journal.chmod(0o600)
            append_whole(file, canonical_json(row).encode() + b"\n")
        self._take(key, made.task, made.truth, reasons)

    def write(self) -> None:
        """Write the set and the report of rejections; the journal is not needed any more.

        Raises:
            TaskError, OSError: as ``write_instances``.
        """
        write_instances(self.public, self.private, list(self.pairs.values()))
        rows = [{"family": f, "tier": t, "reason": r, "count": n} for (f, t, r), n in sorted(self.counts.items())]
        self._report.write_text("".join(canonical_json(row) + "\n" for row in rows))
        self._journal.unlink(missing_ok=True)

    def _read(self) -> None:
        if self.public.exists():
            tasks = read_tasks(self.public)
            truths = read_truths(self.private, tasks)
            self.pairs = {truths[id].key: (task, truths[id]) for id, task in tasks.items()}
            if self._report.exists():
                rows = map(json.loads, self._report.read_text().splitlines())
                self.counts.update({(row["family"], row["tier"], row["reason"]): row["count"] for row in rows})
        if self._journal.exists():
            self._read_journal(self._journal.read_bytes())

    def _read_journal(self, content: bytes) -> None:
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:  # a run was killed while it wrote
            self._journal.write_bytes(whole)
        for line in whole.splitlines():
            try:
                row: dict[str, JsonValue] = json.loads(line)
                task = Task.model_validate(row["task"])
                truth = Truth.model_validate_json(canonical_json(row["truth"]))
            except (ValidationError, ValueError, KeyError, TypeError) as error:
                raise TaskError(f"{self._journal} is damaged: {one_line(str(error))}") from error
            if truth.key not in self.pairs:
                self._take(truth.key, task, truth, row["of"])

    def _take(self, key: InstanceKey, task: Task, truth: Truth, reasons: Any) -> None:
        self.pairs[key] = (task, truth)
        self.counts.update((key.family, key.tier, reason) for reason in reasons)


def make_set(
    file: SetFile,
    base: LanguageModel,
    wanted: Wanted,
    profile: Profile,
    *,
    secret: bytes | None,
    masking: bool,
    done: Callable[[InstanceKey], None],
    rejected: Callable[[InstanceKey, Rejected], None] = lambda key, reason: None,
) -> None:
    """Make what is missing, and write the set. ``done`` is called for each instance, those of earlier runs too;
    ``rejected`` for each candidate that is none.

    Args:
        secret: 16 bytes at least; None: that of the file, or a new one.

    Raises:
        TaskError: the file has another secret, an instance can't be made, or the base model can't be one.
    """
    known = file.secret
    if secret is not None and (len(secret) < _LEAST_SECRET or known not in (None, secret)):
        what = f"under {_LEAST_SECRET} bytes" if len(secret) < _LEAST_SECRET else "not that of the set"
        raise TaskError(f"the secret is {what}: take another file")
    maker = Maker(base, world_of(base), secret or known or secrets.token_bytes(32), profile, masking)
    for key in wanted.keys(profile.name, maker.model_hash):
        if key not in file.pairs:
            file.add(maker.make(key, partial(rejected, key)))
        done(key)
    file.write()


def world_of(base: LanguageModel) -> MakersWorld:
    """What a base model knows: tiny-world its own world, all others a plain one."""
    if base.name == TINY_WORLD:
        return TinyWorld()
    from weightgym.rewards.wsp.make.plain import PlainWorld

    return PlainWorld(base)
