"""A lab over HTTP on loopback: JSON in, JSON out, a bearer token, and bounds on everything that a client may do.

    POST   /episodes                    {"id": …, "instance": …}
    POST   /episodes/EPISODE/messages   {"id": …, "message": …}
    GET    /episodes/EPISODE
    DELETE /episodes/EPISODE

Each connection carries one request. An error is ``{"error": {"code": …, "message": …}}``.
"""

from __future__ import annotations

import hmac
import io
import logging
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from weightgym.rewards.contracts import canonical_json
from weightgym.rewards.wsp.lab import bodies, peers
from weightgym.rewards.wsp.lab.errors import LabError
from weightgym.rewards.wsp.lab.lab import Lab

_log = logging.getLogger(__name__)

HOST = "127.0.0.1"
#: Bytes of a request's body: two vectors of the greatest length, as decimals.
MOST_BYTES = 8 << 20
#: Requests at a time.
MOST_CONNECTIONS = 128
#: Seconds in which a request has to be here, and an answer taken.
PATIENCE = 30.0

_EPISODE = re.compile(r"/episodes/([0-9a-f]{32})")
_MESSAGES = re.compile(r"/episodes/([0-9a-f]{32})/messages")


class LabServer:
    """Serves a lab from threads of its own until it is closed.

    Args:
        lab: it stays the caller's to close, after this.
        token: what clients have to know.
        port: 0 for any free one.

    Raises:
        OSError: the port is taken, say.
    """

    def __init__(self, lab: Lab, token: str, *, port: int = 0, patience: float = PATIENCE) -> None:
        self._server = _Server((HOST, port), _Handler)
        self._port: int = self._server.server_address[1]
        self._server.lab, self._server.token, self._server.patience = lab, token, patience
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{HOST}:{self._port}"

    def close(self) -> None:
        """Take no more requests. Those that are being run go on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS
    lab: Lab
    token: str
    patience: float

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)  # a client tries again
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a connection broke", exc_info=True)


class _Timed(io.RawIOBase):
    """Reads a socket until a moment, however slowly its bytes come."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request is not here in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "weightgym-lab", ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Timed(self.connection, self.server.patience))
        self._unread = 0

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = do_OPTIONS = do_GET

    def _answer(self) -> None:
        try:
            status, content = 200, self._handled()
        except LabError as error:
            status, content = error.status, _told(error.code, str(error))
        except (TimeoutError, ConnectionError):
            raise  # nobody listens
        except Exception:
            _log.exception("a request failed")
            status, content = 500, _told("lab_failed", "the lab failed, and says why in its log; nothing has changed")
        self._send(status, content)

    def _handled(self) -> dict[str, Any]:
        self._unread = self._length()
        if self.server.lab.track == "open":
            peers.check_foreign(self.client_address, (HOST, self.server.server_address[1]))
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            raise LabError(401, "unauthorized", "want the header Authorization: Bearer TOKEN with the lab's token")
        raw = self._body()
        if self.path == "/episodes":
            self._check_method("POST")
            opening = bodies.read(bodies.OpenEpisode, raw)
            return self.server.lab.open(opening.id, opening.instance)
        if found := _MESSAGES.fullmatch(self.path):
            self._check_method("POST")
            sent = bodies.read(bodies.SendMessage, raw)
            return self.server.lab.message(found[1], sent.id, sent.message)
        if found := _EPISODE.fullmatch(self.path):
            self._check_method("GET", "DELETE")
            lab = self.server.lab
            return (lab.status if self.command == "GET" else lab.close_episode)(found[1])
        raise LabError(404, "unknown_path", "the paths are /episodes, /episodes/EPISODE and /episodes/EPISODE/messages")

    def _check_method(self, *known: str) -> None:
        if self.command not in known:
            raise LabError(405, "unknown_method", f"{self.command} is not for this path: want {' or '.join(known)}")

    def _length(self) -> int:
        if "Transfer-Encoding" in self.headers:
            raise LabError(411, "length_required", "want the header Content-Length, and no Transfer-Encoding")
        told = self.headers.get("Content-Length", "0")
        if not re.fullmatch(r"\d{1,12}", told, re.ASCII):
            raise LabError(400, "bad_request", "Content-Length is no number of bytes")
        return int(told)

    def _body(self) -> bytes:
        if self._unread > MOST_BYTES:
            raise LabError(413, "too_large", f"a body of {self._unread:,} bytes; at most {MOST_BYTES:,}")
        raw = self.rfile.read(self._unread)
        if len(raw) < self._unread:
            raise ConnectionError("the client left before its request was here")
        self._unread = 0
        return raw

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library finds wrong with a request."""
        self._send(code, _told("bad_request", "this is no HTTP request that a lab takes"))

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = canonical_json(content).encode()
        self.close_connection = True
        self.connection.settimeout(self.server.patience)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self._drain()

    def _drain(self) -> None:
        """Take what a client is still sending: closing on it would take the answer from it."""
        self._unread = min(self._unread, MOST_BYTES)
        while self._unread > 0 and (part := self.rfile.read1(min(self._unread, 1 << 16))):
            self._unread -= len(part)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a lab's log is for faults."""


def _told(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
