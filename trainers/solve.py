"""Solving a game: evolution or policy gradients with a checkpoint, a training curve, and the best network so far.

Beside the answer ``NAME`` it keeps ``NAME.checkpoint.npz`` (the state after the last generation, replaced as a whole)
and ``NAME.curve.jsonl`` (one line an evaluation). A run that was killed goes on from its checkpoint, and ends with the
same answer as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weightgym.rewards.weight_program.network import Weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import simulate
from weightgym.trainers import evolution, policy_gradient
from weightgym.trainers.evolution import Evolution
from weightgym.trainers.policy_gradient import PolicyGradient

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
    """One run of a method on one game; the configuration's type says which method.

    Args:
        begin: weights to begin with instead of random ones (policy gradients only).

    Raises:
        ValueError: ``resume``, and the checkpoint was made by another game or configuration.
    """

    def __init__(
        self,
        game: str,
        config: Evolution | PolicyGradient,
        answer: Path,
        *,
        resume: bool,
        begin: Weights | None = None,
    ) -> None:
        self.game = game
        self.config = config
        self.checkpoint = answer.with_name(answer.name + ".checkpoint.npz")
        self.curve = answer.with_name(answer.name + ".curve.jsonl")
        self.begin = begin
        self.progress: Any = (
            evolution.start(config) if isinstance(config, Evolution) else policy_gradient.start(config, begin)
        )
        self.best_score = -np.inf
        self.best = self._network()
        if resume and self.checkpoint.exists():
            self._load()
        else:
            self.curve.write_text("")

    @property
    def _identity(self) -> str:
        begin = {} if self.begin is None else {"begin": hashlib.sha256(self.begin.tobytes()).hexdigest()}
        return json.dumps({"game": self.game, **asdict(self.config), **begin}, sort_keys=True)

    def run(self, generations: int, *, threads: int) -> Iterator[Evaluation]:
        """Go on up to that generation; yields every evaluation."""
        for progress in self._generations(threads):
            if progress.generation > generations:
                return
            self.progress = progress
            if progress.generation % EVERY == 0 or progress.generation == generations:
                yield self._evaluate(threads)

    def _generations(self, threads: int) -> Iterator[Any]:
        if isinstance(self.config, Evolution):
            return evolution.evolve(self.game, self.config, self.progress, threads=threads)
        return policy_gradient.improve(self.game, self.config, self.progress, threads=threads)

    def _network(self) -> Weights:
        if isinstance(self.config, Evolution):
            return evolution.network(self.config, self.progress.parameters)
        return policy_gradient.network(self.progress)

    def _evaluate(self, threads: int) -> Evaluation:
        weights = self._network()
        episodes = simulate(self.game, weights, _EVALUATION, threads=threads)
        score, length = episodes.mean_score, episodes.mean_length
        if score > self.best_score:
            self.best_score, self.best = score, weights
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
            fields = {name: stored[name] for name in asdict(self.progress)}
            self.progress = type(self.progress)(**{n: v if v.ndim else v.item() for n, v in fields.items()})
        # A kill may have come between a line of the curve and its checkpoint.
        lines = self.curve.read_text().splitlines(keepends=True) if self.curve.exists() else []
        kept = [line for line in lines if line.endswith("\n") and _generation(line) <= self.progress.generation]
        self.curve.write_text("".join(kept))


def _generation(line: str) -> int:
    return int(json.loads(line)["generation"])
