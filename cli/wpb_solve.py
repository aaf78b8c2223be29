"""``weightgym wpb solve``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: weightgym wpb solve original/space_invaders -o invaders.md --generations 400")
@click.argument("task_id", metavar="GAME")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The answer's file."
)
@click.option("--generations", type=click.IntRange(min=1), default=400, show_default=True, help="How long to search.")
@click.option(
    "--method",
    type=click.Choice(["evolution", "gradient"]),
    default="evolution",
    show_default=True,
    help="Evolution strategies, or policy gradients (PPO; needs the extra `games`).",
)
@click.option(
    "--begin", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="gradient: an answer to begin with."
)
@click.option("--steps", type=click.IntRange(min=1), default=32_768, show_default=True, help="gradient: played each.")
@click.option("--entropy", type=click.FloatRange(min=0), default=0.01, show_default=True, help="gradient: bonus.")
@click.option("--discount", type=click.FloatRange(0, 1), default=0.99, show_default=True, help="gradient: a step.")
@click.option(
    "--pairs", type=click.IntRange(min=1), default=64, show_default=True, help="evolution: pairs of candidates."
)
@click.option(
    "--episodes", type=click.IntRange(min=1), default=16, show_default=True, help="evolution: of a candidate."
)
@click.option(
    "--sigma", type=click.FloatRange(min=0, min_open=True), default=0.1, show_default=True, help="evolution: noise."
)
@click.option(
    "--learning-rate", type=click.FloatRange(min=0, min_open=True), help="[default: evolution 0.05, gradient 0.001]"
)
@click.option(
    "--max-actions", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="Of a training episode."
)
@click.option("--decimals", type=click.IntRange(0, 8), default=2, show_default=True, help="The answer is rounded to.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), help="Threads.  [default: all cores]")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint beside the answer.")
def solve(
    task_id: str,
    output: Path,
    generations: int,
    method: str,
    begin: Path | None,
    steps: int,
    entropy: float,
    discount: float,
    pairs: int,
    episodes: int,
    sigma: float,
    learning_rate: float | None,
    max_actions: int,
    decimals: int,
    seed: int,
    workers: int | None,
    resume: bool,
) -> None:
    """Find an answer that plays GAME (a task id, such as original/breakout) by evolution or by policy gradients.

    Training uses seeds of its own. Beside the answer it keeps OUTPUT.checkpoint.npz and OUTPUT.curve.jsonl, and at the
    end OUTPUT.curve.png (with the extra `plots`). The same options give the same answer, with any number of workers.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from weightgym.envs.weight_program.tasks import SOURCE
    from weightgym.rewards.machine import cores
    from weightgym.rewards.weight_program.edits import parse_edits
    from weightgym.rewards.weight_program.scorer import score
    from weightgym.rewards.weight_program.write_edits import write_edits
    from weightgym.trainers.evolution import Evolution
    from weightgym.trainers.policy_gradient import PolicyGradient
    from weightgym.trainers.solve import Solver

    task = SOURCE.task(task_id, prompt=False)
    if task.data["source"] == "synth":
        raise click.ClickException(f"{task_id}: games of a snapshot can be scored, not solved")
    threads = workers or cores()
    config = (
        Evolution(pairs, episodes, sigma, learning_rate or 0.05, max_actions, seed=seed)
        if method == "evolution"
        else PolicyGradient(
            generations=generations,
            steps=steps,
            learning_rate=learning_rate or 0.001,
            entropy=entropy,
            discount=discount,
            max_actions=max_actions,
            seed=seed,
        )
    )
    if begin is not None and method == "evolution":
        raise click.UsageError("--begin needs --method gradient")
    weights = None if begin is None else parse_edits(begin.read_text()).weights
    try:
        solver = Solver(str(task.data["game"]), config, output, resume=resume, begin=weights)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("generation", total=generations, completed=solver.progress.generation)
        for result in solver.run(generations, threads=threads):
            text = f"score {result.score:.2f}, best {result.best:.2f}"
            progress.update(bar, completed=result.generation, description=text)
    answer = write_edits(solver.best, decimals=decimals)
    output.write_text(answer + "\n")
    scored = score(task, answer, threads=threads)
    _plot(solver.curve, task_id, scored.metrics["cap"])
    click.echo(f"{output}: {task_id} scores {scored.metrics['raw_score']:.3f} a game, reward {scored.reward:.4f}")


def _plot(curve: Path, title: str, cap: float) -> None:
    from weightgym.trainers.curves import plot_curve

    picture = curve.with_suffix(".png")
    try:
        plot_curve(curve, picture, title=title, cap=cap)
    except ImportError:
        click.echo("no picture of the curve without matplotlib: pip install 'weightgym[plots]'", err=True)
    else:
        click.echo(f"{picture}: the curve")
