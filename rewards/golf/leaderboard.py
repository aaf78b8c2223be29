"""Texts of records: the leaderboard, a record's README, its patch. All are made from outputs of the scorer.

What they hold of a solution or of a file on disk is data: it is shown as code, so that it can't become markup.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from weightgym.rewards.contracts import canonical_json
from weightgym.rewards.golf.config import DEFAULTS
from weightgym.rewards.golf.output import Output

_LONGEST = 200
#: Lines of a file that is compared line by line; a longer one is shown as replaced (the comparison is quadratic).
_MOST_LINES = 5_000
_HEAD = """\
# Records of Golf

Made by `weightgym golf leaderboard` from the evaluator's outputs in these folders; edits are lost. The order is that of
val_bpb (bits a byte, fewer are better), then artifact bytes, then runtime.
"""


class Ranked(Protocol):
    """A record, as far as a table needs it."""

    @property
    def id(self) -> str: ...
    @property
    def output(self) -> Output: ...


One = TypeVar("One", bound=Ranked)


def code(text: str) -> str:
    """Text of unknown origin as a Markdown code span, which also holds in a cell of a table."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_LONGEST])
    shown = shown.replace("`", "'").replace("|", "/").strip()
    return f"`{shown}{'…' if len(text) > _LONGEST else ''}`" if shown else ""


def place(record: Ranked) -> tuple[float, int, float, str]:
    """What records are sorted by: val_bpb, artifact bytes, runtime, and the id where all are equal."""
    output = record.output
    if output.val_bpb is None or output.artifact_bytes is None:
        raise ValueError(f"{record.id} has no score")
    return output.val_bpb, output.artifact_bytes, output.runtime_s, record.id


def contest(output: Output) -> str:
    """Outputs compare where this is equal: profile and corpus."""
    return canonical_json([output.profile, output.corpus])


def tables(records: Iterable[One]) -> dict[str, list[One]]:
    """The records of each contest, best first."""
    found: dict[str, list[One]] = {}
    for record in sorted(records, key=lambda one: (contest(one.output), *place(one))):
        found.setdefault(contest(record.output), []).append(record)
    return found


def contest_name(output: Output) -> str:
    """Profile and corpus of an output, for people."""
    corpus = output.corpus
    return f"{output.profile}, {corpus.get('task') or corpus.get('kind')} ({str(corpus.get('val_sha256'))[:12]})"


def page(records: Iterable[Ranked]) -> str:
    """The leaderboard."""
    parts = [_HEAD]
    for ranked in tables(records).values():
        lines = [f"## {code(contest_name(ranked[0].output))}", "", *_rows(ranked)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _rows(ranked: list[Ranked]) -> Iterator[str]:
    yield "| # | record | val_bpb | artifact bytes | runtime (s) | method | hardware | evaluator |"
    yield "|--:|---|--:|--:|--:|---|---|---|"
    for number, record in enumerate(ranked, start=1):
        out = record.output
        bpb, size, runtime, id = place(record)
        hardware = f"{out.fingerprint.get('device')}, torch {out.fingerprint.get('torch')}"
        cells = [str(number), f"[{id}]({id}/)", f"{bpb:.5f}", f"{size:,}", f"{runtime:,.1f}",
                 code(", ".join(out.method_profile)), code(hardware), code(out.evaluator)]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def readme(id: str, output: Output, base: Ranked | None) -> str:
    """A record's README; ``base`` is the record that it is compared with (None: the baseline)."""
    against = "the baseline (the default configuration)" if base is None else f"[{base.id}](../{base.id}/)"
    seconds = ", ".join(f"{phase} {used:,.1f}" for phase, used in output.cpu_s.items())
    changed = {name: value for name, value in output.config.items() if value != DEFAULTS.get(name)}
    rows: dict[str, str] = {
        "val_bpb": f"{output.val_bpb:.6f}",
        "artifact bytes": f"{output.artifact_bytes:,} (claimed {output.claimed_bytes:,}, audited "
        f"{output.audited_bytes:,}, source {output.source_bytes:,})",
        "parameters": "unknown" if output.param_count is None else f"{output.param_count:,}",
        "runtime": f"{output.runtime_s:,.1f} s; CPU-seconds: {seconds}",
        "method": code(", ".join(output.method_profile)),
        "config": code(", ".join(f"{name} = {value}" for name, value in changed.items()) or "the defaults"),
        "scored on": code(contest_name(output)),
        "hardware": code(canonical_json(output.fingerprint)),
        "evaluator": code(output.evaluator),
        "SHA-256 of solution.py": output.source_sha256,
        "compared with": against + _better(output, base),
    }
    lines = [f"# {id}", "", "| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items()), ""]
    return "\n".join([*lines, "`result.json` is the evaluator's output, `diff.patch` the difference in source.", ""])


def _better(output: Output, base: Ranked | None) -> str:
    if base is None or output.val_bpb is None:
        return ""
    return f": val_bpb {output.val_bpb - place(base)[0]:+.6f}"


def baseline_source() -> str:
    """What a solution is when it changes nothing."""
    keys = "".join(f'        "{name}": {value!r},\n' for name, value in DEFAULTS.items())
    return f"def get_config() -> dict:\n    return {{\n{keys}    }}\n"


def patch(before: str, after: str, before_name: str, after_name: str) -> str:
    """The unified difference of two sources; applying it to the first one gives the second one."""
    old, new = _lines(before), _lines(after)
    if max(len(old), len(new)) > _MOST_LINES:
        head = [f"--- {before_name}\n", f"+++ {after_name}\n", f"@@ -1,{len(old)} +1,{len(new)} @@\n"]
        body = [*head, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    else:
        body = list(difflib.unified_diff(old, new, before_name, after_name))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body)


def _lines(text: str) -> list[str]:
    """Its lines, cut at ``\\n`` alone, as ``patch`` does."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
