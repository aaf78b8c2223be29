"""One vLLM server over HTTP: completions by token ids, and routes that change weights. Needs the extra ``servers``."""

from __future__ import annotations

from typing import Any

import httpx
import tenacity

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.vllm_process import ServerProcess

#: Seconds to get a connection, all tries together: within five seconds a server that is gone is an error.
_CONNECT = 3.0


class VLLMClient:
    """A server's routes. Safe to use from many threads.

    Args:
        url: of the server, without ``/v1``.
        process: the server's process, if it is ours: its log is part of errors.
        connections: how many requests may be on the way at once.
        timeout: seconds for one answer.
    """

    def __init__(self, url: str, *, process: ServerProcess | None, connections: int, timeout: float) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.process = process
        self.load = 0  #: requests on the way; the owner counts
        self._timeout = timeout
        self._http = httpx.Client(
            base_url=self.url,
            # the server closes a connection after five idle seconds: let go of it before
            limits=httpx.Limits(max_connections=connections + 4, keepalive_expiry=2.0),
            timeout=httpx.Timeout(timeout, connect=_CONNECT),
            trust_env=process is None,  # proxies have no part in loopback
        )
        self._retry = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._may_come_back),
            stop=tenacity.stop_after_delay(_CONNECT),
            wait=tenacity.wait_exponential(multiplier=0.1, max=1.0),
            reraise=True,
        )

    def complete(self, body: dict[str, Any], what: str) -> dict[str, Any]:
        """What ``/v1/completions`` answers.

        Raises:
            BackendError: see ``post``.
        """
        return self._json(what, lambda: self._http.post("/v1/completions", json=body))

    def post(self, path: str, body: dict[str, Any] | None, what: str) -> dict[str, Any]:
        """The JSON object that a route answers, {} if there is none.

        Raises:
            BackendError: there is no such route, the server refuses, fails, has ended, or takes too long. The message
                begins with ``what``.
        """
        # a route that fails breaks its connection: the next request must not take the same
        return self._json(what, lambda: self._http.post(path, json=body, headers={"connection": "close"}))

    def get(self, path: str, what: str) -> dict[str, Any]:
        """The same for GET.

        Raises:
            BackendError: see ``post``.
        """
        return self._json(what, lambda: self._http.get(path))

    def healthy(self) -> bool:
        """Whether it answers."""
        try:
            return self._http.get("/health", timeout=2.0).status_code == 200
        except httpx.TransportError:
            return False

    def has(self, path: str) -> bool:
        """Whether a GET route exists and works."""
        return self._request(f"{self.url}{path}", lambda: self._http.get(path)).status_code == 200

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _json(self, what: str, send: Any) -> dict[str, Any]:
        response = self._request(what, send)
        if response.status_code != 200:
            complaint = _complaint(response)
            if response.status_code >= 500 and self.process is not None:
                complaint += f"; its log {self.process.log} says: {self.process.last_lines(1)[0]}"
            raise BackendError(f"{what}: {self.url} answers {response.status_code}: {complaint}")
        try:
            found = response.json() if response.content else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    def _request(self, what: str, send: Any) -> httpx.Response:
        try:
            response: httpx.Response = self._retry(send)
            return response
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise BackendError(f"{what}: {self.url} can't be reached: {error}") from error
            raise BackendError(
                f"{what}: no answer from {self.url} in {self._timeout:g} s (backend.request_timeout)"
            ) from error
        except httpx.TransportError as error:
            raise BackendError(f"{what}: {self._story(error)}") from error

    def _story(self, error: Exception) -> str:
        if self.process is not None and self.process.gone_soon():
            return self.process.story()
        return f"{self.url} can't be reached or has broken off: {error or type(error).__name__}"

    def _may_come_back(self, error: BaseException) -> bool:
        """Only what never reached the server is sent again, and only while there may be a server."""
        return isinstance(error, httpx.ConnectError) and not (self.process is not None and self.process.ended)


def _complaint(response: httpx.Response) -> str:
    """What the server says, in one line."""
    try:
        found = response.json()
        error = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except ValueError:
        text = response.text
    return " ".join(text.split())[:500]
