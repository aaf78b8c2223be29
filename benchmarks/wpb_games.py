"""How fast games run that are not ours in C++: the built-in ones, compiled, and Python classes of others.

    python benchmarks/wpb_games.py [--rounds 5] [--games wall_rally …] [--json FILE]

1. Every built-in game under its reference answer: the engine on the compiled file against the plain run of that file.
2. The first score of a game in a new process, with an empty cache and with a full one.
3. MinAtar's own classes taken as opaque Python: our loop and policy around their methods, without and with reused
   random generators, against the plain reference, with dense weights. "Own" is what MinAtar's methods alone take.

Sides take turns within a round; figures are medians over the rounds, ratios medians of the rounds' ratios.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from played_in import dense_policy
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sides import medians, slow_side

from weightgym.envs.weight_program.references import reference_answer
from weightgym.rewards.weight_program import minatar, opaque, reference
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import find_engine, simulate

_RULES = profile("wpb-v1")
_FIRST_SCORE = (
    "import sys, time; from weightgym.rewards.weight_program.simulate import simulate\n"
    "from weightgym.rewards.weight_program.network import zero_weights\n"
    "from weightgym.rewards.weight_program.profile import profile\n"
    "started = time.perf_counter()\n"
    "simulate(sys.argv[1], zero_weights(), profile('wpb-v1-e10'))\n"
    "print(time.perf_counter() - started)\n"
)


def builtin_row(game: str, rounds: int) -> dict[str, Any]:
    """Engine against plain run, and the time of the first score in a process."""
    weights = parse_edits(reference_answer(game)).weights
    simulate(game, weights, _RULES, backend="engine")  # compiled, warm
    rows, index = [], 0
    for _ in range(rounds):
        started = time.process_time()
        steps = int(simulate(game, weights, _RULES, backend="engine").lengths.sum())
        engine = (time.process_time() - started) * 1e6 / steps
        plain, index = slow_side(lambda i: reference.play(game, weights, _RULES, i), index, steps=500)
        rows.append((engine, plain, plain / engine))
    names = ("engine_us", "plain_us", "ratio")
    return {"game": game, **dict(zip(names, medians(rows), strict=True)), **first_scores(game, rounds)}


def first_scores(game: str, rounds: int) -> dict[str, float]:
    """Wall seconds of the first score in a new process: nothing cached, then cached."""
    rows = []
    for _ in range(min(rounds, 3)):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-c", _FIRST_SCORE, game]
            environment = os.environ | {"WEIGHTGYM_CACHE": cache}
            rows.append([float(subprocess.check_output(command, env=environment)) for _ in range(2)])
    return dict(zip(("cold_s", "cached_s"), medians(rows), strict=True))


def opaque_row(game: str, rounds: int) -> dict[str, Any]:
    """The plain reference, the opaque path, the same with the pool, and MinAtar's methods alone."""
    minatar.environment(game, sticky=0.1)  # imports it
    module, weights, masks = import_module(f"minatar.environments.{game}"), dense_policy(), channel_masks(game)
    engine, why = find_engine()
    if engine is None:
        raise SystemExit(f"no engine: {why}")

    def make() -> Any:
        return module.Env(ramping=False)

    def side(begin: opaque.Start, index: int) -> tuple[float, int]:
        def play(i: int) -> tuple[float, int]:
            scores, lengths = opaque.play(engine.loop, begin, masks, weights, _RULES, first=i, count=1)
            return float(scores[0]), int(lengths[0])

        return slow_side(play, index)

    rows, at, plain_at, pooled_at, own_at = [], 0, 0, 0, 0
    for _ in range(rounds):
        judge, at = slow_side(lambda i: reference.play(game, weights, _RULES, i), at)
        plain, plain_at = side(opaque.start(make), plain_at)
        with opaque.pooled(make) as begin:
            pooled, pooled_at = side(begin, pooled_at)
            own, own_at = slow_side(partial(_methods_alone, begin), own_at)
        rows.append((judge, plain, pooled, own, judge / plain, judge / pooled, judge / own))
    names = ("reference_us", "opaque_us", "pooled_us", "own_us", "ratio", "pooled_ratio", "bound")
    return {"game": game, "pooled": opaque.may_pool(make), **dict(zip(names, medians(rows), strict=True))}


def _methods_alone(begin: opaque.Start, index: int) -> tuple[float, int]:
    """Random actions: state(), a draw and act() in the shortest Python loop."""
    game, random = begin(_RULES.env_seed + index)
    state, act, draw = game.state, game.act, random.random_sample
    length, over = 0, False
    while not over and length < _RULES.max_actions:
        state()
        _, over = act(int(draw() * 6))
        length += 1
    return 0.0, length


def show(title: str, columns: dict[str, tuple[str, str]], rows: list[dict[str, Any]]) -> None:
    """A table of the rows: heading → (field, format)."""
    table = Table(title=title)
    for heading in columns:
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for row in rows:
        table.add_row(*(format(row[field], style) for field, style in columns.values()))
    Console(width=max(100, Console().width)).print(table)


def median_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every number over the games."""
    fields = [name for name, value in rows[0].items() if isinstance(value, float)]
    return {
        "game": "median",
        **dict(zip(fields, medians([[row[name] for name in fields] for row in rows]), strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=GAMES, metavar="GAME", help="built-in games")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    compiled: list[dict[str, Any]] = []
    for game in track(arguments.games, "built-in games", transient=True):
        compiled.append(builtin_row(game, arguments.rounds))
    columns = {
        "game": ("game", ""),
        "engine µs": ("engine_us", ".3f"),
        "plain µs": ("plain_us", ".1f"),
        "ratio (100)": ("ratio", ".0f"),
        "cold s (4)": ("cold_s", ".2f"),
        "cached s (0.3)": ("cached_s", ".3f"),
    }
    show("Built-in games, a step under the reference answer (wanted)", columns, [*compiled, median_row(compiled)])
    foreign: list[dict[str, Any]] = []
    for game in track(sorted(CHANNEL_MAPS), "MinAtar's classes", transient=True):
        foreign.append(opaque_row(game, arguments.rounds))
    columns = {
        "game": ("game", ""),
        "reference µs": ("reference_us", ".1f"),
        "opaque µs": ("opaque_us", ".1f"),
        "pooled µs": ("pooled_us", ".1f"),
        "own µs": ("own_us", ".1f"),
        "opaque × (5)": ("ratio", ".1f"),
        "pooled × (10)": ("pooled_ratio", ".1f"),
        "bound ×": ("bound", ".1f"),
    }
    show(
        "MinAtar's classes as opaque Python, a step with dense weights (wanted)",
        columns,
        [*foreign, median_row(foreign)],
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({"builtin": compiled, "opaque": foreign}, indent=1) + "\n")


if __name__ == "__main__":
    main()
