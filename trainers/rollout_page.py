"""What a page shows of scored answers, whether they are a run's or a file's; bounded however large the file is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError, Task, TaskError
from weightgym.rewards.explanation import Explanation, explain_alone
from weightgym.trainers.groups import KINDS, Group
from weightgym.trainers.part_summary import PartSummary
from weightgym.trainers.rollout_pictures import component_svg, lengths_svg, tasks_svg
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.scored_file import ScoredAnswer, ScoredFile, shown_message
from weightgym.trainers.token_view import Decode, Piece, decoder, pieces

#: Characters and tokens that are shown of one answer, and of its prompt; whole texts are in the file.
_SHOWN, _TOKENS = 20_000, 600
#: And messages: the first and the last of them.
_MESSAGES = 60
#: Rows of a table, and tasks in a picture.
_ROWS, _DRAWN = 100, 40
#: Environments and profiles that have pictures, and components of each.
_PARTS, _COMPONENTS = 4, 8
#: Samples in the order of the page, and what they are.
SAMPLES: Mapping[str, str] = {
    "best": "the best reward",
    "worst": "the lowest reward of an answer that could be read",
    "random": "chosen by a hash, whatever its reward",
    "invalid": "could not be read",
    "fault": "no reward through our fault",
}


@dataclass
class Shown:
    """One message, as it is shown."""

    role: str
    text: str
    more: int = 0  #: characters that are left out
    prompt: bool = False
    pieces: list[Piece] = field(default_factory=list)
    more_tokens: int = 0


@dataclass
class Answer:
    """One answer with all that is known of it."""

    record: ScoredAnswer
    messages: list[Shown]
    left_out: int  #: messages in the middle
    problem: str  #: why the prompt or the explanation is not there
    explanation: Explanation


def rollouts_content(summary: RolloutSummary, file: ScoredFile, decode: Decode | None, note: str) -> dict[str, Any]:
    """What ``rollouts.html.jinja`` shows. ``note`` says why tokens have no texts."""
    seen = _Seen(file, decode)
    parts = [part for _, part in sorted(summary.parts.items())]
    return {
        "rollouts": summary,
        "parts": [_part(part) for part in parts[:_PARTS]],
        "more_parts": len(parts[_PARTS:]) + len(summary.left_out),
        "reasons": summary.reasons[:_ROWS],
        "groups": [_group(kind, group, seen) for kind, group in summary.groups.shown.items()],
        "samples": list(_samples(summary, seen)),
        "duplicates": summary.duplicates,
        "repeated": [{"one": one, "text": seen.beginning(one.offset)} for one in summary.duplicates.most],
        "token_note": note,
        "file": file.path.name,
    }


def tokenizer_of(model: str, summary: RolloutSummary) -> tuple[Decode | None, str]:
    """The tokenizer that the stored tokens are of, if it is here; else None, and why. Nothing is fetched.

    Args:
        model: its folder, or ``tiny-writer``; "": that of the policy, where there is one only.
    """
    if not summary.has_tokens:
        return None, "No tokens are stored."
    if not model and len(summary.policies) == 1:
        model = next(iter(summary.policies)).partition(":")[2]
    if model != "tiny-writer" and not (model and Path(model).is_dir()):
        return None, "Tokens are shown as ids: --tokenizer DIR names the folder of the model's tokenizer."
    try:
        return decoder(model), ""
    except (ImportError, BackendError) as error:
        return None, f"Tokens are shown as ids: {error}"


def answer(record: ScoredAnswer, decode: Decode | None) -> Answer:
    """One answer with its prompt and how its score came about."""
    prompt: list[Shown] = []
    explanation, problem = explained(record)
    if record.asked:
        prompt = [Shown(_role(one), shown_message(one), prompt=True) for one in record.asked]
    elif not problem and record.prompt is None:
        try:
            prompt = [Shown(one["role"], one["content"], prompt=True) for one in _task(record, prompt=True).messages]
        except TaskError as error:
            problem = f"the prompt can't be made here: {error}"
    kept, left_out = _ends([*prompt, *_stored(record, decode)])
    return Answer(record, list(_cut(kept)), left_out, problem, explanation)


def explained(record: ScoredAnswer) -> tuple[Explanation, str]:
    """How the score came about, by its environment's explainer; or why there is no telling."""
    try:
        task = _task(record, prompt=False)
        return registry.spec(record.env).explain(task, record.completion, record.score), ""
    except (TaskError, ImportError) as error:
        why = str(error)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # numbers that no scorer of ours gives
        why = f"the explainer failed: {type(error).__name__}: {error}"
    return explain_alone(record.completion, record.score), f"told by the score alone: {why}"


def _task(record: ScoredAnswer, *, prompt: bool) -> Task:
    entry = registry.spec(record.env)
    return entry.tasks_under(record.score.profile or entry.default_profile).task(record.task, prompt=prompt)


