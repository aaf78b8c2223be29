"""Solving a game: evolution with a checkpoint, a training curve, and the best network so far.

Beside the answer ``NAME`` it keeps ``NAME.checkpoint.npz`` (the state after the last generation, replaced as a whole)
and ``NAME.curve.jsonl`` (one line an evaluation). A run that was killed goes on from its checkpoint, and ends with the
same answer as one that was not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from weightgym.rewards.weight_program.network import Weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import simulate
from weightgym.trainers.evolution import Evolution, Progress, evolve, network, start

#: Generations between evaluations, which are also the checkpoints.
EVERY = 20
_EVALUATION = replace(profile("wpb-v1-e200"), name="evaluation", env_seed=500_000, action_seed=600_000)


@dataclass(frozen=True)
class Evaluation:
    """The network after a generation: mean score and length over 200 episodes that neither training nor scoring use."""

    generation: int
    score: float
    length: float
    best: float
    population: float  #: mean score over the population of this generation


class Solver:
    """One run of evolution on one game.

    Raises:
        ValueError: ``resume``, and the checkpoint was made by another game or configuration.
    """

    def __init__(self, game: str, config: Evolution, answer: Path, *, resume: bool) -> None:
        self.game = game
        self.config = config
        self.checkpoint = answer.with_name(answer.name + ".checkpoint.npz")
        self.curve = answer.with_name(answer.name + ".curve.jsonl")
        self.progress = start(config)
        self.best_score = -np.inf
        self.best: Weights = network(config, self.progress.parameters)
        if resume and self.checkpoint.exists():
            self._load()
        else:
            self.curve.write_text("")

    @property
    def _identity(self) -> str:
        return json.dumps({"game": self.game, **asdict(self.config)}, sort_keys=True)

    def run(self, generations: int, *, threads: int) -> Iterator[Evaluation]:
        """Evolve up to that generation; yields every evaluation."""
        for progress in evolve(self.game, self.config, self.progress, threads=threads):
            if progress.generation > generations:
                return
            self.progress = progress
            if progress.generation % EVERY == 0 or progress.generation == generations:
                yield self._evaluate(threads)

    def _evaluate(self, threads: int) -> Evaluation:
        weights = network(self.config, self.progress.parameters)
        episodes = simulate(self.game, weights, _EVALUATION, threads=threads)
        score = float(episodes.scores.mean())
        if score > self.best_score:
            self.best_score, self.best = score, weights
        length = float(episodes.lengths.mean())
        result = Evaluation(self.progress.generation, score, length, float(self.best_score), self.progress.fitness)
        with self.curve.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        self._save()
        return result

    def _save(self) -> None:
        partial = self.checkpoint.with_suffix(".partial.npz")
        state = asdict(self.progress) | {"best": self.best, "best_score": self.best_score, "identity": self._identity}
        np.savez(partial, allow_pickle=False, **state)
        os.replace(partial, self.checkpoint)

    def _load(self) -> None:
        with np.load(self.checkpoint, allow_pickle=False) as stored:
            if str(stored["identity"]) != self._identity:
                raise ValueError(
                    f"{self.checkpoint} is of another run ({stored['identity']}), this one is {self._identity}: "
                    "use the same options, or start anew without --resume"
                )
            self.best, self.best_score = stored["best"], float(stored["best_score"])
            self.progress = Progress(
                int(stored["generation"]),
                stored["parameters"],
                stored["momentum"],
                stored["variance"],
                float(stored["fitness"]),
            )
        # A kill may have come between a line of the curve and its checkpoint.
        lines = self.curve.read_text().splitlines(keepends=True) if self.curve.exists() else []
        kept = [line for line in lines if line.endswith("\n") and _generation(line) <= self.progress.generation]
        self.curve.write_text("".join(kept))


def _generation(line: str) -> int:
    return int(json.loads(line)["generation"])
