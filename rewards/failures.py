"""The failure boundaries; ``weightgym.rewards.contracts`` has them too. This module imports nothing at all."""

from __future__ import annotations


class WeightgymError(Exception):
    """Base of the failure boundaries. Every failure belongs to exactly one of the subclasses."""


class ModelError(WeightgymError):
    """The policy's output is at fault (it cannot be read as an answer). Its message starts with a code and ``": "``."""


class GraderError(WeightgymError):
    """A scorer of ours is at fault; there is no reward."""


class SandboxError(WeightgymError):
    """The sandbox could not do its work (it did not start, it lost its process)."""


class BackendError(WeightgymError):
    """Generation failed (an engine or a server is at fault)."""


class TaskError(WeightgymError):
    """The task itself is bad or unknown: its id, its fields, or a file it needs."""
