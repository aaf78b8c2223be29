"""The backend for OpenAI-compatible endpoints, against a real HTTP server that misbehaves as such servers do."""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openai_server import Reply, Seen, Server, chat, refusal, serve
from tenacity.wait import wait_none

from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError
from weightgym.rollouts import openai_backend
from weightgym.rollouts.backend import Backend, Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend
from weightgym.rollouts.openai_answer import told
from weightgym.rollouts.run import jobs, run

WPB = registry.spec("weight-program")
TASK = WPB.tasks.task("builtin/wall_rally")
KEY = "sk-never-show-this"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_backend, "_BACKOFF", wait_none())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def request(seed: int = 7, tools: tuple[dict[str, Any], ...] = ()) -> Request:
    return Request(f"r#{seed}", TASK, ({"role": "user", "content": "say ü"},), (), seed, tools)


@contextmanager
def asked(script: Callable[[int, Seen], Reply], **options: Any) -> Iterator[tuple[Server, Backend]]:
    with serve(script) as server:
        backend = open_backend("openai:m-1", BackendOptions(urls=(server.url,), **options))
        try:
            yield server, backend
        finally:
            backend.close()


def one(backend: Backend, **fields: Any) -> Sample:
    (sample,) = backend.generate([request(**fields)], Sampling(max_tokens=33, temperature=0.5))
    return sample


def test_what_is_asked_and_what_comes_back() -> None:
    with asked(lambda number, seen: chat("hé 🎈", "length")) as (server, backend):
        sample = one(backend)
        again = one(backend, seed=(1 << 59) + 5)
    assert sample == Sample("r#7", "hé 🎈", "length")
    assert again.id == f"r#{(1 << 59) + 5}"
    assert (backend.name, backend.tokenizer, backend.lanes) == ("openai:m-1", None, 64)
    first = server.seen[0]
    assert first.path == "/v1/chat/completions"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "say ü"}],
        "temperature": 0.5,
        "max_tokens": 33,
        "seed": 7,
    }
    assert server.bodies[1]["seed"] == 5


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (chat("x", "stop"), ("x", "stop")),
        (chat("x", "eos"), ("x", "stop")),
        (chat(None), ("", "stop")),
        (chat([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), ("ab", "stop")),
        (chat(None, refusal="I won't"), ("I won't", "stop")),
        (Reply(b'{"choices": [{"message": {"content": "half \\ud83d"}}]}'), ("half ?", "stop")),
    ],
)
def test_answers_of_all_kinds(said: Reply, wanted: tuple[str, str]) -> None:
    with asked(lambda number, seen: said) as (_, backend):
        sample = one(backend)
    assert (sample.content, sample.finish_reason) == wanted
    assert sample.tool_calls is None
    sample.content.encode()  # which half a pair would not


def test_tools_are_passed_and_calls_come_back() -> None:
    loose = {"id": None, "index": 0, "function": {"name": "look", "arguments": {"x": 1}}}
    replies = [chat(None, "tool_calls", tool_calls=[CALL]), chat("none"), chat("", tool_calls=[loose])]
    with asked(lambda number, seen: replies[number - 1]) as (server, backend):
        samples = [one(backend, tools=(TOOL,)) for _ in replies]
    assert server.bodies[0]["tools"] == [TOOL]
    assert samples[0].tool_calls == (CALL,)
    assert (samples[0].content, samples[0].finish_reason) == ("", "stop")
    assert samples[1].tool_calls == ()  # it has looked: there is none in the content either
    assert samples[2].tool_calls == (CALL | {"id": ""},)


@pytest.mark.parametrize("fault", [refusal(429, "slow down"), refusal(503, "loading"), Reply(b"", hang_up=True)])
def test_what_passes_is_tried_again(fault: Reply) -> None:
    with asked(lambda number, seen: chat() if number > 3 else fault) as (server, backend):
        assert one(backend).content == "hello"
    assert len(server.seen) == 4
    assert all(body == server.bodies[0] for body in server.bodies)