def _stored(record: ScoredAnswer, decode: Decode | None) -> Iterator[Shown]:
    if record.prompt is not None:
        left = _TOKENS
        for place, step in enumerate(record.steps):
            shown = pieces(step, decode, left)
            used = sum(len(one.ids) for one in shown)
            left -= used
            text, more = shown_message(step.message), len(step.token_ids) - used
            yield Shown(step.role, text, prompt=place < record.prompt, pieces=shown, more_tokens=more)
    elif isinstance(record.completion, str):
        yield Shown("assistant", record.completion)
    else:
        for message in record.completion:
            yield Shown(_role(message), shown_message(message))


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    return role if isinstance(role, str) else "?"


def _ends(messages: list[Shown]) -> tuple[list[Shown], int]:
    """The first and the last messages, and how many are left out between them."""
    if len(messages) <= _MESSAGES:
        return messages, 0
    half = _MESSAGES // 2
    return messages[:half] + messages[-half:], len(messages) - 2 * half


def _cut(messages: list[Shown]) -> Iterator[Shown]:
    """Texts cut so that the prompt, and what follows it, have so many characters together at most."""
    left = {True: _SHOWN, False: _SHOWN}
    for one in messages:
        kept = one.text[: left[one.prompt]]
        left[one.prompt] -= len(kept)
        more = len(one.text) - len(kept)
        yield Shown(one.role[:40], kept, more, one.prompt, one.pieces, one.more_tokens)


@dataclass
class _Seen:
    """Answers of the file, read again where they are shown; each once."""

    file: ScoredFile
    decode: Decode | None
    _answers: dict[int, Answer] = field(default_factory=dict)

    def answer(self, offset: int, line: int) -> Answer:
        if offset not in self._answers:
            self._answers[offset] = answer(self.file.at(offset, line), self.decode)
        return self._answers[offset]

    def beginning(self, offset: int) -> str:
        record = self.file.at(offset)
        text = (
            record.completion
            if isinstance(record.completion, str)
            else "\n".join(map(shown_message, record.completion))
        )
        return text[:200] + ("…" if len(text) > 200 else "")


def _samples(summary: RolloutSummary, seen: _Seen) -> Iterator[dict[str, Any]]:
    for part, found in sorted(summary.samples.items())[:_PARTS]:
        for kind, what in SAMPLES.items():
            if one := found.get(kind):
                yield {"kind": kind, "what": what, "env": part[0], "answer": seen.answer(one.offset, one.line)}


def _group(kind: str, group: Group, seen: _Seen) -> dict[str, Any]:
    members = [seen.answer(offset, line) for offset, line in group.members.values]
    members.sort(key=lambda one: -(one.record.score.reward if one.record.score.reward is not None else float("-inf")))
    prompts = [[(shown.role, shown.text) for shown in one.messages if shown.prompt] for one in members]
    return {
        "kind": kind,
        "what": KINDS[kind],
        "group": group,
        "answers": members,
        "more": group.count - len(members),
        "one_prompt": all(prompt == prompts[0] for prompt in prompts),
    }


def _part(part: PartSummary) -> dict[str, Any]:
    rewards, timeline = part.rewards.values, part.timeline
    over = "policy version" if part.over_versions else "line of the file"
    drawn = [component_svg("reward", rewards, [(one.first, one.last, one.rewards) for one in timeline.parts], over)]
    varying = [name for name, values in part.components.items() if len(set(values.values)) > 1]
    for name in varying[:_COMPONENTS]:
        stretches = [
            (one.first, one.last, one.components[name].values) for one in timeline.parts if name in one.components
        ]
        drawn.append(component_svg(name, part.components[name].values, stretches, over))
    names = ["reward", *varying[:_COMPONENTS]]
    tasks = sorted(part.tasks.values(), key=lambda one: one.task)
    boxes = [(one.task, one.sample.values) for one in tasks if one.rewards][:_DRAWN]
    return {
        "part": part,
        "mean": part.mean.value if part.mean.count else None,
        "over": over,
        "pictures": [{"name": name, "svg": svg} for name, svg in zip(names, drawn, strict=True) if svg],
        "constant": {name: mean.value for name, mean in part.means.items() if name not in varying},
        "more": varying[_COMPONENTS:],
        "tasks": tasks_svg(boxes) if len(boxes) > 1 else None,
        "more_tasks": len(tasks) - len(boxes),
        "lengths": lengths_svg(part.lengths.values, "tokens" if part.in_tokens else "characters"),
        "unit": "tokens" if part.in_tokens else "characters",
        "columns": list(part.components)[:_COMPONENTS],
        "rows": [
            {"task": one, "means": {name: mean.value for name, mean in one.components.items()}} for one in tasks[:_ROWS]
        ],
    }
