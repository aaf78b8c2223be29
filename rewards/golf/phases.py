"""A candidate's phases, each in a process of its own in the sandbox, and what they hand back, checked.

The phases are functions of ``runner.py``. What they say of themselves is believed in nothing: failures become fixed
codes, and of an exception only the name of its class and a line number are told, and only where there was no
validation data.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weightgym.rewards.contracts import ModelError
from weightgym.rewards.golf import report
from weightgym.rewards.golf.profile import Budget, Hardware, Schedule
from weightgym.rewards.golf.tensors import State, StateError, received_state, state_items
from weightgym.rewards.sandbox import Phase, PhaseError, Sandbox, Sealed
from weightgym.rewards.sandbox import Tensor as SentTensor

Array = np.ndarray[Any, Any]

_TEXTS = {
    "source_raised": "the file's own statements raised {error}",
    "no_module": "build_model returned something that is neither a torch.nn.Module nor None",
    "build_failed": "build_model raised {error}",
    "train_raised": "the model raised {error} while it was trained",
    "bad_state": "the trained model's state_dict() raised, or holds more than plain tensors under text keys",
    "pack_raised": "quantized_roundtrip raised {error}",
    "bad_artifact": "quantized_roundtrip must return (state_dict, artifact_bytes), with plain tensors under text keys",
    "bad_claim": "artifact_bytes must be a plain int of at least 0",
    "load_failed": "the state does not load into a fresh model with strict=True",
    "serve_raised": "the model raised an exception while it was scored",
    "cpu_limit": "it used more CPU-seconds than it may",
    "wall_limit": "it took longer than it may",
    "out_of_memory": "it ran out of memory",
    "output_limit": "it handed back more bytes than it may",
    "crashed": "its process was ended by a signal",
    "exception": "its process ended with an exception",
    "ended": "its process ended without a result",
    "bad_frame": "what it handed back is not what was asked for",
}
_EXCEPTIONS = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}
#: Logits are float32 of 256 classes; more for the frame around them.
_LOGITS_BYTES, _FRAME_BYTES = 4 * 256, 4096
#: A trained state at most; and an artifact's, which is audited: that takes up to 0.1 s a MiB.
_STATE_BYTES, _ARTIFACT_BYTES = 512 << 20, 256 << 20


class PhaseFault(ModelError):
    """A phase that went wrong by the candidate's fault: ``phase``, ``reason`` (one of the rules') and ``message``."""

    def __init__(self, phase: report.Phase, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.phase, self.reason, self.message = phase, reason, message


@dataclass
class Candidate:
    """A solution's text, how it is run, and what its phases have used so far, in seconds (waits for a core aside)."""

    sandbox: Sandbox
    source: bytes
    config: Mapping[str, int | float]
    hardware: Hardware
    cpu_s: dict[report.Phase, float] = field(default_factory=dict)
    wall_s: dict[report.Phase, float] = field(default_factory=dict)
    parameters: int | None = None

    def train(self, data: Sealed, schedule: Schedule, budget: Budget) -> State:
        """Train; the trained state.

        Raises:
            PhaseFault: it did not come about.
        """
        fields = {
            "steps": schedule.train_steps, "batch_tokens": schedule.batch_tokens,
            "warmup": schedule.warmup_steps, "warmdown": schedule.warmdown_steps,
        }  # fmt: skip
        with self._phase("train", "train", budget, {"data": data}) as phase:
            phase.send(self._request(schedule=fields, ranks=self.hardware.ranks))
            items = self._answer(phase, "train", _STATE_BYTES)
            phase.finish()
            self.parameters = _number(items, "param_count")
            return received_state(items)

    def pack(self, state: State, budget: Budget) -> tuple[int, State]:
        """Pack; the claimed bytes and the artifact's state.

        Raises:
            PhaseFault: it did not come about.
        """
        with self._phase("pack", "pack", budget) as phase:
            phase.send(self._request(**state_items(state)))
            items = self._answer(phase, "pack", _ARTIFACT_BYTES)
            phase.finish()
            return _number(items, "claimed"), received_state(items)

    @contextmanager
    def serve(self, name: report.Phase, state: State, budget: Budget, seed: int) -> Iterator[Callable[[Array], Any]]:
        """A function from uint8 rows [n, length] to logits: what came instead of an array is None.

        Raises:
            PhaseFault: the server failed, in the function too.
        """
        with self._phase(name, "serve", budget) as phase:
            phase.send(self._request(seed=seed, **state_items(state)))
            self._answer(phase, name, _FRAME_BYTES)

            def logits(rows: Array) -> Any:
                data = np.ascontiguousarray(rows).reshape(-1).data
                phase.send({"rows": SentTensor("uint8", rows.shape, data)})
                sent = self._answer(phase, name, rows.size * _LOGITS_BYTES + _FRAME_BYTES).get("logits")
                if not isinstance(sent, SentTensor) or sent.dtype != "float32" or 0 in sent.shape:
                    return None
                return np.frombuffer(sent.data, "<f4").reshape(sent.shape)

            yield logits
            phase.finish()

    def _request(self, **more: Any) -> dict[str, Any]:
        tensors = {name: item for name, item in more.items() if isinstance(item, SentTensor)}
        plain = {name: item for name, item in more.items() if name not in tensors}
        common = {"config": dict(self.config), "device": self.hardware.device, "threads": 1}
        return {"request": json.dumps(common | plain), **tensors}

    @contextmanager
    def _phase(
        self, name: report.Phase, function: str, budget: Budget, inputs: Mapping[str, Sealed] | None = None
    ) -> Iterator[Phase]:
        """The phase, timed; its faults are the candidate's, by name."""
        limits = {"cpu_seconds": budget.cpu_seconds, "wall_seconds": budget.wall_seconds}
        with self.sandbox.start(function, {"source": self.source, **(inputs or {})}, **limits) as phase:
            try:
                yield phase
            except PhaseError as error:
                raise self._fault(name, error.code) from None
            except StateError as error:
                raise PhaseFault(name, _reason(name, "bad_frame"), str(error)) from None
            finally:
                end = phase.stop()
                self.cpu_s[name] = round(end.cpu_seconds, 3)
                self.wall_s[name] = round(max(0.0, end.wall_seconds - end.waited_seconds), 3)

    def _answer(self, phase: Phase, name: report.Phase, most: int) -> dict[str, Any]:
        items = phase.receive(most)
        if "failed" in items:
            code, error, line = items["failed"], items.get("error"), items.get("line")
            raise self._fault(name, code if isinstance(code, str) else "", error, line)
        return items

    def _fault(self, name: report.Phase, code: str, error: object = None, line: object = None) -> PhaseFault:
        raised = error if isinstance(error, str) and error in _EXCEPTIONS else "an exception"
        if code not in _TEXTS:
            code = "bad_frame"
        text = _TEXTS[code].format(error=raised)
        lines = self.source.count(b"\n") + 1
        if name in ("train", "pack") and code.endswith(("_raised", "_failed")) and type(line) is int:
            text += f" (line {line} of the file)" if 1 <= line <= lines else ""
        return PhaseFault(name, _reason(name, code), text)


def _reason(name: report.Phase, code: str) -> str:
    """The rules' reason."""
    stage = "train" if name == "train" else "eval"
    if code in ("cpu_limit", "wall_limit"):
        return f"{stage}_timeout"
    return "missing_train_checkpoint" if (name, code) == ("train", "ended") else f"{stage}_failed"


def _number(items: Mapping[str, Any], name: str) -> int:
    value = items.get(name)
    if type(value) is not int or value < 0:
        raise StateError(f"{name} is no plain int of at least 0")
    return value
