"""A small snapshot in the layout of the published dataset, of our own making: two games, a scorer, digests, splits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from weightgym.rewards.weight_program.minatar import source as minatar_source
from weightgym.rewards.weight_program.snapshot import layout

#: A MinAtar-like game: the coin is in one of ten columns, walk there. Its generator comes from ``self.random``.
COIN = '''
"""Walk to the coin; it moves when you take it. 30 steps."""
import numpy as np

SCORE_CAP = 20


class Env:
    def __init__(self, ramping=None):
        self.random = np.random.RandomState()
        self.reset()

    def reset(self):
        self.me, self.clock = 5, 0
        self.coin = self.random.randint(10)

    def act(self, a):
        self.me = min(9, max(0, self.me + (a == 3) - (a == 1)))
        self.clock += 1
        reward = 0
        if self.me == self.coin:
            reward, self.coin = 1, self.random.randint(10)
        return reward, self.clock == 30

    def state(self):
        board = np.zeros((10, 10, 6), dtype=bool)
        board[9, self.me, 0] = board[0, self.coin, 2] = True
        return board
'''

#: Rewards of a half, no ``ramping``, and a check that no stand-in for a generator passes.
LEAK = '''
"""Plug the leak in time."""
import numpy as np

SCORE_CAP = 5


class Env:
    def __init__(self):
        self.random = np.random.RandomState()
        self.reset()

    def reset(self):
        if not isinstance(self.random, np.random.RandomState):
            raise TypeError("not a generator")
        self.left = 12
        self.row = int(self.random.randint(10)) if self.random.rand() < 0.9 else 0

    def act(self, a):
        self.left -= 1
        hit = (a == 5) and self.row < 5
        self.row = self.random.randint(10)
        return 0.5 * hit, self.left == 0

    def state(self):
        board = np.zeros((10, 10, 6), dtype=bool)
        board[self.row, 0, 0] = True
        return board
'''

#: A frozen scorer of the published form. Float32 throughout, unlike profile wpb-v1.
VERIFY = """
import ast
import importlib
import re

import numpy as np

SHAPES = {"W1": (600, 32), "b1": (32,), "W2": (32, 32), "b2": (32,), "W3": (32, 6), "b3": (6,)}
CAPS = {"asterix": 1000, "breakout": 1000, "freeway": 100, "seaquest": 1000, "space_invaders": 1000}
MAPS = {"breakout": [0, 3, 4, 2]}


def apply_edits(answer):
    block = re.findall(r"```edits\\n(.*?)```", answer, re.S)[-1]
    weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    statements = ast.parse(block).body
    for statement in statements:
        target = statement.targets[0]
        value = np.float32(ast.literal_eval(statement.value))
        if isinstance(target, ast.Name):
            weights[target.id][...] = value
        else:
            weights[target.value.id][ast.literal_eval(target.slice)] = value
    if not statements:
        raise ValueError("no edits")
    return weights, len(statements)


def score_cap(game, source):
    return CAPS[game] if source == "original" else importlib.import_module("minatar_synth.games." + game).SCORE_CAP


def make(game, source):
    if source == "original":
        from minatar import Environment

        return Environment(game, sticky_action_prob=0.1, difficulty_ramping=False).env
    module = importlib.import_module("minatar_synth.games." + game)
    return module.Env()


def evaluate(game, source, weights, episodes):
    print("a scorer may print")
    total = steps = 0
    for i in range(episodes):
        env = make(game, source)
        env.random = np.random.RandomState(1729 + i)
        env.reset()
        actions = np.random.RandomState(7919 + i)
        last, over, length = 0, False, 0
        while not over and length < 10000:
            seen = np.asarray(env.state())
            if source == "original":
                wide = np.zeros((10, 10, 6), bool)
                for native, channel in enumerate(MAPS[game]):
                    wide[:, :, channel] |= seen[:, :, native]
                seen = wide
            h = np.tanh(seen.reshape(600).astype(np.float32) @ weights["W1"] + weights["b1"])
            h = np.tanh(h @ weights["W2"] + weights["b2"])
            z = h @ weights["W3"] + weights["b3"]
            e = np.exp(z - z.max())
            c = np.cumsum(e)
            a = int(np.searchsorted(c / c[-1], actions.random_sample(), side="right"))
            if env.random.rand() < 0.1:
                a = last
            last = a = min(a, 5)
            reward, over = env.act(a)
            total += reward
            length += 1
        steps += length
    return total / episodes, steps / episodes
"""

SYSTEM = "You directly program neural-network weights. Follow the task constraints exactly."


def write_snapshot(folder: Path, games: dict[str, str] | None = None) -> str:
    """Write the snapshot (of other games, if given); returns the SHA-256 of its task file."""
    games = {"coin_walk": COIN, "leak_plug": LEAK} if games is None else games
    runtime = folder / "runtime"
    (runtime / "minatar_synth" / "games").mkdir(parents=True)
    (folder / "data").mkdir()
    rows = [_row(game, "synth", text) for game, text in sorted(games.items())]
    rows.insert(1, _row("breakout", "original", minatar_source("breakout")))  # ids are not renumbered within splits
    for game, text in games.items():
        (runtime / "minatar_synth" / "games" / f"{game}.py").write_text(text)
    (runtime / "verify.py").write_text(VERIFY)
    tasks = runtime / "tasks.jsonl"
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for split in ("train", "test"):
        lines = [json.dumps(row | _added(i, row)) for i, row in enumerate(rows) if row["split"] == split]
        (folder / "data" / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    write_digests(folder)
    return digest(tasks)


def write_digests(folder: Path) -> None:
    """(Re)write ``runtime/source.json`` for the files that are there."""
    runtime = folder / "runtime"
    listing = {
        "repository": "example/minatar-synth",
        "revision": "4" * 40,
        "tasks_sha256": digest(runtime / "tasks.jsonl"),
        "verifier": {"path": "runtime/verify.py", "sha256": digest(runtime / "verify.py")},
        "games": {path.stem: digest(path) for path in sorted((runtime / "minatar_synth" / "games").glob("*.py"))},
    }
    (runtime / "source.json").write_text(json.dumps(listing, indent=1))


def digest(path: Path) -> str:
    """SHA-256 of the file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def choose_again(folder: Path) -> None:
    """After a change of files: new digests, a new choice."""
    write_digests(folder)
    layout.choose(folder, tasks_sha256=digest(folder / "runtime" / "tasks.jsonl"))


def change(folder: Path, file: str, old: str, new: str) -> None:
    """Change text that a file of the runtime holds, and choose the snapshot again."""
    path = folder / "runtime" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    choose_again(folder)


def _row(game: str, source: str, text: str) -> dict[str, Any]:
    return {
        "name": f"{source}_{game}",
        "split": "test" if source == "original" else "train",
        "game": game,
        "source": source,
        "prompt": f"Play {game}.\n```python\n{text}\n```",
        "system_prompt": SYSTEM,
        "episodes": 1000,
    }


def _added(index: int, row: dict[str, Any]) -> dict[str, Any]:
    synth = row["source"] == "synth"
    return {
        "task_id": index,
        "family": "atari_synthetic" if synth else "minatar_original",
        "upstream_source_url": f"https://example.org/{row['game']}.py",
        "upstream_revision": "4" * 40,
        "native_source_url": None,
    }
