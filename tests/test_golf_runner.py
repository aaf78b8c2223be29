"""The phases that run a solution, in the sandbox: against a plain training loop, and with solutions that misbehave."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from golf_evaluation import CORPUS, DEFAULT, PROFILE, TINY, TRAIN, VALIDATION, candidate, evaluate, train
from torch import Tensor

from weightgym.rewards.golf import runner
from weightgym.rewards.golf.check import check
from weightgym.rewards.golf.config import DEFAULTS
from weightgym.rewards.golf.data.corpus import language_corpus
from weightgym.rewards.golf.evaluate import RUNNER, policy
from weightgym.rewards.golf.phases import Candidate, PhaseFault
from weightgym.rewards.golf.profile import Budget, Hardware, Schedule, profile
from weightgym.rewards.sandbox import Sandbox


class Plain:
    """The rules' default model and training once more, with nothing of the runner's."""

    def __init__(self, config: dict[str, Any], rows: int, steps: int) -> None:
        self.config, self.rows, self.steps = config, rows, steps
        dim, wide = config["model_dim"], config["mlp_mult"] * config["model_dim"]
        shapes = [(3 * dim, dim), (dim, dim), (wide, dim), (dim, wide)] * config["num_layers"]
        torch.manual_seed(1337)
        torch.empty(256, dim).normal_()  # what nn.Embedding and nn.Linear draw before the rules' own values
        for out, into in [*shapes, (256, dim)]:
            torch.empty(out, into).uniform_()
        torch.empty(256, dim).normal_()
        self.matrices = [torch.empty(shape).normal_(0, 0.02) for shape in shapes]
        self.embedding = torch.empty(256, dim).normal_(0, 0.02)
        self.positions = torch.zeros(config["seq_len"], dim)
        self.gains = [torch.ones(dim) for _ in range(2 * config["num_layers"] + 1)]
        self.all = [self.embedding, self.positions, *self.matrices, *self.gains]

    def logits(self, ids: Tensor) -> Tensor:
        heads = self.config["num_heads"]
        x = self.embedding[ids] + self.positions[: ids.shape[1]]
        gains, matrices = iter(self.gains), iter(self.matrices)
        mask = torch.full((ids.shape[1], ids.shape[1]), -math.inf).triu(1)
        for _ in range(self.config["num_layers"]):
            h = self.norm(x, next(gains)) @ next(matrices).T
            q, k, v = (part.view(*ids.shape, heads, -1).transpose(1, 2) for part in h.chunk(3, -1))
            weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask).softmax(-1)
            x = x + (weights @ v).transpose(1, 2).flatten(2) @ next(matrices).T
            h = F.gelu(self.norm(x, next(gains)) @ next(matrices).T, approximate="tanh")
            x = x + h @ next(matrices).T
        return self.norm(x, next(gains)) @ self.embedding.T

    @staticmethod
    def norm(x: Tensor, gain: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain

    def fit(self, data: bytes, ranks: int = 1) -> None:
        tokens = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        length = self.config["seq_len"]
        for weight in self.all:
            weight.requires_grad_()
        optimizer = torch.optim.AdamW(
            self.all, lr=1.0, betas=(0.9, 0.95), weight_decay=self.config["weight_decay"], foreach=False
        )
        draws = [torch.Generator().manual_seed(10_000 + rank) for rank in range(ranks)]
        for step in range(self.steps):
            factor = min(1.0, (step + 1) / self.config["warmup_steps"])
            down = step - (self.steps - self.config["warmdown_steps"])
            if down >= 0:
                part = (down + 1) / self.config["warmdown_steps"]
                factor = 0.1 + 0.9 * (1 + math.cos(math.pi * part)) / 2
            optimizer.param_groups[0]["lr"] = self.config["learning_rate"] * factor
            rows = (self.rows // ranks,)
            drawn = [torch.randint(0, len(tokens) - length - 1, rows, generator=own) for own in draws]
            starts = torch.cat(drawn).tolist()
            block = torch.stack([tokens[start : start + length + 1] for start in starts])
            optimizer.zero_grad()
            torch.autograd.backward(F.cross_entropy(self.logits(block[:, :-1]).flatten(0, 1), block[:, 1:].flatten()))
            torch.nn.utils.clip_grad_norm_(self.all, self.config["grad_clip"])
            optimizer.step()

    @torch.no_grad()
    def quantise(self) -> None:
        for weight in self.all:
            clip = float(torch.quantile(weight.abs().flatten(), self.config["q_clip_percentile"])) or 1.0
            step = clip / 127
            weight.copy_((weight.clamp(-clip, clip) / step).round() * step)

    @torch.no_grad()
    def bits(self, data: bytes) -> float:
        tokens = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        length = self.config["seq_len"]
        count = (len(tokens) - 1) // length
        rows, after = tokens[: count * length].view(count, length), tokens[1 : count * length + 1].view(count, length)
        nats = 0.0
        for first in range(0, count, 64):
            logits = self.logits(rows[first : first + 64]).flatten(0, 1)
            nats += float(F.cross_entropy(logits, after[first : first + 64].flatten(), reduction="sum"))
        return nats / float(count * length) / math.log(2)


def test_the_default_scores_as_a_plain_loop_does() -> None:
    torch.set_num_threads(1)
    config = dict(check(TINY).config)
    plain = Plain(config, 1024 // 128, 50)
    plain.fit(TRAIN)
    plain.quantise()
    result = evaluate(TINY, PROFILE)
    assert (result.status, result.message) == ("ok", "")
    assert result.val_bpb == pytest.approx(plain.bits(VALIDATION), abs=1e-3)
    assert result.val_bpb is not None
    assert result.val_bpb < 4.5
    parameters = sum(weight.numel() for weight in plain.all)
    assert result.param_count == parameters
    assert result.audited_bytes is not None
    assert result.claimed_bytes is not None
    assert 0.8 * parameters < result.audited_bytes <= 1.02 * result.claimed_bytes < 1.02 * parameters
    assert result.artifact_bytes == max(result.audited_bytes, result.claimed_bytes) + len(TINY)


@pytest.mark.nightly
def test_the_default_of_the_full_profile_scores_as_a_plain_loop_does() -> None:
    """About ten minutes of one core on each side."""
    torch.set_num_threads(1)
    full = profile("golf-full-v1")
    corpus = language_corpus(full, "lang/0")
    plain = Plain(dict(DEFAULTS), 64, 80)
    plain.fit(corpus.train.tobytes())
    plain.quantise()
    cpu = dataclasses.replace(full, name="test-full", clock="cpu", gpus=0)
    result = evaluate(DEFAULT, cpu, corpus)
    assert result.val_bpb == pytest.approx(plain.bits(corpus.val.tobytes()), abs=1e-3)


def test_two_ranks_train_as_one_on_the_rows_of_both() -> None:
    """What runs on several GPUs, here with gloo on the CPU."""
    torch.set_num_threads(1)
    config = dict(check(TINY).config) | {"warmup_steps": 2, "warmdown_steps": 2}
    plain = Plain(config, 8, 6)
    plain.fit(TRAIN, ranks=2)
    two = Hardware("cpu", ranks=2)
    with Sandbox(policy(PROFILE, two), RUNNER) as sandbox:
        state = Candidate(sandbox, TINY, config, two).train(CORPUS.train_input, Schedule(6, 1024, 2, 2), Budget(60))
    torch.testing.assert_close(torch.tensor(state["token_emb.weight"].array), plain.embedding, rtol=0, atol=1e-5)
    torch.testing.assert_close(torch.tensor(state["pos_emb"].array[0]), plain.positions, rtol=0, atol=1e-5)


def test_dropout_and_no_clipping() -> None:
    given = b'"dropout": 0.2, "grad_clip": 0.0, "q_clip_percentile": 1.0, "warmup_steps": 0, "warmdown_steps": 0'
    assert evaluate(TINY.replace(b"}", b", " + given + b"}")).status == "ok"


HEAD = b"""
import torch
from torch import nn
def get_config(): return {"seq_len": 128}
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(256, 16), nn.Linear(16, 256)
        self.register_buffer("count", torch.zeros(256, dtype=torch.int64))
        self.register_buffer("mask", torch.full((4, 4), float("-inf")))
    def forward(self, input_ids, target_ids=None):
        if self.training:
            self.count += torch.bincount(input_ids.flatten(), minlength=256)
        return self.head(self.emb(input_ids)) + torch.log1p(self.count.float())
