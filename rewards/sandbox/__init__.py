"""Running foreign code: one sandbox for all that needs one.

A ``Sandbox`` is a policy and a *runner* (a Python file of ours that is copied nowhere and imported inside only). It
starts phases: one function of the runner each, in a process of its own that is killed with all it started when the
phase is over. See ``sandbox.py``.
"""

from weightgym.rewards.sandbox.inputs import Sealed
from weightgym.rewards.sandbox.inside.frames import Tensor
from weightgym.rewards.sandbox.phase import Phase, PhaseEnd, PhaseError
from weightgym.rewards.sandbox.policy import SandboxPolicy
from weightgym.rewards.sandbox.sandbox import Sandbox
from weightgym.rewards.sandbox.support import UNSAFE_VARIABLE, find_sandbox, unsafe_allowed

__all__ = [
    "UNSAFE_VARIABLE",
    "Phase",
    "PhaseEnd",
    "PhaseError",
    "Sandbox",
    "SandboxPolicy",
    "Sealed",
    "Tensor",
    "find_sandbox",
    "unsafe_allowed",
]
