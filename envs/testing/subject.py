"""What the contract suite needs to know of an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from weightgym.envs.base import Action
from weightgym.envs.registry import Scorer, TaskSource
from weightgym.rewards.contracts import Split, Task

#: One action, or the actions of a multi-turn episode. When they run out, empty texts follow until the episode ends.
Episode = Action | Sequence[Action]


def whole_content(task: Task) -> Any:
    """All that a task says, without its name: what two tasks must not share across splits."""
    return [task.system_prompt, [message.model_dump() for message in task.prompt], task.data]


@dataclass(frozen=True, kw_only=True)
class EnvSubject:
    """An environment under the contract suite.

    An environment that derives from ``TaskEnv`` brings its tasks, scorer and turn limit along, through its registry
    entry. Any other names ``tasks``, ``scorer``, ``max_turns`` and ``with_scorer`` here.
    """

    #: Makes the environment: ``make(**config)``. Its signature names every flag.
    make: Callable[..., gymnasium.Env[str, Any]]
    #: Task id → a known good episode, and the least reward that it must reach.
    gold: Callable[[str], tuple[Episode, float]]
    #: The reward of an invalid answer.
    floor: float
    #: Flag → at least two values, each of which must change some trace. ``split`` takes its values from ``splits``.
    flags: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: Flags for every check but the one of the flags, such as a cheap profile.
    config: Mapping[str, Any] = field(default_factory=dict)
    splits: tuple[Split, ...] = ("train", "test")
    #: What ``gymnasium.make`` takes; without it the Gymnasium checks use a specification around ``make``.
    gym_id: str | None = None
    #: Task ids of the cheap checks (prompts and invalid answers). Default: every id of every split.
    quick_ids: tuple[str, ...] | None = None
    #: Task ids of the checks that score good answers: the first one 13 times, the others 4 times, and each once more
    #: for every value of a flag. Default: the first id of every split.
    slow_ids: tuple[str, ...] | None = None
    #: Episodes that do nothing.
    noops: tuple[Episode, ...] = ("",)
    #: Further answers that must get the floor: the environment's own kinds of mistake.
    invalid: tuple[Episode, ...] = ()
    #: A further answer beyond the size limit; a text beyond the action space's ``max_length`` is always tried.
    oversize: Episode | None = None
    #: What makes two tasks the same task, whatever their names.
    content: Callable[[Task], Any] = whole_content
    tasks: TaskSource | None = None
    scorer: Scorer | None = None
    #: Turns after which an episode must have ended.
    max_turns: int | None = None
    #: Makes the environment around another scorer, so that a failing one can be given to it.
    with_scorer: Callable[[Scorer], gymnasium.Env[str, Any]] | None = None
