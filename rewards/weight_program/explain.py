"""How a score of WeightProgramBench came about: block, statements, weights, episodes, cap."""

from __future__ import annotations

import numpy as np

from weightgym.rewards.contracts import Completion, Score, Task, completion_text
from weightgym.rewards.explanation import Explanation, Step, answer_step, number, quoted, reward_step
from weightgym.rewards.weight_program.edits import Edits, parse_edits
from weightgym.rewards.weight_program.fence import JOIN, Block, EditsError, find_block
from weightgym.rewards.weight_program.network import PARAMETERS, tensors

#: Lines around an error that are shown.
_AROUND = 2
#: Characters of each of them.
_WIDTH = 160


def explain(task: Task, completion: Completion, score: Score) -> Explanation:
    """Read the answer again, as the scorer does; the episodes are those of the score and are not played again."""
    answer = answer_step(completion)
    if answer.verdict == "failed":
        return answer, reward_step(score)
    text = completion_text(completion)
    steps = [Step("answer", answer.text)]  # the block is quoted
    try:
        block = find_block(text)
    except EditsError as error:
        return *steps, _failed("block", error, text), reward_step(score)
    steps.append(_block(block))
    try:
        edits = parse_edits(text)
    except EditsError as error:
        return *steps, _failed("statements", error, text), _recorded(score, error), reward_step(score)
    steps += [_statements(edits), _weights(edits)]
    if score.status == "ok":
        return *steps, _episodes(score), reward_step(score, _formula(score))
    return *steps, _recorded(score, None), reward_step(score)


def _block(block: Block) -> Step:
    lines = block.source.count("\n")
    text = f"The last block that opens with ```edits: lines {block.first_line} to {block.first_line + lines - 1}."
    return Step("block", text, "passed", quote=quoted(block.source))


def _failed(title: str, error: EditsError, text: str) -> Step:
    return Step(title, f"The first error: {error}", "failed", quote=_place(error, text))


def _place(error: EditsError, text: str) -> str:
    """The line at fault with its neighbours, and a mark under the column."""
    if error.line is None or error.column is None:
        return ""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace(JOIN, " ").split("\n")
    first = max(1, error.line - _AROUND)
    shown = []
    for row in range(first, min(len(lines), error.line + _AROUND) + 1):
        at = max(0, error.column - 1 - _WIDTH // 2) if row == error.line else 0
        part = lines[row - 1][at : at + _WIDTH]
        shown.append(f"{row:>6}  {'…' if at else ''}{part}")
        if row == error.line:
            shown.append(" " * (8 + bool(at) + error.column - 1 - at) + "^")
    return "\n".join(shown)


def _statements(edits: Edits) -> Step:
    return Step("statements", f"All {edits.count:,} statements were read and applied in order.", "passed")


def _weights(edits: Edits) -> Step:
    numbers = {}
    for name, tensor in tensors(edits.weights).items():
        changed = int(np.count_nonzero(tensor))
        largest = float(np.abs(tensor).max())
        numbers[name] = f"{changed:,} of {tensor.size:,} not zero" + (f", up to ±{largest:.4g}" if changed else "")
    total = int(np.count_nonzero(edits.weights))
    return Step(
        "weights", f"{total:,} of {PARAMETERS:,} weights differ from the start, which is all zero.", "told", numbers
    )


def _episodes(score: Score) -> Step:
    names = ("episodes", "raw_score", "mean_length", "cap")
    numbers = {name: number(score.metrics[name]) for name in names if name in score.metrics}
    text = (
        "The network plays: mean score (not clipped) and mean actions over the profile's episodes, and the game's cap."
    )
    return Step("episodes", text, "passed", numbers)


def _formula(score: Score) -> str:
    raw, cap = score.metrics.get("raw_score"), score.metrics.get("cap")
    if raw is None or not cap:
        return ""
    clipped = min(max(raw, 0.0), cap)
    how = "" if clipped == raw else f", clipped from {raw:.6g}"
    return f"mean score {clipped:.6g}{how} / cap {cap:.6g} = {clipped / cap:.6g}"


def _recorded(score: Score, error: EditsError | None) -> Step:
    """What a score that is not ``ok``, or should not be, says beside what is read now."""
    if score.status in ("error", "timeout"):
        return Step("recorded score", "The scorer did not come to an end, which is our fault.", "failed")
    if (score.status == "ok") == (error is not None):
        now = "can't be read now" if error else "can be read now"
        text = f"The score says {score.status}, but the answer {now}: other text, or another version."
        return Step("recorded score", text, "failed")
    if score.reason != str(error):
        return Step("recorded score", f"The score names another reason: {score.reason}")
    return Step("recorded score", "The score says the same.", "passed")