def build_model(vocab_size, config): return LM()
"""


def test_counts_collected_in_training_are_served() -> None:
    result = evaluate(HEAD)
    assert result.status == "ok", result.message
    assert result.val_bpb is not None
    assert result.val_bpb < 4.6


def test_none_means_the_default() -> None:
    more = b"def build_model(vocab_size, config): return None\ndef quantized_roundtrip(m, c): return None\n"
    assert evaluate(TINY + more).val_bpb == evaluate(TINY).val_bpb


def test_names_of_parameters_may_be_any_text() -> None:
    state = train(HEAD.replace(b"self.emb", "self.größe".encode()))
    assert "größe.weight" in state


@pytest.mark.parametrize(
    ("source", "reason", "text"),
    [
        (b"x = 1\n1 / 0", "train_failed", "the file's own statements raised ZeroDivisionError (line 2 of the file)"),
        (b"def f(:", "train_failed", "the file's own statements raised SyntaxError"),
        (b"\x00", "train_failed", "raised SyntaxError"),
        (b"raise SystemExit(3)", "train_failed", "raised SystemExit (line 1 of the file)"),
        (b"class E(BaseException): pass\nraise E('\\n\\x1b[2J' * 999)", "train_failed", "raised an exception (line 2"),
        (b"def build_model(vocab_size, config): return 5", "train_failed", "neither a torch.nn.Module nor None"),
        (b"def build_model(vocab_size, config): raise KeyboardInterrupt", "train_failed", "raised KeyboardInterrupt"),
        (
            HEAD.replace(b"self.head(self.emb", b"(self.emb"),
            "train_failed",
            "raised RuntimeError while it was trained (line 14 of the file)",
        ),
        (HEAD + b"LM.state_dict = lambda self: 5", "train_failed", "state_dict()"),
        (HEAD + b"LM.state_dict = lambda self: {'a': 'text'}", "train_failed", "state_dict()"),
        (HEAD + b"LM.state_dict = lambda self: {'\\ud800': torch.zeros(1)}", "train_failed", "state_dict()"),
        (HEAD + b"LM.state_dict = lambda self: {'a' * 70_000: torch.zeros(1)}", "train_failed", "state_dict()"),
        (
            HEAD + b"LM.state_dict = lambda self: {'a': torch.zeros(2, dtype=torch.complex64)}",
            "train_failed",
            "state_d",
        ),
        (HEAD + b"LM.state_dict = lambda self: {'a': torch.eye(2).to_sparse()}", "train_failed", "state_dict()"),
        (HEAD + b"LM.state_dict = lambda self: {str(n): torch.zeros(1) for n in range(5000)}", "train_failed", "4096"),
        (HEAD + b"LM.state_dict = lambda self: {'a': torch.zeros(1 << 27)}", "train_failed", "more bytes than it may"),
        (b"import os\nos._exit(0)", "missing_train_checkpoint", "ended without a result"),
        (b"import os\nos._exit(7)", "missing_train_checkpoint", "ended without a result"),
        (b"import ctypes\nctypes.string_at(1)", "train_failed", "ended by a signal"),
        (b"x = bytearray(1 << 40)", "train_failed", "ran out of memory"),
        (b"import time\ntime.sleep(100)", "train_timeout", "took longer than it may"),
        (b"while True: pass", "train_timeout", "more CPU-seconds than it may"),
    ],
)
def test_a_training_that_fails_says_so_in_fixed_words(source: bytes, reason: str, text: str) -> None:
    one = candidate(source)
    with pytest.raises(PhaseFault) as fault:
        one.train(CORPUS.train_input, Schedule(2, 1024, 0, 0), Budget(2.5, 6.0))
    assert (fault.value.phase, fault.value.reason) == ("train", reason)
    assert text in fault.value.message
    assert len(fault.value.message) < 120
    assert fault.value.message.isprintable()


PACK = HEAD + b"\ndef quantized_roundtrip(model, clip): "


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"return 5", "must return (state_dict, artifact_bytes)"),
        (b"return model.state_dict(), -5", "plain int of at least 0"),
        (b"return model.state_dict(), 5.0", "plain int of at least 0"),
        (b"return model.state_dict(), True", "plain int of at least 0"),
        (b"return model.state_dict(), type('N', (int,), {})(5)", "plain int of at least 0"),
        (b"return model.state_dict(), 1 << 50", "plain int of at least 0"),
        (b"return [1], 5", "must return (state_dict, artifact_bytes)"),
        (b"return {'a': 5}, 5", "must return (state_dict, artifact_bytes)"),
        (b"raise LookupError", "quantized_roundtrip raised LookupError (line"),
        (b"raise MemoryError", "ran out of memory"),
    ],
)
def test_a_bad_artifact_is_refused(line: bytes, text: str) -> None:
    one = candidate(PACK + line)
    with pytest.raises(PhaseFault, match="eval_failed") as fault:
        one.pack(train(PACK + line), Budget(10))
    assert (fault.value.phase, fault.value.reason) == ("pack", "eval_failed")
    assert text in fault.value.message


def test_a_server_says_no_more_than_a_word() -> None:
    raising = b"if not self.training: raise ValueError(str(input_ids))\n        else:"
    result = evaluate(HEAD.replace(b"if self.training:", raising))
    assert (result.reason, result.phase) == ("eval_failed", "serve")
    assert result.message == "the model raised an exception while it was scored"
    with pytest.raises(PhaseFault, match="does not load"), candidate(HEAD).serve("serve", {}, Budget(10), 0):
        pass


def test_the_runner_needs_nothing_of_ours() -> None:
    path = Path(runner.__file__)
    code = f"import runpy, sys; runpy.run_path({str(path)!r}); assert 'weightgym' not in sys.modules"
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
