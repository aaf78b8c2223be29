"""The evaluator whole, in the real sandbox: what it reports, what it repeats, and what it never lets through."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from golf_evaluation import CORPUS, DEFAULT, PROFILE, SHORT, TINY, evaluate, evaluator

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.data.corpus import LEAST_BYTES, Corpus
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.evaluators import shared
from weightgym.rewards.golf.reading import VERSION
from weightgym.rewards.golf.report import CHARGED, Result
from weightgym.rewards.golf.schedule import evaluate_all
from weightgym.rewards.sandbox import Sandbox

VARYING = {"runtime_s", "phase_s", "cpu_s", "apart"}
MODEL = b"""
import torch
from torch import nn
def get_config(): return {"seq_len": 128}
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(256, 16), nn.Linear(16, 256)
    def forward(self, input_ids, target_ids=None):
        return HOW
def build_model(vocab_size, config): return LM()
"""
HONEST = b"self.head(self.emb(input_ids))"


def model(how: bytes = HONEST) -> bytes:
    return MODEL.replace(b"HOW", how)


def same(one: Result, other: Result) -> bool:
    return one.model_dump(exclude=VARYING) == other.model_dump(exclude=VARYING)


def test_a_result_tells_all_and_repeats() -> None:
    result = evaluate(TINY)
    assert (result.status, result.phase, result.reason, result.message) == ("ok", "audit", None, "")
    assert result.val_bpb is not None
    assert 3 < result.val_bpb < 8
    assert set(result.cpu_s) == set(result.phase_s) == {"train", "pack", "serve", "audit"}
    assert sum(result.cpu_s.values()) < 10
    assert result.runtime_s == pytest.approx(sum(result.cpu_s[phase] for phase in CHARGED), abs=2e-3)
    assert (result.profile, result.evaluator, result.corpus) == ("test-short", VERSION, {"kind": "words"})
    assert result.fingerprint["device"] == "cpu"
    assert result.fingerprint["torch"]
    assert result.method_profile == ("architecture_shape",)
    assert result.verdict == "legal"
    assert result.apart is not None
    assert result.apart < 1e-4
    assert Result.model_validate_json(result.model_dump_json()) == result
    assert same(result, evaluate(TINY))
    with Evaluator(SHORT, warm=False) as cold:
        assert same(result, cold.evaluate(TINY, CORPUS))
    with pytest.warns(UserWarning, match="without a sandbox"):
        unsafe = Evaluator(SHORT, unsafe=True)
    with unsafe:
        found = unsafe.evaluate(TINY, CORPUS)
    assert found.fingerprint == {**result.fingerprint, "sandbox": False}
    assert same(result, found.model_copy(update={"fingerprint": result.fingerprint}))


@pytest.mark.parametrize(
    ("source", "phase", "reason"),
    [
        (b"", "check", "check_failed"),
        (b"\xff\xfe", "check", "check_failed"),
        (b"def get_config(): return dict()", "check", "config_not_literal"),
        (b"def get_config(): return {'model_dim': 3}", "check", "check_failed"),
        (b"import os\n" + DEFAULT + b"os.system('true')", "gate", "illegal"),
        (model(b"1 / 0"), "train", "train_failed"),
        (model(b"torch.stack([self.head(self.emb(input_ids))] * 2)"), "train", "train_failed"),
        (model(HONEST + b" + (0.0 if self.training else float('nan'))"), "audit", "audit_bad_logits"),
        (model(b"self.head(self.emb(input_ids)) + (0.0 if self.training else 1e6)"), "audit", "audit_bad_logits"),
        (model(b"self.head(self.emb(input_ids))[..., :256 if self.training else 128]"), "audit", "audit_bad_logits"),
        (model(b"self.head(self.emb(input_ids))[: None if self.training else 1]"), "audit", "audit_bad_logits"),
        (model(b"self.head(self.emb(input_ids)) if self.training else None"), "serve", "eval_failed"),
        (model(b"self.head(self.emb(input_ids)) * (1 if self.training else torch.rand(1))"), "audit", "audit_random"),
        (
            model(b"self.head(self.emb(input_ids)) + 9.0 * torch.nn.functional.one_hot(input_ids.roll(-1, 1), 256)"),
            "audit",
            "audit_future_bytes",
        ),
        (model(b"self.head(self.emb(input_ids) + self.emb(input_ids[-1:]))"), "audit", "audit_batch_statistics"),
    ],
)  # fmt: skip
def test_a_candidate_at_fault_is_buggy(source: bytes, phase: str, reason: str) -> None:
    result = evaluate(source)
    assert (result.status, result.val_bpb) == ("buggy", None)
    assert (result.phase, result.reason) == (phase, reason), result.message
    assert result.message
    assert result.source_bytes == len(source)


def test_what_is_for_review_is_scored() -> None:
    result = evaluate(model() + b"def quantized_roundtrip(model, clip): return model.state_dict(), 7\n")
    assert (result.status, result.verdict) == ("ok", "review_required")
    assert [finding.code for finding in result.findings] == ["artifact_claim"]


def test_an_artifact_over_the_cap_has_no_score() -> None:
    small = dataclasses.replace(SHORT, name="test-cap", artifact_cap=100_000)
    result = evaluate(TINY, small)
    assert (result.reason, result.phase, result.val_bpb) == ("artifact_cap_exceeded", "pack", None)
    assert result.artifact_bytes is not None
    assert result.artifact_bytes > 100_000
    assert f"{result.artifact_bytes:,}" in result.message


@pytest.mark.parametrize("claimed", [0, 7, 10**9])
def test_the_larger_of_claim_and_audit_counts(claimed: int) -> None:
    pack = b"\ndef quantized_roundtrip(model, clip_percentile):\n    return model.state_dict(), %d\n" % claimed
    result = evaluate(model() + pack)
    assert result.claimed_bytes == claimed
    assert result.audited_bytes is not None
    assert result.artifact_bytes == max(claimed, result.audited_bytes) + result.source_bytes
    assert (result.status == "ok") == (claimed < 4_000_000)


def test_packing_and_view_a_share_one_budget_and_view_b_has_its_own() -> None:
    """Packing takes 1.5 of 2 CPU-seconds; then A has half a second, which a model that takes 0.9 exceeds."""
    spin = b"while time.process_time() < start + %s: pass"
    pack = b"\nimport time\ndef quantized_roundtrip(model, clip_percentile):\n    start = time.process_time()\n    "
    pack += spin % b"1.5" + b"\n    return model.state_dict(), 9\n"
    slow = b"self.head(self.emb(input_ids)) if self.training else spun(self.head(self.emb(input_ids)))"
    spun = (
        b"\ndef spun(x, start=[]):\n    now = time.process_time()\n    while time.process_time() < now + 0.15: pass\n"
    )
    spun += b"    return x\n"
    tight = dataclasses.replace(SHORT, name="test-tight", post_seconds=2.0)
    assert evaluate(model() + pack, tight).status == "ok"
    assert evaluate(model(slow) + b"import time" + spun, tight).status == "ok"
    both = evaluate(model(slow) + pack + spun, tight)
    assert (both.reason, both.phase) == ("eval_timeout", "serve"), both.message


def test_the_smallest_corpus_takes_the_longest_rows() -> None:
    least = dataclasses.replace(CORPUS, train=CORPUS.train[:LEAST_BYTES], val=CORPUS.val[:LEAST_BYTES])
    result = evaluate(TINY.replace(b'"seq_len": 128', b'"seq_len": 2048'), corpus=least)
    assert result.status == "ok", result.message


def test_order_and_company_change_nothing() -> None:
    sources = {"a": TINY, "b": model(), "c": b"", "d": model(b"1 / 0"), "e": TINY}
    alone = {id: evaluate(source) for id, source in sources.items()}
    with Evaluator(SHORT, jobs=3) as several:
        together = list(evaluate_all(several, reversed(sources.items()), CORPUS))
    assert [id for id, _ in together] == list(reversed(sources))
    for id, result in together:
        assert isinstance(result, Result)
        assert same(result, alone[id])


def test_a_source_of_candidates_is_read_as_it_is_needed() -> None:
    read = 0

    def endless() -> Iterator[tuple[int, bytes]]:
        nonlocal read
        while True:
            read += 1
            yield read, b""

    results = evaluate_all(evaluator(), endless(), CORPUS)
    assert [next(results)[0] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert read < 20
    results.close()  # type: ignore[attr-defined]


def test_our_fault_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Sandbox.start
    calls = 0

    def failing(self: Sandbox, function: str, *rest: Any, **more: Any) -> Any:
        nonlocal calls
        calls += function == "pack"
        if function == "pack" and calls == 1:
            assert self._zygote is not None
            os.killpg(self._zygote._process.pid, signal.SIGKILL)
            self._zygote._process.wait()
        return real(self, function, *rest, **more)

    with Evaluator(SHORT, jobs=1) as one:
        monkeypatch.setattr(Sandbox, "start", failing)
        first, second = list(evaluate_all(one, [(1, model()), (2, model())], CORPUS))
    assert isinstance(second[1], Result)  # the sandbox is started anew
    assert isinstance(first[1], Result)  # it had no phase at work when the sandbox was killed


def test_a_zygote_killed_amid_a_phase_is_ours() -> None:
    with Evaluator(SHORT, jobs=1) as one:
        found: list[object] = []

        def run() -> None:
            try:
                found.append(one.evaluate(b"import time\ntime.sleep(3)\n" + TINY, CORPUS))
            except SandboxError as error:
                found.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while one._sandbox._zygote is None:
            threading.Event().wait(0.05)
        threading.Event().wait(1.0)
        os.killpg(one._sandbox._zygote._process.pid, signal.SIGKILL)
        thread.join(60)
    assert isinstance(found[0], SandboxError)


def test_text_of_one_secret_is_not_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    from weightgym.rewards.golf.data.corpus import language_corpus

    monkeypatch.setenv("WEIGHTGYM_SECRET", "one")
    one: Corpus = language_corpus(PROFILE, "lang/0")
    monkeypatch.setenv("WEIGHTGYM_SECRET", "two")
    two: Corpus = language_corpus(PROFILE, "lang/0")
    assert one.origin["secret_sha256"] != two.origin["secret_sha256"]
    assert (one.train != two.train).any()
    assert (one.other[: one.val.size] != one.val[: one.other.size]).any()


def test_the_processes_evaluator_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared("golf-smoke-v1") is shared("golf-smoke-v1")
    monkeypatch.setenv("WEIGHTGYM_UNSAFE", "1")
    with pytest.warns(UserWarning, match="without a sandbox"):
        assert shared("golf-smoke-v1") is not None


def test_a_machine_out_of_descriptors_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: Any, **__: Any) -> Any:
        raise OSError(24, "Too many open files")

    with Evaluator(SHORT, jobs=1) as one:
        monkeypatch.setattr(os, "pipe2", none_left)
        found = list(evaluate_all(one, [(1, model())], CORPUS))
    assert isinstance(found[0][1], SandboxError)
    assert "Too many open files" in str(found[0][1])
