"""The evaluator of Golf: check, gate, train, pack, serve twice, audit, verdict.

Trusted and untrusted code never share a process. The solution's own code runs in the sandbox only, one process a
phase; the bytes of the artifact are counted here, and so are the bits: from the logits, by ``audit.py``.
"""

from __future__ import annotations

import importlib.metadata
import math
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from weightgym.rewards.golf import artifact
from weightgym.rewards.golf.audit import BFLOAT16, FLOAT32, Verdict, audit
from weightgym.rewards.golf.check import Solution
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.phases import Candidate, PhaseFault
from weightgym.rewards.golf.profile import SCHEDULE_KEYS, Hardware, Profile, Schedule
from weightgym.rewards.golf.reading import read, refusal, result
from weightgym.rewards.golf.report import CHARGED, Result
from weightgym.rewards.golf.tensors import State
from weightgym.rewards.golf.views import Plan
from weightgym.rewards.machine import cores, cpu_name, gpu_names
from weightgym.rewards.sandbox import Sandbox, SandboxPolicy

RUNNER = Path(__file__).parent / "runner.py"
_MIB = 1 << 20
_AUDIT_TEXTS = {
    "audit_bad_logits": "the logits are not finite float numbers of shape [rows, length, 256] within ±100,000",
    "audit_random": "the same rows got other predictions in another process: the model is random when it is scored",
    "audit_state_carried": "a row's predictions depend on what was scored before it",
    "audit_batch_statistics": "a row's predictions depend on the other rows of its batch",
    "audit_future_bytes": "predictions depend on bytes that come later",
    "audit_score_out_of_range": "the bits a byte are not between 0 and 16",
}


