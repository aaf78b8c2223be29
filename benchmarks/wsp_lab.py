"""Episodes of WSP-Bench on one model: memory of each, and calls a second batched against one by one.

    .venv/bin/python benchmarks/wsp_lab.py
    .venv/bin/python benchmarks/wsp_lab.py --episodes 64 --rounds 5 --model FOLDER

Both sides of a ratio come from one interleaved run: the same GPU calls of the same episodes, each with weights of its
own, from a thread for each episode at once, and one after another.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sides
import torch

from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.language_model import LanguageModel, load
from weightgym.rewards.wsp.world.prompts import split_prompts

#: GPU calls of a round, each with so many prompts of these: most agents ask a few things at a time.
CALLS: dict[str, tuple[int, dict[str, Any]]] = {
    "generate": (2, {"max_new_tokens": 24}),
    "next_tokens": (4, {}),
    "capture": (2, {"sites": [{"layer": 2, "point": "residual"}]}),
}


def message(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """An assistant message with one call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": function}]}


def edits(model: LanguageModel, number: int) -> list[dict[str, Any]]:
    """What an episode changes: a singular component taken away, a few neurons scaled, one given by its values."""
    config = model.network.config
    down = f"model.layers.{number % config.num_hidden_layers}.mlp.down_proj.weight"
    direction = [round(0.01 * ((7 * number + index) % 11 - 5), 2) for index in range(config.hidden_size)]
    left, right = "left singular vector 0", "right singular vector 0"
    return [
        message("rank_one", {"parameter": down, "left": left, "right": right, "scale": -1.0}),
        message("scale", {"parameter": down, "axis": "columns", "indices": [number, number + 1], "factor": 0.5}),
        message("rank_one", {"parameter": down, "left": direction, "right": "row 1"}),
    ]


def fresh(engine: Engine, count: int) -> list[Episode]:
    """Episodes with their edits done."""
    limit = 1 << 40
    data = PublicData(family="topic", tier="easy", profile="wsp-v1", model="any", model_hash="0" * 64, edit_limit=limit)
    episodes = [Episode(engine, data) for _ in range(count)]
    for number, episode in enumerate(episodes):
        for one in edits(engine.model, number):
            (reply,) = episode.message(one).messages
            assert not reply["content"].startswith("refused"), reply["content"]
    return episodes


def memory(engine: Engine, count: int) -> float:
    """Megabytes of an episode with its edits, beside the model."""
    fresh(engine, 1)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    episodes = fresh(engine, count)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    counted = statistics.mean(episode.deltas.nbytes for episode in episodes)
    largest = (episodes[0].profile.edit_bytes + episodes[0].profile.captured_bytes) / 1e6
    print(
        f"memory: {used / count / 1e6:.3f} MB an episode with 3 edits (its edits count {counted / 1e6:.3f} MB), "
        f"{count} episodes; at most {largest:.1f} MB of edits and activations"
    )
    return used / count / 1e6


def rate(episodes: Sequence[Episode], asked: Callable[[int], dict[str, Any]], threads: int) -> tuple[float, list[str]]:
    """Calls a second, and what was answered."""

    def play(pair: tuple[int, Episode]) -> str:
        (reply,) = pair[1].message(asked(pair[0])).messages
        content = reply["content"]
        assert not content.startswith("refused"), content
        return content

    begun = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(play, enumerate(episodes)))
    return len(episodes) / (time.monotonic() - begun), answers


def compare(engine: Engine, count: int, rounds: int) -> None:
    """Calls a second of both ways, round by round; who is first alternates."""
    (found,) = split_prompts(1, [4 * count])
    texts = [one.question for one in found]
    for name, (prompts, more) in CALLS.items():

        def asked(number: int, name: str = name, prompts: int = prompts, more: dict[str, Any] = more) -> dict[str, Any]:
            return message(name, {"prompts": texts[4 * number : 4 * number + prompts], **more})

        rows = []
        for round in range(rounds + 1):
            rates: dict[str, float] = {}
            answers: dict[str, list[str]] = {}
            for way in ("together", "alone") if round % 2 else ("alone", "together"):
                episodes = fresh(engine, count)
                threads = count if way == "together" else 1
                rates[way], answers[way] = rate(episodes, asked, threads)
            assert answers["together"] == answers["alone"]
            if round:  # the first does not count
                rows.append((rates["together"], rates["alone"], rates["together"] / rates["alone"]))
        together, alone, ratio = sides.medians(rows)
        print(
            f"{name}, {prompts} prompts a call, {count} episodes: {together:.1f} calls/s together, {alone:.1f} one by "
            f"one; ratio {ratio:.2f} (median of {rounds} pairs); the same answers"
        )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny-world", help="a model's folder")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    engine = Engine(load(args.model))
    memory(engine, args.episodes)
    compare(engine, args.episodes, args.rounds)


if __name__ == "__main__":
    main()
