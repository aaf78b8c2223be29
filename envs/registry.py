"""The environments by name: an explicit list of what is built in, those that installed packages bring along, and
:func:`register` for what is to be known in this process only.

Entries are data; what they point to (``"module:attribute"``) is imported on first use.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from weightgym.rewards.failures import TaskError
from weightgym.rewards.suggest import suggest

if TYPE_CHECKING:  # pydantic would make `import weightgym.envs` slow
    from weightgym.rewards.contracts import Completion, Score, Split, Task
    from weightgym.rewards.explanation import Explanation


class TaskSource(Protocol):
    """The tasks of one environment."""

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, in a fixed order."""

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id. ``prompt=False`` leaves the prompt empty, which is enough to score.

        Raises:
            TaskError: there is no such task, or something that its prompt needs is missing.
        """


class Explainer(Protocol):
    """Tells how a score came about; it raises only ``TaskError``."""

    def __call__(self, task: Task, completion: Completion, score: Score) -> Explanation: ...


class Scorer(Protocol):
    """The one scoring function of a benchmark: it returns a ``Score`` for any answer, and raises only ``TaskError``."""

    def __call__(self, task: Task, completion: Completion, *, profile: str = ...) -> Score: ...


@dataclass(frozen=True)
class EnvSpec:
    """One environment. ``name`` is used in files and commands, ``gym_id`` by ``gymnasium.make``."""

    name: str
    gym_id: str
    summary: str
    env: str  #: "module:class", a gymnasium.Env
    source: str  #: "module:object", a TaskSource
    scorer: str  #: "module:function", a Scorer
    default_profile: str
    profiles: str  #: what the profile names mean, for people
    floor: float  #: the reward of an invalid answer
    max_turns: int = 1
    #: Wall seconds that one step of an environment of several turns may take before it is given up as a fault of ours.
    #: More than its own limits add up to on a busy machine.
    step_timeout: float = 600.0
    #: That making one prompt takes, roughly: who looks for a prompt among all tries the quick ones first.
    prompt_seconds: float = 0.01
    #: An answer with this reward or more solves its task: what pass@k counts. None: no reward says that.
    pass_threshold: float | None = None
    #: "module:mapping" of names to agents, which ``scripted:NAME`` plays: see ``rollouts.scripted``.
    agents: str = ""
    #: "module:function", an Explainer; by default what the score says of itself.
    explainer: str = "weightgym.rewards.explanation:explain"

    def checked_profile(self, wanted: str | None) -> str:
        """The profile to score under: the wanted one, tried on the environment, or the default. An environment that
        takes no ``profile`` has the default alone.

        Raises:
            TaskError: the environment has no such profile.
        """
        if wanted is None:
            return self.default_profile
        make = load(self.env)
        if "profile" in inspect.signature(make).parameters:
            make(profile=wanted)
        elif wanted != self.default_profile:
            raise TaskError(f"unknown profile {wanted!r}: {self.name} has {self.default_profile} alone")
        return wanted

    @property
    def tasks(self) -> TaskSource:
        """The task source, imported on first use.

        Raises:
            TaskError: it can't be: a mistake of whoever wrote the entry.
        """
        try:
            source: TaskSource = load(self.source)
        except (AttributeError, ImportError, ValueError) as error:
            problem = f"source {self.source!r}: {type(error).__name__}: {error}"
            raise TaskError(f"environment {self.name!r} can't be loaded: {problem}") from error
        return source

    def tasks_under(self, profile: str) -> TaskSource:
        """The tasks as they are asked under a profile: a source whose prompts depend on it has a method ``under``.

        Raises:
            TaskError: the source has no such profile.
        """
        source = self.tasks
        under: Callable[[str], TaskSource] | None = getattr(source, "under", None)
        return source if under is None else under(profile)

    @property
    def score(self) -> Scorer:
        """The scoring function, imported on first use."""
        scorer: Scorer = load(self.scorer)
        return scorer

    @property
    def explain(self) -> Explainer:
        """The function that tells how a score came about, imported on first use."""
        explainer: Explainer = load(self.explainer)
        return explainer


#: The group of entry points by which an installed package names its environments: ``NAME = "module:SPEC"``.
GROUP = "weightgym.environments"

_SPECS: dict[str, EnvSpec] = {}


def load(path: str) -> Any:
    """Import ``"module:attribute"``.

    Raises:
        ValueError: the path has another form.
        ImportError, AttributeError: there is no such module, or it has no such attribute.
    """
    module, _, attribute = path.partition(":")
    if not (module and attribute):
        raise ValueError(f"bad import path {path!r}: write 'module:attribute'")
    return getattr(importlib.import_module(module), attribute)


def register(spec: EnvSpec) -> None:
    """Add an environment. ``gymnasium.make`` knows it after the next call of ``gymnasium_plugin.register()``.

    Raises:
        ValueError: the name or the Gymnasium id is taken.
    """
    for other in _SPECS.values():
        if {spec.name, spec.gym_id} & {other.name, other.gym_id}:
            raise ValueError(f"environment {spec.name!r} ({spec.gym_id}) is registered already, as {other}")
    _SPECS[spec.name] = spec


@contextmanager
def override(spec: EnvSpec) -> Iterator[None]:
    """For tests: inside the ``with`` block, ``spec`` is the environment of its name, registered before or not."""
    before = dict(_SPECS)
    _SPECS[spec.name] = spec
    try:
        yield
    finally:
        _SPECS.clear()
        _SPECS.update(before)


def specs() -> tuple[EnvSpec, ...]:
    """All registered environments, in order of registration; without those that installed packages name."""
    return tuple(_SPECS.values())


@dataclass(frozen=True)
class Installed:
    """What installed packages name: their environments, and by name, why something is none."""

    specs: tuple[EnvSpec, ...]
    problems: dict[str, str]


@functools.cache
def installed() -> Installed:
    """The environments of other packages (see ``GROUP``). Their modules are imported, once a process; one that can't be
    is a problem of that name alone.
    """
    from importlib.metadata import entry_points  # slow, and often not needed

    found: dict[str, EnvSpec] = {}
    problems: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        try:
            found[entry.name] = _checked(entry.name, load(entry.value), (*specs(), *found.values()))
        except Exception as error:  # of other people's modules
            problems[entry.name] = f"{entry.value}: {type(error).__name__}: {error}"
    return Installed(tuple(found.values()), problems)


def _checked(name: str, spec: object, known: tuple[EnvSpec, ...]) -> EnvSpec:
    if not isinstance(spec, EnvSpec):
        raise TypeError(f"an EnvSpec is wanted, not {type(spec).__name__}")
    if spec.name != name:
        raise ValueError(f"the entry point is named {name!r}, but the EnvSpec {spec.name!r}")
    for other in known:
        if {spec.name, spec.gym_id} & {other.name, other.gym_id}:
            raise ValueError(f"{spec.name!r} ({spec.gym_id}) is taken, by {other.env}")
    return spec


def all_specs() -> tuple[EnvSpec, ...]:
    """The registered environments, and those of installed packages that are not hidden by one of the same name."""
    return (*specs(), *(spec for spec in installed().specs if spec.name not in _SPECS))


def spec(name: str) -> EnvSpec:
    """The environment of that short name or Gymnasium id. Other packages are looked at only if it is not registered.

    Raises:
        TaskError: there is none (the message suggests the nearest name), or the package that names it can't be loaded.
    """
    for known in (specs, all_specs):
        for candidate in known():
            if name in (candidate.name, candidate.gym_id):
                return candidate
    if name in installed().problems:
        raise TaskError(f"environment {name!r} can't be loaded: {installed().problems[name]}")
    names = [candidate.gym_id if "/" in name else candidate.name for candidate in all_specs()]
    raise TaskError(f"unknown environment {name!r}{suggest(name, names)}")


register(
    EnvSpec(
        name="weight-program",
        gym_id="weightgym/WeightProgram-v1",
        summary="write the weights of a 600-32-32-6 network that plays a small game",
        env="weightgym.envs.weight_program.env:WeightProgramEnv",
        source="weightgym.envs.weight_program.tasks:SOURCE",
        scorer="weightgym.rewards.weight_program.scorer:score",
        explainer="weightgym.rewards.weight_program.explain:explain",
        default_profile="wpb-v1",
        profiles="wpb-v1 (1,000 episodes), wpb-v1-eN (the first N of them)",
        floor=0.0,
        pass_threshold=0.5,  # half the cap; a constant action gets 0.15 at most
    )
)
register(
    EnvSpec(
        name="golf",
        gym_id="weightgym/Golf-v1",
        summary="write solution.py, which builds and packs a small byte-level language model of an invented language",
        env="weightgym.envs.golf.env:GolfEnv",
        source="weightgym.envs.golf.tasks:SOURCE",
        scorer="weightgym.rewards.golf.scorer:score",
        explainer="weightgym.rewards.golf.explain:explain",
        default_profile="golf-cpu-v1",
        profiles="golf-cpu-v1, golf-full-v1, golf-modal-h100x8, golf-smoke-v1",
        floor=-9.0,
        prompt_seconds=0.3,
    )
)
register(
    EnvSpec(
        name="golf-turns",
        gym_id="weightgym/GolfTurns-v1",
        summary="the same with up to four attempts, the evaluator's report after each, and the best one's reward",
        env="weightgym.envs.golf.env:GolfTurnsEnv",
        source="weightgym.envs.golf.tasks:TURNS_SOURCE",
        scorer="weightgym.rewards.golf.scorer:score",
        explainer="weightgym.rewards.golf.explain:explain",
        default_profile="golf-cpu-v1",
        profiles="those of golf",
        floor=-9.0,
        max_turns=4,
        prompt_seconds=0.4,
        step_timeout=6 * 3600.0,  # eight of golf-full-v1 at once on the cores of a small machine
    )
)
register(
    EnvSpec(
        name="wsp-bench",
        gym_id="weightgym/WSPBench-v1",
        summary="find and repair a defect that was planted in a language model, with tools and under a budget",
        env="weightgym.envs.wsp.env:WSPBenchEnv",
        source="weightgym.envs.wsp.tasks:SOURCE",
        scorer="weightgym.rewards.wsp.scorer:score",
        explainer="weightgym.rewards.wsp.explain:explain",
        default_profile="wsp-v1",
        profiles="wsp-v1",
        floor=0.0,
        max_turns=40,
        pass_threshold=0.9,
        agents="weightgym.envs.wsp.agents:AGENTS",
    )
)
