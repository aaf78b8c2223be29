"""A random agent on a vector of environments: valid answers, drawn without looking at the prompt.

Runs as it is:  python examples/gym_random.py --steps 5
"""

from __future__ import annotations

import click
import gymnasium
import numpy as np

import weightgym.envs  # noqa: F401 - registers the environments


def answer(rng: np.random.Generator) -> str:
    """A random program of the network: one path from an input channel to an action, and a bias of every action."""
    channel, one, two, action = (int(rng.integers(size)) for size in (6, 32, 32, 6))
    first, second, third = (float(value) for value in rng.normal(size=3).round(2))
    statements = (
        f"W1[{channel}::6, {one}] = {first}",
        f"W2[{one}, {two}] = {second}",
        f"W3[{two}, {action}] = {third}",
        f"b3 = {rng.normal(size=6).round(2).tolist()}",
    )
    return "\n".join(("```edits", *statements, "```"))


@click.command()
@click.option("--steps", default=10, help="Steps of the vector; each ends an episode in every lane.")
@click.option("--lanes", default=4, help="Environments in the vector.")
@click.option("--seed", default=0, help="Of the tasks and the answers.")
def main(steps: int, lanes: int, seed: int) -> None:
    """Play, and print what each game gave."""
    rng = np.random.default_rng(seed)
    # With vectorization_mode="async", a process a lane: vector_kwargs={"shared_memory": False}, as text has no fixed
    # size, and the guard at the end of this file.
    envs = gymnasium.make_vec(
        "weightgym/WeightProgram-v1", num_envs=lanes, vectorization_mode="sync", profile="wpb-v1-e64"
    )
    envs.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        _, rewards, _, _, infos = envs.step(tuple(answer(rng) for _ in range(lanes)))
        for task, reward, score in zip(infos["task"], rewards, infos["score"], strict=True):
            total += reward
            click.echo(f"{task:28} {score.status:8} reward {reward:.3f}")
        envs.reset()
    click.echo(f"mean reward {total / (steps * lanes):.4f}")
    envs.close()


if __name__ == "__main__":
    main()