@pytest.mark.parametrize("form", ["number", "date"])
def test_the_server_says_how_long_to_wait(form: str) -> None:
    def script(number: int, seen: Seen) -> Reply:
        after = "1" if form == "number" else email.utils.formatdate(time.time() + 2, usegmt=True)
        return refusal(429, "slow down", retry_after=after) if number == 1 else chat()

    started = time.monotonic()
    with asked(script) as (_, backend):
        assert one(backend).content == "hello"
    assert 0.9 <= time.monotonic() - started < 5


def test_a_wait_that_is_too_long_is_not_begun() -> None:
    started = time.monotonic()
    with (
        asked(lambda number, seen: refusal(429, "quota", retry_after="3600"), request_timeout=30) as (_, backend),
        pytest.raises(BackendError, match=r"answers 429 .*quota.*given up after 1 tries"),
    ):
        one(backend)
    assert time.monotonic() - started < 5


def test_a_broken_server_is_an_error_that_names_the_rollout() -> None:
    todo = jobs([TASK], 2, 0)
    with asked(lambda number, seen: refusal(500, "boom\nboom")) as (server, backend):
        results = run(todo, backend, WPB, sampling=Sampling(), profile="wpb-v1-e4")
        with pytest.raises(BackendError, match=r"builtin/wall_rally#\d.*answers 500 .*boom boom.*after 7 tries"):
            list(results)
    assert len(server.seen) % 7 == 0


@pytest.mark.parametrize("drops", [0, 200])
def test_a_server_that_hangs_is_left(drops: int) -> None:
    """Whether it says nothing at all, or a byte now and then."""
    stop = threading.Event()

    def script(number: int, seen: Seen) -> Reply:
        if not drops:
            stop.wait(20)
        return Reply({}, drops=drops)

    started = time.monotonic()
    with (
        asked(script, request_timeout=1.0) as (_, backend),
        pytest.raises(BackendError, match=r"no whole answer within 1 s: wait longer \(request_timeout\)"),
    ):
        one(backend)
    stop.set()
    assert time.monotonic() - started < 5


def test_no_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can
        backend = open_backend("openai:m", BackendOptions(urls=(f"http://127.0.0.1:{taken.getsockname()[1]}/v1",)))
        with pytest.raises(BackendError, match=r"can't reach http://127.*refused.*is the server running"):
            one(backend)
        backend.close()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (refusal(401, f"bad key {KEY}"), r"401 .*environment variable OPENAI_API_KEY holds a key that .*\[key\]"),
        (refusal(403, "no"), "403 .*OPENAI_API_KEY"),
        (refusal(404, "no model m-1"), r"404 for model 'm-1': .*URL ends in /v1; it says: no model m-1"),
        (refusal(400, "maximum context length is 8 tokens"), r"shorten the prompt or max_tokens"),
        (refusal(400, "temperature must be 1"), "temperature must be 1"),
        (refusal(429, "pay", code="insufficient_quota"), "pay"),
        (Reply({"detail": [{"loc": ["body"]}]}, 422), r"422 .*'loc': \['body'\]"),
        (Reply("", 308, {"location": "https://x.example/v1"}), "moved to 'https://x.example/v1': give that URL"),
        (Reply(b"<html>\xff\x00</html>", 500), "<html>"),
        (Reply(b"<html>login</html>"), "no chat completion: <html>login"),
        (Reply(b""), "no chat completion: nothing"),
        (Reply(b"[" * 100_000), "no chat completion"),
        (Reply({"error": {"message": "upstream", "code": 502}}), "no chat completion: upstream"),
        (Reply({"choices": []}), "no chat completion"),
        (Reply({"choices": [{"message": None}]}), "no chat completion"),
        (Reply({"choices": [{"message": {"content": 5}}]}), "no chat completion"),
        (Reply({"choices": [{"message": {"content": "", "tool_calls": [{"id": "1"}]}}]}), "no chat completion"),
        (chat("half an ans", "content_filter"), "content filter"),
    ],
)
def test_each_failure_is_one_line_without_the_key(reply: Reply, why: str) -> None:
    with asked(lambda number, seen: reply) as (server, backend), pytest.raises(BackendError, match=why) as caught:
        one(backend)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert server.url in text
    assert len(server.seen) == (7 if reply.status == 500 else 1)


