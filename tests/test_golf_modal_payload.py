"""The two texts between here and a container on Modal: what is written is read again, and nothing else is."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.modal_payload import MAX_PAYLOAD_BYTES, Payload, Reply, read_reply
from weightgym.rewards.golf.profile import profile
from weightgym.rewards.golf.report import FindingRow, Result
from weightgym.rewards.golf.source import MAX_BYTES

BYTES = np.arange(5000, dtype=np.int64).astype(np.uint8)
CORPUS = Corpus(BYTES, BYTES[:3000], BYTES[:2500], {"kind": "words", "n": 1})
SMOKE = profile("golf-smoke-v1")


def payload(raw: bytes = b"# solution\n") -> Payload:
    return Payload.of(raw, SMOKE, CORPUS, evaluator="golf-eval-1", unsafe=False)


def answered(asked: Payload) -> Result:
    return Result(
        status="ok",
        phase="audit",
        val_bpb=2.25,
        artifact_bytes=1000,
        phase_s={"train": 1.5},
        config={"dropout": 0.0, "num_layers": 4},
        method_profile=("baseline",),
        verdict="review_required",
        findings=(FindingRow(severity="review", code="x", line=3, text="“odd”\n"),),
        source_bytes=len(asked.raw),
        source_sha256=hashlib.sha256(asked.raw).hexdigest(),
        profile=asked.profile,
        evaluator=asked.evaluator,
        corpus=asked.origin,
        apart=0,
    )


ASKED = payload()
GOOD = Reply(nonce=ASKED.nonce, result=answered(ASKED)).encode()
WORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@given(st.binary(max_size=3000))
def test_a_payload_survives(raw: bytes) -> None:
    asked = payload(raw)
    again = Payload.decode(asked.encode())
    assert again == asked
    assert again.raw == raw
    assert asked.encode().isascii()


def test_the_largest_source_fits_and_no_larger_one() -> None:
    assert Payload.decode(payload(b"\xff" * MAX_BYTES).encode()).raw == b"\xff" * MAX_BYTES
    too_long = json.loads(payload(b"x" * MAX_BYTES).encode())
    too_long["source"] = too_long["source"][:-2] + "eHh4"
    with pytest.raises(SandboxError, match="source"):
        Payload.decode(json.dumps(too_long).encode())
    with pytest.raises(SandboxError, match=f"more than {MAX_PAYLOAD_BYTES:,} bytes"):
        Payload.decode(b" " * (MAX_PAYLOAD_BYTES + 1))


def test_a_large_origin_is_refused_before_it_is_sent() -> None:
    corpus = Corpus(BYTES, BYTES, BYTES, {"note": "x" * MAX_PAYLOAD_BYTES})
    with pytest.raises(SandboxError, match="the payload has"):
        Payload.of(b"", SMOKE, corpus, evaluator="e", unsafe=False).encode()


@pytest.mark.parametrize(("data", "origin"), [(BYTES[:2048], {}), (BYTES, {"made": object()})])
def test_what_no_solution_could_be_scored_on_is_not_sent(data: Any, origin: dict[str, Any]) -> None:
    with pytest.raises(SandboxError, match="nothing can be sent to Modal"):
        Payload.of(b"", SMOKE, Corpus(data, BYTES, BYTES, origin), evaluator="e", unsafe=False)


def test_every_payload_has_a_nonce_of_its_own() -> None:
    assert len({payload().nonce for _ in range(50)}) == 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version: Input should be 1"),
        ({"unsafe": 1}, "unsafe: Input should be a valid boolean"),
        ({"unsafe": "true"}, "unsafe: Input should be a valid boolean"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"nonce": "A" * 32}, "nonce: String should match pattern"),
        ({"source": "é"}, "only ASCII"),
        ({"source": "abc"}, "padding"),
        ({"streams": {}}, "streams lack other, train, val"),
        ({"streams": {"../x": {"size": 3000, "sha256": "0" * 64}}}, "streams.../x"),
        ({"streams": {"train": {"size": -1, "sha256": "0" * 64}}}, "streams.train.size"),
        ({"profile": ""}, "profile"),
        ({"origin": []}, "origin"),
    ],
)
def test_other_payloads_are_refused(change: dict[str, Any], message: str) -> None:
    text = json.dumps(json.loads(payload().encode()) | change).encode()
    with pytest.raises(SandboxError, match=message) as caught:
        Payload.decode(text)
    assert "\n" not in str(caught.value)


def test_a_reply_survives() -> None:
    result = read_reply(GOOD, ASKED)
    assert result == answered(ASKED)
    assert type(result.config["num_layers"]) is int
    assert max(map(len, GOOD.split(b"\n"))) <= 1000
    with pytest.raises(SandboxError, match=r"^on Modal: what \? went wrong$"):
        read_reply(Reply.of_fault(ASKED, "what\n\x00 went\twrong").encode(), ASKED)


def test_a_reply_answers_one_payload() -> None:
    with pytest.raises(SandboxError, match="it answers another question"):
        read_reply(GOOD, payload())


@st.composite
def mangled(draw: st.DrawFn, text: bytes) -> bytes:
    """The text with a slice replaced."""
    start = draw(st.integers(0, len(text)))
    stop = draw(st.integers(start, min(len(text), start + 40)))
    return (
        text[:start] + draw(st.binary(max_size=12) | st.sampled_from([b"NaN", b"-1", b"1e999", b"null"])) + text[stop:]
    )


@given(mangled(GOOD))
def test_a_mangled_reply_is_refused_or_says_what_a_result_can_say(text: bytes) -> None:
    try:
        result = read_reply(text, ASKED)
    except SandboxError:
        return
    assert Result.model_validate_json(result.model_dump_json()) == result
    assert result.val_bpb is None or 0 <= result.val_bpb < 16


@given(mangled(ASKED.encode()))
def test_a_mangled_payload_is_refused_or_a_payload(text: bytes) -> None:
    try:
        found = Payload.decode(text)
    except SandboxError:
        return
    assert Payload.decode(found.encode()) == found


@given(WORDS, st.sampled_from(["", *json.loads(GOOD), "result.findings", "result.config", "result.fingerprint"]))
def test_any_other_json_is_refused_or_a_result(value: Any, path: str) -> None:
    whole: Any = json.loads(GOOD)
    if path.startswith("result."):
        whole["result"][path.removeprefix("result.")] = value
    elif path:
        whole[path] = value
    text = json.dumps(whole if path else value).encode()
    with suppress(SandboxError):
        assert isinstance(read_reply(text, ASKED), Result)
    with suppress(SandboxError):
        assert isinstance(Payload.decode(text), Payload)
