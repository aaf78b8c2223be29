"""A scripted agent: in each game it tries every action by itself, and keeps to the best one.

Runs as it is:  python examples/gym_scripted.py builtin/lava_tiles original/breakout
"""

from __future__ import annotations

import click
import gymnasium

import weightgym.envs  # noqa: F401 - registers the environments

ACTIONS = 6


def always(action: int) -> str:
    """A network that takes one action, whatever it sees."""
    return f"```edits\nb3[{action}] = 1\n```"


@click.command()
@click.argument("tasks", nargs=-1, default=("builtin/deep_drill", "original/breakout"))
@click.option("--profile", default="wpb-v1-e64", help="64 episodes a score; wpb-v1 has all 1,000.")
def main(tasks: tuple[str, ...], profile: str) -> None:
    """Play, and print the best constant action of each task."""
    env = gymnasium.make("weightgym/WeightProgram-v1", profile=profile)
    for task in tasks:
        rewards = []
        for action in range(ACTIONS):
            _, info = env.reset(options={"task": task})  # info["messages"] is the chat request for a model
            assert info["task"] == task
            _, reward, terminated, _, info = env.step(always(action))
            assert terminated  # one answer is an episode
            rewards.append(float(reward))
        best = max(range(ACTIONS), key=rewards.__getitem__)
        click.echo(f"{task:28} action {best}: reward {rewards[best]:.4f}")
    env.close()


if __name__ == "__main__":
    main()
