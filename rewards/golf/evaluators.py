"""The evaluators of this process, one a profile: here, or on Modal."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Protocol

from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.profile import Profile
from weightgym.rewards.golf.profile import profile as find_profile
from weightgym.rewards.golf.report import Result
from weightgym.rewards.sandbox import unsafe_allowed


class Evaluates(Protocol):
    """What ``Evaluator`` does, here or elsewhere."""

    profile: Profile
    jobs: int

    def evaluate(self, raw: bytes, corpus: Corpus) -> Result:
        """See ``Evaluator.evaluate``."""
        ...

    def refused(self, error: SolutionError, corpus: Corpus, raw: bytes = b"") -> Result:
        """See ``Evaluator.refused``."""
        ...

    def close(self) -> None:
        """End all that it runs."""
        ...


_shared: dict[tuple[str, bool, int], Evaluates] = {}
_lock = threading.Lock()


def shared(name: str) -> Evaluates:
    """This process's evaluator of a profile, made on first use: on Modal, where the profile names its GPUs. Without a
    sandbox if the user allows that.

    Raises:
        TaskError: there is no such profile.
        SandboxError: see ``Evaluator``.
    """
    key = name, unsafe_allowed(), os.getpid()  # a fork must not share its parent's sandbox
    with _lock:
        if key not in _shared:
            _shared[key] = open_evaluator(find_profile(name), unsafe=key[1])
        return _shared[key]


def open_evaluator(profile: Profile, *, unsafe: bool = False, jobs: int | None = None) -> Evaluates:
    """An evaluator of one's own, to be closed: on Modal, where the profile names its GPUs.

    Raises:
        SandboxError: see ``Evaluator``.
    """
    if profile.gpu_kind is None:
        return Evaluator(profile, unsafe=unsafe, jobs=jobs)
    from weightgym.rewards.golf.modal_evaluator import ModalEvaluator

    return ModalEvaluator(profile, unsafe=unsafe, jobs=jobs or 1)


@atexit.register
def _close_shared() -> None:
    for evaluator in _shared.values():
        evaluator.close()
