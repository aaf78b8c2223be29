"""Profiles of Golf: on what bytes, for how long and on which hardware a solution is scored, under one name.

Every number that the rules leave open, or that a smaller machine must change, is here. Changing one makes a new
profile; scores compare only within one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from weightgym.rewards.contracts import SandboxError, TaskError
from weightgym.rewards.suggest import suggest

VOCAB_SIZE = 256
_MOMENT = 0.05
#: CPU-seconds a second that a process which feeds a GPU may use at most.
_CORES_A_RANK = 8
DEFAULT = "golf-cpu-v1"
SMOKE = "golf-smoke-v1"  #: whether a solution runs at all, in seconds; its numbers mean nothing


#: What a config says of it: the arguments of ``Profile.schedule``.
SCHEDULE_KEYS = ("train_steps", "train_batch_tokens", "seq_len", "warmup_steps", "warmdown_steps")


class Schedule(NamedTuple):
    """What is run of a solution's own numbers. ``batch_tokens`` is a whole number of rows of ``seq_len``."""

    train_steps: int
    batch_tokens: int
    warmup_steps: int
    warmdown_steps: int


class Budget(NamedTuple):
    """What a phase may use. ``wall_seconds`` None: four times the CPU-seconds, which only ends what sleeps."""

    cpu_seconds: float
    wall_seconds: float | None = None

    def less(self, cpu_seconds: float, wall_seconds: float) -> Budget:
        """What is left of it, a moment at least."""
        wall = None if self.wall_seconds is None else max(_MOMENT, self.wall_seconds - wall_seconds)
        return Budget(max(_MOMENT, self.cpu_seconds - cpu_seconds), wall)

    def times(self, factor: int) -> Budget:
        """So many times as much."""
        wall = None if self.wall_seconds is None else self.wall_seconds * factor
        return Budget(self.cpu_seconds * factor, wall)


class Hardware(NamedTuple):
    """What the phases run on: ``device`` as torch names it, one training process for each of ``ranks``."""

    device: Literal["cpu", "cuda"]
    ranks: int = 1


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How a solution is trained and scored. Seconds are CPU-seconds where ``clock`` is ``cpu``."""

    name: str
    train_bytes: int
    val_bytes: int
    clock: Literal["cpu", "wall"]  #: what the budgets count
    train_seconds: float
    post_seconds: float  #: from the end of training to the last logit of view A: packing included, view B not
    cpu_factor: int = 1  #: on a machine without a GPU both budgets are this many times as long, and count CPU-seconds
    step_share: tuple[int, int] = (1, 1)  #: the part of a solution's steps that is run, as a fraction
    batch_divisor: int = 1  #: a step has this many times fewer tokens than the solution says
    artifact_cap: int = 4_000_000  #: bytes of the packed model and of solution.py together
    memory_bytes: int = 4 << 30  #: of a phase's process, without a GPU
    gpus: int | None = 0  #: 0 none, None all there are
    gpu_kind: str | None = None
    #: What the text is drawn with when WEIGHTGYM_SECRET is not set. It is no secret: anyone can make this text.
    public_secret: str

    def schedule(
        self, *, train_steps: int, train_batch_tokens: int, seq_len: int, warmup_steps: int, warmdown_steps: int
    ) -> Schedule:
        """What this profile runs of a valid config.

        ``round(steps × share)`` steps, warm-up and warm-down alike but together below the steps (rounding could break
        the rule that they are); tokens of a step divided and floored to whole rows, one row at least.
        """
        steps = max(1, self._share(train_steps))
        warmup = min(self._share(warmup_steps), steps - 1)
        warmdown = min(self._share(warmdown_steps), steps - 1 - warmup)
        rows = max(1, train_batch_tokens // self.batch_divisor // seq_len)
        return Schedule(steps, rows * seq_len, warmup, warmdown)

    def hardware(self, gpus: int) -> Hardware:
        """What it runs on, on a machine with so many GPUs.

        Raises:
            SandboxError: it takes more.
        """
        wanted = gpus if self.gpus is None else self.gpus
        if wanted > gpus:
            raise SandboxError(f"profile {self.name} takes {wanted} GPUs; here are {gpus}")
        return Hardware("cuda", wanted) if wanted else Hardware("cpu")

    def budgets(self, hardware: Hardware) -> tuple[Budget, Budget]:
        """For training, and for packing and view A together."""
        if hardware.device == "cuda":
            cores = _CORES_A_RANK * hardware.ranks
            return Budget(self.train_seconds * cores, self.train_seconds), Budget(
                self.post_seconds * cores, self.post_seconds
            )
        return Budget(self.train_seconds * self.cpu_factor), Budget(self.post_seconds * self.cpu_factor)

    def _share(self, steps: int) -> int:
        top, bottom = self.step_share
        return round(steps * top / bottom)


_FULL = Profile(
    name="golf-full-v1",
    train_bytes=24_000_000,
    val_bytes=500_000,
    clock="wall",
    train_seconds=60,
    post_seconds=60,
    cpu_factor=20,
    memory_bytes=16 << 30,
    gpus=None,
    public_secret="golf-full-v1/public",
)

PROFILES = {
    known.name: known
    for known in (
        Profile(
            name=DEFAULT,
            train_bytes=4_000_000,
            val_bytes=16_384,
            clock="cpu",
            train_seconds=40,
            post_seconds=40,
            step_share=(5, 8),
            batch_divisor=16,
            public_secret="golf-cpu-v1/public",
        ),
        Profile(
            name=SMOKE,
            train_bytes=400_000,
            val_bytes=4_097,
            clock="cpu",
            train_seconds=10,
            post_seconds=10,
            step_share=(1, 16),
            batch_divisor=32,
            public_secret="golf-smoke-v1/public",
        ),
        _FULL,
        Profile(
            name="golf-modal-h100x8",
            train_bytes=_FULL.train_bytes,
            val_bytes=_FULL.val_bytes,
            clock="wall",
            train_seconds=60,
            post_seconds=60,
            gpus=8,
            gpu_kind="H100",
            public_secret="golf-modal-h100x8/public",
        ),
    )
}


def profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        TaskError: there is none; the message suggests the nearest name.
    """
    if (found := PROFILES.get(name)) is not None:
        return found
    raise TaskError(f"unknown profile {name!r}{suggest(name, PROFILES)}")
