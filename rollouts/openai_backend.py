"""Any OpenAI-compatible chat endpoint: text only, for evaluation. Needs the extra ``servers``."""

from __future__ import annotations

import json
import math
import os
import re
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.openai_answer import read_answer, told

_DEFAULT_URL = "https://api.openai.com/v1"
#: Statuses that pass by themselves; 529 is Anthropic's "overloaded".
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TRIES = 7
#: A server that isn't there is told sooner.
_TRIES_TO_CONNECT = 4
_BACKOFF = wait_random_exponential(multiplier=0.5, max=60.0)
#: Bytes. No answer is longer; one that is would fill the memory.
_LONGEST_ANSWER = 64 << 20
#: Some servers take seeds of 32 bits only, with a sign.
_SEED_BITS = 31


class _Again(Exception):
    """A failure that may pass."""

    def __init__(self, text: str, *, tries: float = _TRIES, wait: float | None = None) -> None:
        super().__init__(text)
        self.tries = tries
        self.wait = wait  #: seconds that the server asks for


class OpenAIBackend:
    """A model behind an OpenAI-compatible endpoint.

    Rate limits, server errors and broken connections are tried again, later and later, within ``request_timeout``.
    Seeds are passed on (their low 31 bits); whether they decide the answer is up to the server.

    Args:
        model: as the server calls it.
        url: with the version, such as ``http://localhost:8000/v1``.
        api_key_env: the environment variable with the key. It may be unset, for servers that want none.
        request_timeout: seconds for one answer, all tries together.

    Raises:
        BackendError: the URL is none, or the key can't be sent.
    """

    tokenizer = None
    batch_size = 1
    context = None  # the server knows, and refuses what is too long

    def __init__(
        self, model: str, *, url: str, api_key_env: str, lanes: int = 64, request_timeout: float = 600
    ) -> None:
        self.name = f"openai:{model}"
        self.lanes = lanes
        self._model = model
        self._url = _endpoint(url)
        self._shown = str(self._url.copy_with(userinfo=b"", query=None))
        self._api_key_env = api_key_env
        self._key = _key(api_key_env)
        self._timeout = request_timeout
        self._limit_field = "max_tokens"  # what all servers know, but OpenAI's reasoning models
        self._takes_seed = True
        self._closed = threading.Event()
        self._client = httpx.Client(
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            limits=httpx.Limits(max_connections=lanes, max_keepalive_connections=lanes),
        )

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """One sample a request, without tokens."""
        return [self._sample(request, sampling) for request in requests]

    def _sample(self, request: Request, sampling: Sampling) -> Sample:
        started = time.monotonic()
        deadline = started + self._timeout

        def give_up(state: RetryCallState) -> bool:
            error = _failure(state)
            return state.attempt_number >= error.tries or time.monotonic() + _pause(state) >= deadline

        retrying = Retrying(
            retry=retry_if_exception_type(_Again), stop=give_up, wait=_pause, sleep=self._sleep, reraise=True
        )
        try:
            body = retrying(self._ask, request, sampling, deadline)
            return read_answer(body, request, server=self._shown, secret=self._key)
        except _Again as error:
            tries = int(retrying.statistics["attempt_number"])
            often = f"{tries} tries in {time.monotonic() - started:.1f} s"
            raise BackendError(f"{error} (given up after {often})") from error

    def _ask(self, request: Request, sampling: Sampling, deadline: float) -> bytes:
        """The body of the answer; what the server doesn't know is left out on a second try."""
        while True:
            fields = self._fields(request, sampling)
            status, headers, body = self._post(fields, deadline)
            if status == 200:
                return body
            text = told(body, secret=self._key)
            if not (status in (400, 422) and self._adapt(text, fields)):
                raise self._refusal(status, headers, text)

    def _sleep(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def _fields(self, request: Request, sampling: Sampling) -> dict[str, Any]:
        return (
            {
                "model": self._model,
                "messages": list(request.messages),
                "temperature": sampling.temperature,
                self._limit_field: sampling.max_tokens,
            }
            | ({"seed": request.seed % (1 << _SEED_BITS)} if self._takes_seed else {})
            | ({"tools": list(request.tools)} if request.tools else {})
        )

    def _adapt(self, text: str, fields: Mapping[str, Any]) -> bool:
        """Whether the server would take the request in another form. Other threads may have found that out before."""
        if "max_tokens" in fields and "max_completion_tokens" in text:
            self._limit_field = "max_completion_tokens"
            return True
        if "seed" in fields and re.search(r"\bseed\b", text):
            if self._takes_seed:
                warnings.warn(f"{self._shown} takes no seed: its answers can't be made again", stacklevel=2)
            self._takes_seed = False
            return True
        return False

    def _post(self, fields: Mapping[str, Any], deadline: float) -> tuple[int, Mapping[str, str], bytes]:
        if self._closed.is_set():
            raise BackendError(f"{self.name} is closed")
        late = (
            f"{self._shown} gave no whole answer within {self._timeout:g} s: wait longer (request_timeout) or ask less"
        )
        content = json.dumps(fields).encode()
        try:
            timeout = max(deadline - time.monotonic(), 0.001)
            with self._client.stream("POST", self._url, content=content, timeout=timeout) as answer:
                body = bytearray()
                for chunk in answer.iter_bytes():
                    body += chunk
                    if time.monotonic() > deadline:
                        raise BackendError(late)
                    if len(body) > _LONGEST_ANSWER:
                        raise BackendError(f"{self._shown} gave an answer of over {_LONGEST_ANSWER >> 20} MiB")
                return answer.status_code, answer.headers, bytes(body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            hint = "is the server running, and the URL right?"
            text = self._redacted(str(error)) or type(error).__name__
            raise _Again(f"can't reach {self._shown}: {text}: {hint}", tries=_TRIES_TO_CONNECT) from error
        except httpx.TimeoutException as error:
            raise BackendError(late) from error
        except httpx.TransportError as error:
            text = self._redacted(str(error)) or type(error).__name__
            raise _Again(f"{self._shown} broke the connection: {text}") from error
        except (httpx.HTTPError, RuntimeError) as error:  # the latter where the client was closed meanwhile
            raise BackendError(f"{self._shown}: no readable answer: {self._redacted(str(error))}") from error

    def _refusal(self, status: int, headers: Mapping[str, str], text: str) -> Exception:
        says = f"{self._shown} answers {status} for model {self._model!r}"
        if status in _PASSING and "insufficient_quota" not in text:
            tries = math.inf if status == 429 else _TRIES
            return _Again(f"{says}: {text}", tries=tries, wait=_asked_wait(headers))
        if status in (401, 403):
            has = "holds a key that may do this" if self._key else "holds the key: it is not set"
            return BackendError(f"{says}: see that the environment variable {self._api_key_env} {has}; it says: {text}")
        if status == 404:
            return BackendError(f"{says}: see that it has this model, and that the URL ends in /v1; it says: {text}")
        if 300 <= status < 400:
            return BackendError(f"{says}: it moved to {headers.get('location', 'another place')!r}: give that URL")
        if "context" in text or "too long" in text:
            return BackendError(f"{says}: shorten the prompt or max_tokens; it says: {text}")
        return BackendError(f"{says}: {text}")

    def _redacted(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """An endpoint's weights are its own."""
        raise BackendError(f"{self.name} takes no weights: train with transformers, vllm or vllm-server")

    def close(self) -> None:
        """Close the connections. What still waits ends with an error, at its timeout at the latest."""
        self._closed.set()
        self._client.close()


def open_backend(name: str, options: BackendOptions) -> OpenAIBackend:
    """For ``backends.open_backend``. The URL is that of the options, of OPENAI_BASE_URL, or OpenAI's own.

    Raises:
        BackendError: see the class; or there is no model's name, or more than one URL.
    """
    if not name:
        raise BackendError("openai: which model? Write openai:MODEL")
    if len(options.urls) > 1:
        raise BackendError(f"openai: {len(options.urls)} urls, want one")
    url = options.urls[0] if options.urls else os.environ.get("OPENAI_BASE_URL") or _DEFAULT_URL
    return OpenAIBackend(
        name, url=url, api_key_env=options.api_key_env, lanes=options.lanes, request_timeout=options.request_timeout
    )


def _endpoint(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise BackendError(f"urls: {text!r} is no URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise BackendError(f"urls: {text!r} is no URL of a server: write one like http://localhost:8000/v1")
    return url.copy_with(path=url.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions")


def _key(variable: str) -> str:
    """The key in that environment variable, or nothing. No message may show it."""
    key = os.environ.get(variable, "").strip()
    if not all("!" <= char <= "~" for char in key):
        raise BackendError(f"the key in {variable} has characters that no key has: set it again")
    return key


def _failure(state: RetryCallState) -> _Again:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, _Again)  # nothing else is tried again
    return error


def _pause(state: RetryCallState) -> float:
    """Seconds until the next try."""
    asked = _failure(state).wait
    return _BACKOFF(state) if asked is None else asked


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds, out of Retry-After: a number or a date."""
    text = headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (until - datetime.now(UTC)).total_seconds() if until.tzinfo else math.nan
    return max(seconds, 0.0) if math.isfinite(seconds) else None
