"""Files of scored rows, as ``weightgym score`` writes them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: What page text must not be able to do.
ATTACK = (
    "</pre></details></div><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    "{{ 7*7 }}{% raw %}'\"&<svg onload=document.title='owned'><a href=javascript:alert(1)>x</a>"
    "<style>body{display:none}</style><meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>"
    "<iframe src=http://127.0.0.1:9/></iframe>\x1b]0;owned\x07\u202e\u2066\x00\ud800"
)


def row(
    completion: Any = "123",
    *,
    reward: float | None = 1.0,
    status: str = "ok",
    reason: str = "",
    task: str = "one",
    env: str = "digits",
    profile: str = "digits-v1",
    metrics: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One scored row; ``more`` are fields that the row brings along."""
    score = {
        "status": status, "reward": reward, "reason": reason, "metrics": metrics or {}, "info": {}, "profile": profile,
        "seconds": 0.01, "timings": {}, "line": 1, "row_sha256": "0" * 64, "task_sha256": "",
    }  # fmt: skip
    return {"env": env, "task": task, "completion": completion} | more | {"score": score}


def write(path: Path, rows: Iterable[Any], end: str = "") -> Path:
    """The rows a line each, texts as they are; NaN may be among the numbers."""
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows) + end)
    return path
