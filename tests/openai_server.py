"""A real HTTP server that speaks OpenAI's chat protocol as a test scripts it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server sends: a JSON value or raw bytes, at once or in drops."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drops: int = 0  #: send one space every 0.1 s so often before the body
    hang_up: bool = False  #: close the connection instead


def chat(content: Any = "hello", finish_reason: str = "stop", **message: Any) -> Reply:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content} | message}
    named = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted"}
    return Reply(named | {"choices": [choice | {"finish_reason": finish_reason}]})


def refusal(status: int, text: str, code: str = "bad", **headers: str) -> Reply:
    """An error in OpenAI's form."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({"error": {"message": text, "code": code}}, status, named)


@dataclass
class Seen:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Server:
    """Answers each request with what ``script(number of the request, request)`` says."""

    def __init__(self, script: Callable[[int, Seen], Reply]) -> None:
        self.script = script
        self.seen: list[Seen] = []
        self.stopped = threading.Event()
        self.url = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was asked."""
        return [one.body for one in self.seen]


@contextmanager
def serve(script: Callable[[int, Seen], Reply]) -> Iterator[Server]:
    """The server, on a free port of the loopback."""
    server = Server(script)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                server.seen.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                number, seen = len(server.seen), server.seen[-1]
            try:
                self._send(server.script(number, seen))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up

        def _send(self, reply: Reply) -> None:
            if reply.hang_up:
                self.close_connection = True
                return
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(raw) + reply.drops))
            self.end_headers()
            for _ in range(reply.drops):
                if server.stopped.wait(0.1):
                    return
                self.wfile.write(b" ")
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    httpd.block_on_close = False
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join(5)
