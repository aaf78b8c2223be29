"""The phases that run a solution, against a plain training loop, and with solutions that misbehave."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golf_phases import CONFIG, SCHEDULE, pack, served, train
from torch import Tensor

from weightgym.rewards.golf import runner
from weightgym.rewards.golf.artifact import account, canonical
from weightgym.rewards.golf.audit import audit
from weightgym.rewards.golf.views import Plan

WORDS = b"the of and to in is that it was for on are as with his they at be this from have or by one had not".split()
DEFAULT = b"def get_config() -> dict:\n    return {}\n"


def text(seed: int, size: int) -> bytes:
    draws = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    words = draws.choice(len(WORDS), size // 3, p=weights / weights.sum())
    return b" ".join(WORDS[word] for word in words)[:size]


TRAIN, VALIDATION = text(1, 60_000), text(2, 8_000)


def score(source: bytes, config: dict[str, Any] = CONFIG, **schedule: int) -> tuple[Any, Any]:
    """Verdict and account of a solution, by all phases."""
    trained = train(source, TRAIN, config, **schedule)
    assert trained.kind == "state", trained.fields
    packed = pack(source, trained.tensors, config)
    assert packed.kind == "artifact", packed.fields
    books = account(packed.fields["claimed"], packed.tensors, source)
    state = canonical(packed.tensors)
    plan = Plan(np.frombuffer(VALIDATION, np.uint8), config["seq_len"], secret=b"s")
    with served(source, state, config, 1) as first, served(source, state, config, 2) as second:
        return audit(plan, first, second), books


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

    def fit(self, data: bytes) -> None:
        tokens = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        length = self.config["seq_len"]
        for weight in self.all:
            weight.requires_grad_()
        optimizer = torch.optim.AdamW(
            self.all, lr=1.0, betas=(0.9, 0.95), weight_decay=self.config["weight_decay"], foreach=False
        )
        draws = torch.Generator().manual_seed(10_000)
        for step in range(self.steps):
            factor = min(1.0, (step + 1) / self.config["warmup_steps"])
            down = step - (self.steps - self.config["warmdown_steps"])
            if down >= 0:
                part = (down + 1) / self.config["warmdown_steps"]
                factor = 0.1 + 0.9 * (1 + math.cos(math.pi * part)) / 2
            optimizer.param_groups[0]["lr"] = self.config["learning_rate"] * factor
            starts = torch.randint(0, len(tokens) - length - 1, (self.rows,), generator=draws).tolist()
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
        logits = self.logits(tokens[: count * length].view(count, length))
        return float(F.cross_entropy(logits.flatten(0, 1), tokens[1 : count * length + 1])) / math.log(2)


def test_the_default_scores_as_a_plain_loop_does() -> None:
    torch.set_num_threads(1)
    plain = Plain(CONFIG, SCHEDULE["batch_tokens"] // CONFIG["seq_len"], SCHEDULE["steps"])
    plain.fit(TRAIN)
    plain.quantise()
    verdict, books = score(DEFAULT)
    assert verdict.code == ""
    assert verdict.val_bpb == pytest.approx(plain.bits(VALIDATION), abs=1e-3)
    assert verdict.val_bpb < 4.5
    parameters = sum(weight.numel() for weight in plain.all)
    assert 0.8 * parameters < books.audited <= 1.02 * books.claimed < 1.02 * parameters


def test_two_runs_have_the_same_bits() -> None:
    assert score(DEFAULT, steps=8, warmdown=2) == score(DEFAULT, steps=8, warmdown=2)


def test_dropout_and_no_clipping() -> None:
    config = CONFIG | {"dropout": 0.2, "grad_clip": 0.0, "q_clip_percentile": 1.0}
    verdict, _ = score(DEFAULT, config, steps=4, warmup=0, warmdown=0)
    assert verdict.code == ""


HEAD = b"""
import torch
from torch import nn
def get_config(): return {}
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
    verdict, _ = score(HEAD, steps=5, warmdown=1)
    assert verdict.code == ""
    assert verdict.val_bpb < 4.5


def test_none_means_the_default() -> None:
    source = DEFAULT + b"def build_model(vocab_size, config): return None\ndef quantized_roundtrip(m, c): return None\n"
    assert score(source, steps=3, warmdown=1)[0] == score(DEFAULT, steps=3, warmdown=1)[0]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (b"1 / 0", "source_raised"),
        (b"def f(:", "source_raised"),
        (b"\x00", "source_raised"),
        (b"raise SystemExit(3)", "source_raised"),
        (b"class E(BaseException): pass\nraise E('\\n\\x1b[2J' * 999)", "source_raised"),
        (b"def build_model(vocab_size, config): return 5", "build_failed"),
        (b"def build_model(vocab_size, config): raise KeyboardInterrupt", "build_failed"),
        (HEAD.replace(b"self.head(self.emb", b"(self.emb"), "train_raised"),
        (HEAD + b"LM.state_dict = lambda self: 5", "bad_state"),
        (HEAD + b"LM.state_dict = lambda self: {'a': 'text'}", "bad_state"),
        (HEAD + b"LM.state_dict = lambda self: {'a': torch.zeros(2, dtype=torch.complex64)}", "bad_state"),
        (HEAD + b"LM.state_dict = lambda self: {'a': torch.eye(2).to_sparse()}", "bad_state"),
    ],
)
def test_a_training_that_fails_says_so_in_a_fixed_word(source: bytes, code: str) -> None:
    answer = train(source, TRAIN, steps=2, warmup=0, warmdown=0)
    assert (answer.kind, answer.fields["code"]) == ("failed", code)
    assert len(answer.fields["detail"]) <= 300
    assert answer.fields["detail"].isprintable()


PACK = HEAD + b"\ndef quantized_roundtrip(model, clip): "


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"return 5", "bad_artifact"),
        (b"return model.state_dict(), -5", "bad_claim"),
        (b"return model.state_dict(), 5.0", "bad_claim"),
        (b"return model.state_dict(), True", "bad_claim"),
        (b"return model.state_dict(), type('N', (int,), {})(5)", "bad_claim"),
        (b"return [1], 5", "bad_artifact"),
        (b"return {'a': 5}, 5", "bad_artifact"),
        (b"raise MemoryError", "pack_raised"),
    ],
)
def test_a_bad_artifact_is_refused(line: bytes, code: str) -> None:
    trained = train(PACK + line, TRAIN, steps=1, warmup=0, warmdown=0)
    answer = pack(PACK + line, trained.tensors)
    assert (answer.kind, answer.fields["code"]) == ("failed", code)


def test_a_server_says_no_more_than_a_word() -> None:
    source = HEAD.replace(
        b"if self.training:", b"if not self.training: raise ValueError(str(input_ids))\n        else:"
    )
    trained = train(source, TRAIN, steps=1, warmup=0, warmdown=0)
    with served(source, trained.tensors) as logits:
        answer = logits(np.zeros((2, 16), np.uint8))
    assert (answer.kind, dict(answer.fields)) == ("failed", {"code": "serve_raised"})
    with served(HEAD, {}) as logits:
        answer = logits(np.zeros((2, 16), np.uint8))
    assert (answer.kind, dict(answer.fields)) == ("failed", {"code": "load_failed"})


def test_the_runner_needs_nothing_of_ours() -> None:
    path = Path(runner.__file__)
    code = f"import runpy, sys; runpy.run_path({str(path)!r}); assert 'weightgym' not in sys.modules"
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
