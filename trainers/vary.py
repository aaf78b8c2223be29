"""Variants of the built-in games as training tasks: which there are, and the cap of each.

A variant's cap makes skilled play reach the same share of it as the stored reference answer reaches of the game's own
cap: ``cap' = cap * skilled' / reference``, where ``skilled'`` is the better of the solver's network and of the game's
own reference answer on the variant (the solver gets stuck at times). A variant that gives too much to chance, or that
is not solved, is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weightgym.envs.weight_program.references import reference_answer
from weightgym.rewards.contracts import canonical_json, sha256_hex
from weightgym.rewards.weight_program import baselines, builtin, variants
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.network import Weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import simulate
from weightgym.trainers.evolution import Evolution
from weightgym.trainers.solve import Solver


@dataclass(frozen=True)
class Derived:
    """A variant with its cap. ``refused`` says why it is no task, if it is none."""

    name: str
    skilled: float  #: mean score of skilled play
    uniform: float
    constant: float
    refused: str = ""


def candidates(game: str, seed: int) -> Iterator[str]:
    """All variants of a game in an order that depends on the seed: the values of one say nothing about the next."""
    names = variants.names(game, builtin.module(game).VARY)
    yield from sorted(names, key=lambda name: sha256_hex(canonical_json(["variant", seed, name])))


def derive(name: str, *, generations: int, threads: int) -> Derived:
    """Solve a variant, find its cap, and look at what chance gets. Takes as long as ``weightgym wpb solve``."""
    game, changes = variants.split(name)
    answer = parse_edits(reference_answer(game)).weights
    reference, transferred = (_mean_score(one, answer, threads) for one in (game, name))
    with tempfile.TemporaryDirectory() as folder:
        solver = Solver(name, Evolution(), Path(folder) / "answer.md", resume=False)
        for _ in solver.run(generations, threads=threads):
            pass
    skilled = max(transferred, _mean_score(name, solver.best, threads))
    uniform, constant = baselines.uniform(name, threads=threads), baselines.best_constant(name, threads=threads)
    cap = round(builtin.module(game).CAP * skilled / reference)
    refused = ""
    if cap < 1:
        refused = f"skilled play reaches {skilled:.2f} only"
    elif uniform >= baselines.MOST_UNIFORM * cap:
        refused = f"uniform play scores {uniform:.2f} of a cap of {cap}"
    elif constant >= baselines.MOST_CONSTANT * cap:
        refused = f"a constant action scores {constant:.2f} of a cap of {cap}"
    whole = variants.join(game, changes | {"CAP": str(cap)})
    return Derived(name if refused else whole, skilled, uniform, constant, refused)


def _mean_score(game: str, weights: Weights, threads: int) -> float:
    return simulate(game, weights, profile("wpb-v1"), threads=threads).mean_score
