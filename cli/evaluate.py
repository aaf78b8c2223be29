"""``weightgym eval``."""

from __future__ import annotations

import math
from pathlib import Path

import click

from weightgym.cli.backend_options import PolicyCommand
from weightgym.cli.evaluation_plot import plot_evaluations
from weightgym.cli.evaluation_report import print_report, report_json
from weightgym.cli.rollout_options import Plan, exit_on_faults, make_rollouts, rollout_options
from weightgym.cli.snapshot_options import snapshot_options
from weightgym.cli.unsafe_option import unsafe_option
from weightgym.envs import registry
from weightgym.rewards.contracts import TaskError
from weightgym.rollouts import evaluation
from weightgym.rollouts.evaluation import Evaluation, EvaluationError, Outcome
from weightgym.rollouts.store import StoreError, read

_EPILOG = """\b
Examples:
  weightgym eval tiny-writer --split test --samples 8 --max-tokens 256 -k 1,4,8 -o eval.jsonl
  weightgym eval eval.jsonl -k 1,8 --threshold 0.2       the same rollouts again, without the model
  weightgym eval openai:my-model --urls http://localhost:8000/v1 --task original/breakout \\
    --samples 16 -o mine.jsonl --resume
  weightgym eval runs/a/checkpoint --against tiny-writer --split test --samples 8 --max-tokens 256 \\
    -o after.jsonl
  weightgym eval after.jsonl --against after.against.jsonl --json

\b
How to read it:
  reward    mean of the tasks' means, with its 95 % interval: a bootstrap over tasks and, within them, samples.
            An interval of one task says nothing about other tasks.
  best@k    the expected best of k answers: what one gets who may try k times.
  pass@k    the chance that one of k answers reaches --threshold.
  faults    rollouts without a reward through our fault; they are left out, never counted as 0.
"""


def _numbers(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Ascending, each once."""
    try:
        numbers = {int(part) for part in value.split(",")}
    except ValueError:
        numbers = {0}
    if min(numbers) < 1:
        raise click.BadParameter(f"{value!r}, want numbers from 1, such as 1,4,8")
    return tuple(sorted(numbers))


@click.command("eval", cls=PolicyCommand, epilog=_EPILOG)
@click.argument("policy")
@click.option("--against", metavar="POLICY", help="Another policy or file: compared on the same tasks and seeds.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where rollouts go, as of `weightgym rollout`. Those of --against go beside it: X.jsonl, X.against.jsonl.",
)
@click.option(
    "-k", "ks", metavar="K,K,…", callback=_numbers, default="1", show_default=True, help="For best@k and pass@k."
)
@click.option("--threshold", type=float, help="Reward that passes.  [default: the environment's]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the rewards by task: a PNG.")
@rollout_options
@snapshot_options
@unsafe_option
def evaluate(
    policy: str,
    against: str | None,
    output: Path | None,
    ks: tuple[int, ...],
    threshold: float | None,
    as_json: bool,
    plot: Path | None,
    plan: Plan,
) -> None:
    """Tell how good POLICY is, by task and in all.

    POLICY is what `weightgym rollout` takes: its rollouts are made (or gone on with, --resume) and kept in OUTPUT. Or
    it is a file of rollouts that is there: then no model is needed. So is --against; pairs of rollouts of the same
    task and index are compared.

    Exit code: 0 if every rollout got a reward, 1 if some did not or the run broke off, 2 if the command was wrong.
    """
    files = {name: _rollouts_file(name) for name in (policy, against) if name is not None}
    if threshold is not None and not math.isfinite(threshold):
        raise click.BadParameter(f"{threshold}, want a finite number", param_hint="--threshold")
    _check(files, output, ks, plan)
    outcomes = _outcomes(policy, files[policy], output, plan)
    others = None
    if against is not None:
        beside = output and output.with_name(f"{output.stem}.against{output.suffix}")
        others = _outcomes(against, files[against], beside, plan)
    sides = [_evaluation(policy, outcomes, ks, threshold)]
    comparison = None
    if against is not None and others is not None:
        sides.append(_evaluation(against, others, ks, threshold))
        try:
            comparison = evaluation.compare(outcomes, others)
        except EvaluationError as error:
            raise click.ClickException(str(error)) from error
    if as_json:
        report_json(sides, comparison)
    else:
        print_report(sides, comparison)
    if plot is not None:
        _plot(plot, sides)
    exit_on_faults([*outcomes, *(others or ())])


def _rollouts_file(policy: str) -> Path | None:
    """The file, if the policy is one."""
    path = Path(policy)
    if path.suffix == ".jsonl" and not path.exists() and ":" not in policy:
        raise click.UsageError(f"there is no file {policy}")
    return path if path.is_file() else None


def _check(files: dict[str, Path | None], output: Path | None, ks: tuple[int, ...], plan: Plan) -> None:
    """What the command line says must be of use.

    Raises:
        click.UsageError: it is not.
    """
    models = [name for name, file in files.items() if file is None]
    if models and output is None:
        raise click.UsageError(f"say where the rollouts of {models[0]} go: -o FILE")
    if not models and (output or plan.tasks or plan.split or plan.resume):
        raise click.UsageError(
            "rollouts that are there are evaluated as they are: leave out -o, --task, --split, --resume"
        )
    if models and max(ks) > plan.samples:
        raise click.UsageError(f"-k {max(ks)} needs --samples {max(ks)} or more, not {plan.samples}")


def _outcomes(policy: str, file: Path | None, output: Path | None, plan: Plan) -> list[Outcome]:
    if file is None:
        assert output is not None  # see _check
        return make_rollouts(policy, output, plan).outcomes
    try:
        return [Outcome.of(one) for one in read(file)]
    except StoreError as error:
        raise click.ClickException(str(error)) from error


def _evaluation(policy: str, outcomes: list[Outcome], ks: tuple[int, ...], threshold: float | None) -> Evaluation:
    thresholds = {one.key[0]: threshold for one in outcomes}
    if threshold is None:
        thresholds = {env: _threshold(env) for env in thresholds}
    try:
        return evaluation.evaluate(outcomes, ks, thresholds)
    except EvaluationError as error:
        raise click.ClickException(f"{policy}: {error}") from error


def _threshold(env: str) -> float | None:
    try:
        return registry.spec(env).pass_threshold
    except TaskError:
        return None  # of an environment that is not registered here: its rollouts are evaluated without


def _plot(picture: Path, sides: list[Evaluation]) -> None:
    try:
        plot_evaluations(picture, sides)
    except ImportError as error:
        raise click.ClickException(f"--plot needs {error.name}: pip install 'weightgym[plots]'") from error
    click.echo(f"{picture}: rewards by task", err=True)
