"""Reference answers: solutions of our own, from one that hardly learns to one that is hard to beat.

Their files are in ``answers/`` and are read, never imported: like every solution they run in the sandbox only.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib.resources import files

from weightgym.rewards.contracts import TaskError

#: Weakest first. Under golf-cpu-v1 each needs at least 0.05 bits a byte less than the one before it (lang/24, lang/29).
LADDER = (
    "timid",
    "baseline",
    "tuned",
    "short_rows",
    "shared_block",
    "hashed_ngrams",
    "convolutions",
    "counts",
    "counts_and_network",
    "counts_and_copies",
)
#: Solutions that pack the model of another one into about half the bytes, for at most 0.05 bits a byte.
PACKED: Mapping[str, str] = {"shared_codebook": "shared_block", "hashed_int4": "hashed_ngrams"}
NAMES = (*LADDER, *PACKED)


def solution(name: str) -> str:
    """The text of a reference answer's ``solution.py``.

    Raises:
        TaskError: there is none of that name.
    """
    if name not in NAMES:
        raise TaskError(f"no reference answer {name!r}; there are {', '.join(NAMES)}")
    return (files("weightgym.envs.golf") / "answers" / f"{name}.py").read_text("utf-8")


def about(name: str) -> str:
    """What it does, in a sentence.

    Raises:
        TaskError: there is none of that name.
    """
    text = ast.get_docstring(ast.parse(solution(name))) or ""
    return " ".join(text.split("\n\n")[0].split())


def reference_answer(name: str) -> str:
    """A whole answer, as a model would write it.

    Raises:
        TaskError: there is none of that name.
    """
    return f"{about(name)}\n\n```python\n{solution(name)}```\n"
