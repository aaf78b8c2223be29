"""Outputs on disk, a JSON line each, written as they come; a run that was killed goes on without repeats."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from weightgym.rewards.append import append_whole
from weightgym.rewards.contracts import SandboxError, canonical_json
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.evaluators import Evaluates
from weightgym.rewards.golf.output import MAX_BYTES, Output, OutputError, parse_output, source_sha256
from weightgym.rewards.golf.reading import VERSION
from weightgym.rewards.golf.schedule import evaluate_all

#: How every line begins: what doesn't is never taken for half a line of ours, and cut off.
LINE_START = b'{"status":'


def read_outputs(lines: BinaryIO, name: str) -> Iterator[tuple[Output, int]]:
    """The outputs of a file and the bytes of their lines. Half a last line (the run was killed as it wrote it) is left
    out.

    Raises:
        OutputError: another line is no output; the message names it.
    """
    number = 0
    while line := lines.readline(MAX_BYTES + 1):
        number += 1
        if len(line) <= MAX_BYTES and not line.endswith(b"\n") and line[: len(LINE_START)] == LINE_START[: len(line)]:
            return
        try:
            yield parse_output(line), len(line)
        except OutputError as error:
            raise OutputError(f"{name}:{number} is no output of the scorer: {error}") from None


def run_key(sha256: str, profile: str, corpus: Mapping[str, Any], evaluator: str) -> str:
    """What makes two runs one, besides the machine: the solution, the profile, the bytes and the evaluator."""
    return canonical_json([sha256, profile, corpus, evaluator])


class Saved:
    """A file of outputs that is being written, by one process at a time (which the caller sees to). An existing one is
    gone on with.

    Raises:
        OutputError: the file is something else.
        OSError: it can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: dict[str, list[Output]] = {}
        self._file = path.open("a+b", buffering=0)
        try:
            self._recover()
        except BaseException:
            self._file.close()
            raise

    def _recover(self) -> None:
        self._file.seek(0)
        whole = 0
        with open(self._file.fileno(), "rb", closefd=False) as lines:
            for output, size in read_outputs(lines, str(self.path)):
                self._keep(output)
                whole += size
        self._file.truncate(whole)

    def _keep(self, output: Output) -> None:
        key = run_key(output.source_sha256, output.profile, output.corpus, output.evaluator)
        self._kept.setdefault(key, []).append(output)

    def find(self, key: str, fingerprint: Mapping[str, Any] | None) -> Output | None:
        """The last output of that run (see :func:`run_key`) on a machine of that fingerprint (None: on any)."""
        for output in reversed(self._kept.get(key, [])):
            if fingerprint is None or output.fingerprint == fingerprint:
                return output
        return None

    def add(self, output: Output) -> None:
        """Write one, at once and whole or not at all.

        Raises:
            OSError: the disk is full, say; what was written before is whole.
        """
        append_whole(self._file, output.model_dump_json().encode() + b"\n")
        self._keep(output)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def check_replaceable(path: Path) -> None:
    """Make sure, before a long run, that an output can be written there and replaces nothing but an output.

    Raises:
        OutputError: there is something else, or no folder.
    """
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path.parent} is no folder that can be written to")
    if not os.path.lexists(path):
        return
    try:
        if path.is_symlink() or not path.is_file():
            raise OutputError("it is no regular file")
        with path.open("rb") as file:
            parse_output(file.read(MAX_BYTES + 1))
    except OutputError as error:
        raise OutputError(f"{path} is no output of the scorer ({error}), so it is not replaced: name another") from None


def write_output(path: Path, output: Output) -> None:
    """Write one output for people and programs; nobody sees half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(output.model_dump_json(indent=2).encode() + b"\n")
    partial.replace(path)


def outputs(
    evaluator: Evaluates, sources: Sequence[bytes], corpus: Corpus, saved: Saved | None = None
) -> Generator[Output | SandboxError]:
    """The output of every source, in their order, each run once. What ``saved`` has is not run, what it lacks is added.

    A ``SandboxError`` (ours) stands in the place of an output that could not be made; it is not saved.
    """
    done: dict[str, Output | SandboxError] = {}
    todo: dict[str, bytes] = {}
    digests = [source_sha256(raw) for raw in sources]
    machine = getattr(evaluator, "fingerprint", None)  # of one far away it is known after a run
    for digest, raw in zip(digests, sources, strict=True):
        key = run_key(digest, evaluator.profile.name, corpus.origin, VERSION)
        if saved and (kept := saved.find(key, machine)):
            done[digest] = kept
        else:
            todo[digest] = raw
    results = evaluate_all(evaluator, todo.items(), corpus)
    for digest in digests:
        while digest not in done:
            one, result = next(results)
            if isinstance(result, SandboxError):
                done[one] = result
                continue
            done[one] = output = Output.of(result)
            if saved:
                saved.add(output)
        yield done[digest]
