"""Making rollouts for a command: its options, and the run itself. ``rollout`` and ``eval`` share it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import track

from weightgym.cli.backend_options import backend_options
from weightgym.cli.console import DEFAULT_ENV
from weightgym.cli.score_file import checked_profile
from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError, Task
from weightgym.rewards.machine import cores
from weightgym.rollouts.backend import Backend, Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend
from weightgym.rollouts.evaluation import Outcome
from weightgym.rollouts.run import Job, jobs, run
from weightgym.rollouts.store import Store, StoreError
from weightgym.rollouts.trajectory import Trajectory

Command = Callable[..., Any]

#: Seconds that one call of a backend may take, where no server's ``request_timeout`` allows more.
_GENERATE_TIMEOUT = 3600.0


@dataclass(frozen=True)
class Plan:
    """Which rollouts to make, and how."""

    env: str
    tasks: tuple[str, ...]
    split: str | None
    samples: int
    profile: str | None
    max_tokens: int
    temperature: float
    seed: int
    workers: int | None
    resume: bool
    backend: BackendOptions

    @property
    def sampling(self) -> Sampling:
        """How to sample.

        Raises:
            click.UsageError: a value is out of range.
        """
        try:
            return Sampling(max_tokens=self.max_tokens, temperature=self.temperature)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def chosen(self, entry: registry.EnvSpec, profile: str) -> list[Task]:
        """The tasks, as they are asked under the profile.

        Raises:
            click.UsageError: neither tasks nor a split are named, or both; or a task is named twice.
        """
        if bool(self.tasks) == (self.split is not None):
            raise click.UsageError("say which tasks: either --task (once or more) or --split")
        if len(set(self.tasks)) < len(self.tasks):
            raise click.UsageError("a --task is named twice: --samples makes more rollouts of each")
        tasks = entry.tasks_under(profile)
        ids = self.tasks or tasks.ids("train" if self.split == "train" else "test")
        return [tasks.task(id) for id in ids]


def rollout_options(function: Command) -> Command:
    """Add the options, those of backends included; the command is given a :class:`Plan` as ``plan``."""

    @backend_options
    @click.option("--env", default=DEFAULT_ENV, show_default=True, help="The environment.")
    @click.option("--task", "tasks", multiple=True, help="A task id; may be given several times.")
    @click.option("--split", type=click.Choice(["train", "test"]), help="All tasks of a split.")
    @click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Rollouts of each task.")
    @click.option("--profile", help="Scoring profile, such as wpb-v1-e64.  [default: the environment's]")
    @click.option("--max-tokens", type=int, default=1024, show_default=True, help="Of an answer.")
    @click.option("--temperature", type=float, default=1.0, show_default=True, help="0: greedy.")
    @click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Decides every sample.")
    @click.option("--workers", type=click.IntRange(min=1), help="Scoring processes.  [default: all cores]")
    @click.option("--resume", is_flag=True, help="Go on with OUTPUT: what has a reward is kept, the rest is made.")
    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        plan = Plan(**{field.name: kwargs.pop(field.name) for field in fields(Plan)})
        return function(*args, plan=plan, **kwargs)

    return command


@dataclass(frozen=True)
class Made:
    """What a plan came to."""

    outcomes: list[Outcome]
    kept: int  #: of them, made by an earlier run


def make_rollouts(policy: str, output: Path, plan: Plan) -> Made:
    """Make what the plan wants and ``output`` does not hold yet; each rollout is written as it ends.

    Raises:
        BackendError: generation failed; the message says what is kept.
        click.ClickException: the store is in the way, made otherwise, in use, or can't be written.
        KeyboardInterrupt: after a line on stderr about what is kept.
    """
    entry = registry.spec(plan.env)
    profile, sampling = checked_profile(entry, plan.profile), plan.sampling
    planned = jobs(plan.chosen(entry, profile), plan.samples, plan.seed)
    kept: dict[str, Outcome] = {}
    made: dict[str, Outcome] = {}
    try:
        with Store(output, resume=plan.resume) as store:
            kept = {job.id: Outcome.of(store.kept.pop(job.id)) for job in planned if job.id in store.kept}
            store.kept.clear()  # they may be large
            _check_kept(kept, planned, profile, sampling, output)
            todo = [job for job in planned if job.id not in kept]
            if todo:
                with closing(open_backend(policy, plan.backend)) as backend:
                    _check_policy(kept, backend.name, output)
                    for one in _results(todo, backend, entry, sampling, profile, plan):
                        store.add(one)
                        made[one.id] = Outcome.of(one)
    except StoreError as error:
        raise click.ClickException(str(error)) from error
    except BackendError as error:
        raise BackendError(f"{error}{_left(kept | made, len(planned), output)}") from error
    except KeyboardInterrupt:
        click.echo(f"stopped{_left(kept | made, len(planned), output)}", err=True)
        raise
    return Made([(kept | made)[job.id] for job in planned], len(kept))


def _results(
    todo: Sequence[Job], backend: Backend, entry: registry.EnvSpec, sampling: Sampling, profile: str, plan: Plan
) -> Iterable[Trajectory]:
    """The trajectories, with a progress bar."""
    results = run(
        todo,
        backend,
        entry,
        sampling=sampling,
        profile=profile,
        workers=plan.workers or cores(),
        generate_timeout=max(_GENERATE_TIMEOUT, 1.1 * plan.backend.request_timeout),
    )
    return track(results, escape(backend.name), total=len(todo), console=Console(stderr=True), transient=True)


def _left(done: dict[str, Outcome], planned: int, output: Path) -> str:
    """What a run that broke off left, for its message. An empty file would be in the next one's way."""
    if output.stat().st_size == 0:
        output.unlink()
        return ""
    rewards = sum(one.reward is not None for one in done.values())
    return f". {rewards} of {planned} rollouts have their reward in {output}: --resume goes on with it"


def _check_kept(
    kept: dict[str, Outcome], planned: Sequence[Job], profile: str, sampling: Sampling, output: Path
) -> None:
    """What is kept must be what would be made now.

    Raises:
        click.ClickException: it was made from another task, seed or profile, or sampled otherwise.
    """
    for job in planned:
        one = kept.get(job.id)
        if one is None:
            continue
        for what, old, new in (
            ("--profile", one.profile, profile),
            ("--seed", one.seed, job.seed),
            ("task", one.task_sha256, job.task.hash),
            ("--max-tokens", one.max_tokens, sampling.max_tokens),
            ("--temperature", one.temperature, sampling.temperature),
        ):
            if old is not None and old != new:
                raise click.ClickException(
                    f"{output}: rollout {one.id} was made with another {what} ({old}, not {new}): name another file"
                )


def _check_policy(kept: dict[str, Outcome], name: str, output: Path) -> None:
    for one in kept.values():
        if one.policy != name:
            raise click.ClickException(f"{output} is of policy {one.policy}, not {name}: name another file with -o")


def exit_on_faults(outcomes: Sequence[Outcome]) -> None:
    """Exit with 1 if a rollout has no reward."""
    if any(one.reward is None for one in outcomes):
        raise click.exceptions.Exit(1)
