"""The phases of Golf in this process: no sandbox, the runner in a thread at the other end of two pipes."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from weightgym.rewards.golf import runner
from weightgym.rewards.golf.wire import Frame, Tensor, read_frame, write_frame

Array = np.ndarray[Any, Any]
CONFIG: dict[str, Any] = {
    "model_dim": 128, "num_layers": 2, "num_heads": 4, "mlp_mult": 2, "seq_len": 128, "dropout": 0.0,
    "train_steps": 50, "train_batch_tokens": 32768, "learning_rate": 0.002, "weight_decay": 0.08, "warmup_steps": 5,
    "warmdown_steps": 20, "grad_clip": 1.0, "q_clip_percentile": 0.9995,
}  # fmt: skip
SCHEDULE = {"steps": 50, "batch_tokens": 1024, "warmup": 5, "warmdown": 20}


def as_bytes(data: bytes) -> Tensor:
    return Tensor("uint8", np.frombuffer(data, np.uint8))


def ask(frame: Frame) -> Frame:
    """The answer to a one-question phase."""
    question, answer = io.BytesIO(), io.BytesIO()
    write_frame(question, frame)
    question.seek(0)
    runner.run(question, answer)
    answer.seek(0)
    return read_frame(answer)


def train(source: bytes, data: bytes, config: Mapping[str, Any] = CONFIG, **schedule: int) -> Frame:
    fields = {"config": dict(config), "schedule": SCHEDULE | schedule, "device": "cpu", "threads": 1}
    return ask(Frame("train", fields, {"source": as_bytes(source), "data": as_bytes(data)}))


def with_state(kind: str, source: bytes, state: Mapping[str, Tensor], config: Mapping[str, Any], **more: Any) -> Frame:
    tensors = {"source": as_bytes(source)} | {f"state:{name}": tensor for name, tensor in state.items()}
    return Frame(kind, {"config": dict(config), "device": "cpu", "threads": 1, **more}, tensors)


def pack(source: bytes, state: Mapping[str, Tensor], config: Mapping[str, Any] = CONFIG) -> Frame:
    return ask(with_state("pack", source, state, config))


@contextmanager
def served(
    source: bytes, state: Mapping[str, Tensor], config: Mapping[str, Any] = CONFIG, seed: int = 0
) -> Iterator[Callable[[Array], Any]]:
    """A function from rows to logits, or to the frame with which the server refused."""
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    with (
        os.fdopen(their_in, "rb") as reader,
        os.fdopen(their_out, "wb") as writer,
        os.fdopen(our_out, "wb") as questions,
        os.fdopen(our_in, "rb") as answers,
    ):
        thread = threading.Thread(target=runner.run, args=(reader, writer))
        thread.start()
        write_frame(questions, with_state("serve", source, state, config, seed=seed))
        ready = read_frame(answers)

        def logits(rows: Array) -> Any:
            if ready.kind != "ready":
                return ready
            write_frame(questions, Frame("rows", {}, {"rows": Tensor.of(rows)}))
            answer = read_frame(answers)
            return answer.tensors["logits"].array if answer.kind == "logits" else answer

        try:
            yield logits
        finally:
            if thread.is_alive():
                write_frame(questions, Frame("end"))
            thread.join(60)
