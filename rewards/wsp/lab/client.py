"""A client of a lab: what a scaffold of one's own plays episodes with. Needs the extra ``servers``, and no torch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.reply import Reply

#: Seconds to get a connection.
_CONNECT = 5.0
#: What may pass: 503 is a busy lab.
_PASSING = frozenset({500, 502, 503, 504})


class LabClient:
    """Talks to a lab. What breaks on the way is tried again under the same id, so that it is done once.

    Args:
        url: as the lab prints it.
        token: of the lab.
        timeout: seconds for one answer.
        tries: of each request.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 600.0, tries: int = 5) -> None:
        import httpx
        import tenacity

        self._url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            timeout=httpx.Timeout(timeout, connect=_CONNECT),
            trust_env=False,  # proxies have no part in loopback
        )
        self._broken = httpx.TransportError
        self._retry = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((httpx.TransportError, _Again)),
            stop=tenacity.stop_after_attempt(tries),
            wait=tenacity.wait_exponential(multiplier=0.1, max=5.0),
            reraise=True,
        )

    def open(self, instance: str) -> RemoteEpisode:
        """Begin an episode.

        Raises:
            BackendError: the lab refuses, fails, or can't be reached.
        """
        return RemoteEpisode(self, self.ask("POST", "/episodes", {"id": uuid.uuid4().hex, "instance": instance}))

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object of an answer.

        Raises:
            BackendError: as ``open``.
        """
        content = None if body is None else json.dumps(body).encode()
        try:
            found: dict[str, Any] = self._retry(self._once, method, path, content)
            return found
        except _Again as error:
            raise BackendError(str(error)) from error
        except self._broken as error:
            raise BackendError(f"can't reach the lab at {self._url}: {error or type(error).__name__}") from error

    def close(self) -> None:
        """Let go of connections. Episodes that are open stay so until the lab's lease ends."""
        self._http.close()

    def _once(self, method: str, path: str, content: bytes | None) -> dict[str, Any]:
        answer = self._http.request(method, path, content=content)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if answer.status_code == 200 and isinstance(found, dict):
            return found
        error = found.get("error") if isinstance(found, dict) else None
        told = f"{error.get('code')}: {error.get('message')}" if isinstance(error, dict) else "no lab's answer"
        line = one_line(f"the lab at {self._url} answers {answer.status_code}: {told}")
        raise _Again(line) if answer.status_code in _PASSING else BackendError(line)


class _Again(Exception):
    """A failure that may pass."""


class RemoteEpisode:
    """An episode in a lab: ``messages`` is its prompt, ``tools`` the schemas, as a chat request takes both."""

    def __init__(self, client: LabClient, opened: Mapping[str, Any]) -> None:
        self.id: str = opened["episode"]
        self.messages: list[dict[str, str]] = opened["messages"]
        self.tools: list[dict[str, Any]] = opened["tools"]
        self._client = client

    def message(self, message: str | Mapping[str, Any], *, id: str | None = None) -> Reply:
        """Send one assistant message, which is one turn.

        Args:
            message: text, or OpenAI's form with ``tool_calls`` and, where tokens have a price, ``usage``.
            id: of this message, for a client that may be started again; else one is made.

        Raises:
            BackendError: the lab refuses, fails, or can't be reached.
        """
        written = {"role": "assistant", "content": message} if isinstance(message, str) else dict(message)
        body = {"id": id or uuid.uuid4().hex, "message": written}
        answer = self._client.ask("POST", f"/episodes/{self.id}/messages", body)
        return Reply(tuple(answer["messages"]), answer["done"])

    def status(self) -> dict[str, Any]:
        """Budgets, and whether and how it has ended."""
        return self._client.ask("GET", f"/episodes/{self.id}")

    def close(self) -> None:
        """End it: it counts as it is."""
        self._client.ask("DELETE", f"/episodes/{self.id}")
