"""``weightgym rollout``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from weightgym.cli.backend_options import PolicyCommand
from weightgym.cli.rollout_options import Made, Plan, exit_on_faults, make_rollouts, rollout_options
from weightgym.cli.snapshot_options import snapshot_options
from weightgym.cli.unsafe_option import unsafe_option

_EPILOG = """\b
Examples:
  weightgym rollout tiny-writer --split train --samples 8 --max-tokens 256 -o rollouts.jsonl
  weightgym rollout vllm:./my-model --split test --kv-cache-gib 2 -o test.jsonl --resume
  weightgym rollout openai:my-model --urls http://localhost:8000/v1 --split test -o test.jsonl
  weightgym rollout replay:test.jsonl --split test --profile wpb-v1-e64 -o again.jsonl
  weightgym rollout scripted:garbage --split train -o garbage.jsonl
"""


@click.command(cls=PolicyCommand, epilog=_EPILOG)
@click.argument("policy")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="One JSON line each."
)
@rollout_options
@snapshot_options
@unsafe_option
def rollout(policy: str, output: Path, plan: Plan) -> None:
    """Let POLICY answer tasks, and score its answers.

    \b
    POLICY is one of
      MODEL, transformers:MODEL   a folder, a Hub name, tiny-writer or smollm2, in this process (extra `train`)
      vllm:MODEL                  the same with vLLM (extra `vllm`)
      vllm-server:MODEL           with vLLM servers, started here or named by --urls (extra `servers`)
      openai:MODEL                any OpenAI-compatible endpoint (extra `servers`)
      replay:FILE                 the answers recorded in FILE
      scripted:NAME               empty, garbage or echo; or an agent of the environment's own, such as spectral
      scripted:FOLDER             its files, by name: sample n answers with file n, its next turn with the next one

    Each rollout is written as it ends, with its tokens and log-probabilities, so that a broken off run goes on with
    --resume. Exit code: 0 if every rollout got a reward, 1 if some did not or the run broke off, 2 if the command was
    wrong.
    """
    made = make_rollouts(policy, output, plan)
    _report(made, output)
    exit_on_faults(made.outcomes)


def _report(made: Made, output: Path) -> None:
    outcomes = made.outcomes
    statuses = Counter(one.status for one in outcomes)
    rewards = [one.reward for one in outcomes if one.reward is not None]
    mean = f"mean reward {sum(rewards) / len(rewards):.4f} of {len(rewards)}" if rewards else "no rewards"
    told = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    click.echo(f"{output}: {len(outcomes)} rollouts ({made.kept} kept): {told}; {mean}")
    if statuses["error"] or statuses["timeout"]:
        click.echo(f"why some have no reward: weightgym inspect {output}", err=True)
    if cut := sum(one.cut for one in outcomes):
        click.echo(f"{cut} of {len(outcomes)} answers were cut at --max-tokens", err=True)
