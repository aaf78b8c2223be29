"""The policy as a sampler: it takes the trainer's weights and gives rollouts, from the backend that is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Backend, Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend
from weightgym.rollouts.run import Job, jobs, run
from weightgym.rollouts.trajectory import Trajectory
from weightgym.rollouts.transformers_backend import TransformersBackend
from weightgym.trainers.config import Config
from weightgym.trainers.mixture import Draw


class Sampler:
    """Rolls out groups. One thread at a time.

    Args:
        model: shared with a transformers backend in synchronous mode, which then needs no sync of weights; None: the
            backend loads a model of its own.
        tokenizer: of the shared model.

    Raises:
        BackendError: the backend can't be opened.
    """

    def __init__(self, config: Config, *, model: Any = None, tokenizer: Any = None) -> None:
        self._config = config
        self.shares_model = model is not None
        options = config.backend.model_dump(exclude={"kind"}, exclude_unset=True)
        if config.backend.kind != "transformers" and config.parameters.kind == "lora":
            options.setdefault("lora_rank", config.parameters.lora_rank)
        chosen = BackendOptions(**options)
        if model is not None:
            chosen.check("transformers")
            self.backend: Backend = TransformersBackend(model, tokenizer=tokenizer, batch_size=chosen.batch_size)
        else:
            self.backend = open_backend(f"{config.backend.kind}:{config.model}", chosen)
        self.takes_adapters = config.parameters.kind == "lora" and hasattr(self.backend, "sync_adapter")

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Sample with those weights from now on. With a shared model they are there already.

        Raises:
            BackendError: the sampler did not take them.
        """
        self.backend.sync([] if self.shares_model else weights, version)

    def sync_adapter(self, folder: Path, version: int) -> None:
        """Sample with that adapter from now on, where ``takes_adapters``."""
        self.backend.sync_adapter(folder, version)  # type: ignore[attr-defined]

    def groups(self, draws: Sequence[Draw], keep: Callable[[Trajectory], None]) -> list[list[Trajectory]]:
        """A group of each draw. ``keep`` gets each rollout as it ends.

        Raises:
            BackendError: generation failed, or a rollout was lost.
        """
        rollout = self._config.rollout
        planned = [jobs([draw.task], rollout.group_size, self._config.seed, label=str(draw.number)) for draw in draws]
        done: dict[str, Trajectory] = {}
        for source in dict.fromkeys(draw.source for draw in draws):
            mine = [job for draw, group in zip(draws, planned, strict=True) if draw.source is source for job in group]
            done |= self.roll_out(mine, source.entry, source.profile, keep)
        return [[done[job.id] for job in group] for group in planned]

    def roll_out(
        self, todo: Sequence[Job], entry: EnvSpec, profile: str, keep: Callable[[Trajectory], None]
    ) -> dict[str, Trajectory]:
        """The trajectory of each job by its id.

        Raises:
            BackendError: see ``groups``.
        """
        rollout = self._config.rollout
        done: dict[str, Trajectory] = {}
        for one in run(
            todo,
            self.backend,
            entry,
            sampling=Sampling(rollout.max_tokens, rollout.temperature),
            profile=profile,
            workers=rollout.workers,
            score_timeout=rollout.score_timeout,
        ):
            keep(one)
            done[one.id] = one
        lost = [job.id for job in todo if job.id not in done]
        if lost:
            raise BackendError(f"{len(lost)} of {len(todo)} rollouts were lost, the first is {lost[0]}")
        return done

    def close(self) -> None:
        """Give the backend back."""
        self.backend.close()