class Evaluator:
    """Evaluates solutions under one profile; from any thread. Close it, or use it as a context manager.

    Args:
        profile: what is run, and how long.
        unsafe: without a sandbox (``UnsafeWarning``).
        warm: fork phases from one prepared process; else start an interpreter for each.
        jobs: candidates at work at once; by default one a core, or one where GPUs are used.

    Raises:
        SandboxError: this machine has no sandbox, or not the profile's GPUs.
    """

    def __init__(self, profile: Profile, *, unsafe: bool = False, warm: bool = True, jobs: int | None = None) -> None:
        gpus = gpu_names()
        self.profile = profile
        self.hardware = profile.hardware(len(gpus))
        self.fingerprint = fingerprint(self.hardware, gpus) | {"sandbox": not unsafe}
        self.warm = warm
        self.jobs = jobs or (cores() if self.hardware.device == "cpu" else 1)
        self._slots = threading.BoundedSemaphore(self.jobs)
        self._sandbox = Sandbox(policy(profile, self.hardware), RUNNER, warm=warm, unsafe=unsafe)

    def evaluate(self, raw: bytes, corpus: Corpus) -> Result:
        """Evaluate a ``solution.py``. Every fault of the candidate is a ``buggy`` result.

        Raises:
            SandboxError: the sandbox failed.
        """
        with self._slots:
            facts = _Course(self, raw, corpus).run()
            return result(raw, corpus, self.profile, facts, self.fingerprint)

    def refused(self, error: SolutionError, corpus: Corpus, raw: bytes = b"") -> Result:
        """The result of a solution that can't be run, or of an answer without one."""
        return result(raw, corpus, self.profile, refusal(error), self.fingerprint)

    def start(self, solution: Solution) -> Candidate:
        """The candidate, before its first phase."""
        return Candidate(self._sandbox, solution.source.text.encode(), solution.config, self.hardware)

    def close(self) -> None:
        """End the sandbox and all that runs in it."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass
class _Course:
    """One evaluation: what is known of it so far is kept for the result, whatever happens next."""

    evaluator: Evaluator
    raw: bytes
    corpus: Corpus
    candidate: Candidate | None = None
    books: artifact.Account | None = None

    def run(self) -> dict[str, Any]:
        """The fields of the result: ``val_bpb``, or a reason."""
        solution, facts = read(self.raw)
        if solution is None:
            return facts
        try:
            end = self._run(solution)
        except PhaseFault as fault:
            end = {"phase": fault.phase, "reason": fault.reason, "message": fault.message}
        return facts | self._used() | end

    def _run(self, solution: Solution) -> dict[str, Any]:
        self.candidate = candidate = self.evaluator.start(solution)
        training, after = self.evaluator.profile.budgets(self.evaluator.hardware)
        trained = candidate.train(self.corpus.train_input, self._schedule(solution), training)
        claimed, state = candidate.pack(trained, after)
        try:
            self.books = artifact.account(claimed, state, self.raw)
        except artifact.ClaimError as error:
            raise PhaseFault("pack", "eval_failed", str(error)) from None
        cap = self.evaluator.profile.artifact_cap
        if self.books.total > cap:
            text = f"packed model and source are {self.books.total:,} bytes; {cap:,} are allowed"
            return {"phase": "pack", "reason": "artifact_cap_exceeded", "message": text}
        verdict = self._audit(candidate, artifact.canonical(state))
        apart = {"apart": verdict.worst} if math.isfinite(verdict.worst) else {}
        if verdict.code:
            return {"phase": "audit", "reason": verdict.code, "message": _AUDIT_TEXTS[verdict.code], **apart}
        return {"phase": "audit", "val_bpb": verdict.val_bpb, **apart}

    def _schedule(self, solution: Solution) -> Schedule:
        return self.evaluator.profile.schedule(**{key: int(solution.config[key]) for key in SCHEDULE_KEYS})

    def _audit(self, candidate: Candidate, state: State) -> Verdict:
        """Both views, each to a server of its own. View B is not charged: it has the whole budget again, as often as it
        shows each row."""
        evaluator = self.evaluator
        _, after = evaluator.profile.budgets(evaluator.hardware)
        left = after.less(candidate.cpu_s["pack"], candidate.wall_s["pack"])
        tolerance = BFLOAT16 if evaluator.hardware.device == "cuda" else FLOAT32
        length = int(candidate.config["seq_len"])
        plan = Plan(self.corpus.val, length, secret=secrets.token_bytes(32), other=self.corpus.other)
        first = candidate.serve("serve", state, left, secrets.randbits(62))
        second = candidate.serve("audit", state, after.times(plan.showings), secrets.randbits(62))
        return audit(plan, first, second, tolerance)

    def _used(self) -> dict[str, Any]:
        """What the phases have used, and the bytes, as far as they are known."""
        found: dict[str, Any] = {}
        if self.candidate is not None:
            one = self.candidate
            counted = one.cpu_s if one.hardware.device == "cpu" else one.wall_s
            runtime = round(sum(counted.get(phase, 0.0) for phase in CHARGED), 3)
            found = {
                "phase_s": one.wall_s, "cpu_s": one.cpu_s, "runtime_s": runtime, "param_count": one.parameters,
            }  # fmt: skip
        if self.books is not None:
            books = self.books
            found |= {"claimed_bytes": books.claimed, "audited_bytes": books.audited, "artifact_bytes": books.total}
        return found


def fingerprint(hardware: Hardware, gpus: tuple[str, ...]) -> dict[str, Any]:
    """What the bits of a score may depend on, besides the profile and the corpus."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = ""
    found: dict[str, Any] = {"cpu": cpu_name(), "torch": torch, "device": hardware.device, "threads": 1}
    return found | ({"gpus": list(gpus[: hardware.ranks])} if hardware.device == "cuda" else {})


def policy(profile: Profile, hardware: Hardware) -> SandboxPolicy:
    """The sandbox of a profile's phases; each has its CPU and wall limits from its budget."""
    logits = (profile.val_bytes + 4 * 64 * 2048) * 256 * 4  # of a view: rows, probes and filling
    several = hardware.ranks > 1
    names = (("GLOO_SOCKET_IFNAME", "lo"), ("NCCL_SOCKET_IFNAME", "lo")) if several else ()
    return SandboxPolicy(
        packages=("torch", "numpy"),
        memory_bytes=profile.memory_bytes,
        output_bytes=max(600 * _MIB, logits + _MIB),  # each answer has a bound of its own
        tasks=32 if hardware.device == "cpu" else 4096,
        descriptors=128 if hardware.device == "cpu" else 4096,
        tmpfs_bytes=64 * _MIB if hardware.device == "cpu" else 2048 * _MIB,
        multiprocess=several,
        gpu=hardware.device == "cuda",
        environment=(*SandboxPolicy().environment, *names),
    )