def test_a_key_at_the_edge_of_a_shortened_text_stays_hidden() -> None:
    for pad in range(270, 310):
        assert "sk" not in told(b"x" * pad + KEY.encode(), secret=KEY)


@pytest.mark.filterwarnings("ignore:.* takes no seed")
def test_fields_that_a_server_refuses() -> None:
    def script(number: int, seen: Seen) -> Reply:
        if "max_tokens" in seen.body:
            return refusal(400, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
        if "seed" in seen.body:
            return Reply({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]}, 422)
        return chat()

    with asked(script) as (server, backend):
        threads = [threading.Thread(target=one, args=(backend,), kwargs={"seed": n}) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        before = len(server.seen)
        one(backend)
    assert len(server.seen) == before + 1  # it is known now
    assert server.bodies[-1]["max_completion_tokens"] == 33
    assert sum("seed" not in body for body in server.bodies) == 9


def test_a_seed_that_is_not_taken_is_told() -> None:
    def script(number: int, seen: Seen) -> Reply:
        return refusal(422, "unknown field seed") if "seed" in seen.body else chat()

    with asked(script) as (_, backend), pytest.warns(UserWarning, match="takes no seed"):
        one(backend)


def test_where_the_url_and_the_key_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("MY_KEY", "other-key\n")
    with serve(lambda number, seen: chat()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/chat/completions")
        for options in (BackendOptions(), BackendOptions(api_key_env="MY_KEY")):
            backend = open_backend("openai:m", options)
            one(backend)
            backend.close()
    assert "authorization" not in server.seen[0].headers
    assert server.seen[1].headers["authorization"] == "Bearer other-key"
    assert {seen.path for seen in server.seen} == {"/v1/chat/completions"}


@pytest.mark.parametrize(
    ("policy", "urls", "why"),
    [
        ("openai:", (), "which model"),
        ("openai:m", ("a", "b"), "2 urls, want one"),
        ("openai:m", ("localhost:8000",), "is no URL of a server: write one like"),
        ("openai:m", ("http://a:b",), "is no URL"),
        ("openai:m", ("ftp://x/v1",), "is no URL of a server"),
    ],
)
def test_what_can_not_be_opened(policy: str, urls: tuple[str, ...], why: str) -> None:
    with pytest.raises(BackendError, match=why):
        open_backend(policy, BackendOptions(urls=urls))


def test_a_key_that_no_header_carries_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ä\nb")
    with pytest.raises(BackendError, match="the key in OPENAI_API_KEY has characters") as caught:
        open_backend("openai:m")
    assert "sk-" not in str(caught.value)


def test_a_password_in_the_url_is_not_shown() -> None:
    with serve(lambda number, seen: refusal(404, "no")) as server:
        backend = open_backend("openai:m", BackendOptions(urls=(server.url.replace("//", "//me:secret@"),)))
        with pytest.raises(BackendError) as caught:
            one(backend)
        backend.close()
    assert "secret" not in str(caught.value)


def test_weights_are_not_taken() -> None:
    with asked(lambda number, seen: chat()) as (_, backend):
        with pytest.raises(BackendError, match="takes no weights"):
            backend.sync([], 1)
        backend.close()
        with pytest.raises(BackendError, match="is closed"):
            one(backend)


def test_many_threads_share_a_backend() -> None:
    def script(number: int, seen: Seen) -> Reply:
        seed = seen.body["seed"]
        with lock:
            refused = seed % 3 == 0 and seed not in asked_before
            asked_before.add(seed)
        return refusal(429, "slow") if refused else chat(json.dumps(seed))

    lock, asked_before = threading.Lock(), set[int]()
    got: dict[int, str] = {}
    with asked(script, lanes=8) as (_, backend):
        threads = [
            threading.Thread(target=lambda n=n: got.update({n: one(backend, seed=n).content})) for n in range(40)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert got == {n: str(n) for n in range(40)}
