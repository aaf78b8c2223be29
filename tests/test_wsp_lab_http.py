"""The lab over HTTP: what it takes and refuses, and clients that break off."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import wsp_episodes
import wsp_labs
from wsp_episodes import NAME, call
from wsp_labs import TOKEN, results, server, waited

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.wsp.lab.client import LabClient
from weightgym.rewards.wsp.lab.loaded import Instance
from weightgym.rewards.wsp.lab.server import MOST_BYTES, LabServer

EDIT = wsp_episodes.message(call("zero", parameter=NAME, axis="rows", indices=[0]))
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[LabServer]:
    with server(tmp_path) as made:
        yield made


@pytest.fixture
def client(served: LabServer) -> Iterator[LabClient]:
    made = LabClient(served.url, TOKEN)
    yield made
    made.close()


def post(served: LabServer, path: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(served.url + path, json=body, headers=HEADERS | headers, timeout=30)


def opened(served: LabServer, id: str = "open", instance: str = "one") -> str:
    answer = post(served, "/episodes", {"id": id, "instance": instance})
    assert answer.status_code == 200
    return str(answer.json()["episode"])


def error(answer: httpx.Response) -> str:
    """The code of an answer that refuses; it never tells anything of the lab's own."""
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Connection"] == "close"
    told = answer.json()["error"]
    assert told.keys() == {"code", "message"}
    assert not re.search(r"Traceback|\.py|/work|/tmp|/root|File ", answer.text)
    assert "\n" not in told["message"]
    return str(told["code"])


def test_a_whole_episode(client: LabClient, tmp_path: Path) -> None:
    episode = client.open("one")
    assert episode.messages == [{"role": "user", "content": "Repair one."}]
    assert any(tool["function"]["name"] == "submit" for tool in episode.tools)
    reply = episode.message(EDIT)
    assert [said["role"] for said in reply.messages] == ["tool"]
    assert not reply.done
    assert episode.message("hello").messages[0]["content"].startswith("Call a tool or submit.")
    assert episode.status()["status"]["elements"]["used"] == 48
    assert episode.message(wsp_episodes.message(call("submit"))).done
    assert episode.status()["ended_by"] == "submit"
    with pytest.raises(BackendError, match="409: ended"):
        episode.message("more")
    other = client.open("two")
    other.close()
    assert {row["ended_by"] for row in waited(lambda: len(results(tmp_path)) == 2 and results(tmp_path))} == {
        "submit",
        "closed",
    }


def test_a_client_needs_no_torch() -> None:
    script = "import sys, weightgym.rewards.wsp.lab.client; sys.exit('torch' in sys.modules or 'httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}é"])
def test_without_the_token_nothing_is_told(served: LabServer, given: str | None) -> None:
    headers = {} if given is None else {b"Authorization": given.encode("latin-1")}
    for method, path in (("POST", "/episodes"), ("GET", "/episodes/" + "0" * 32), ("GET", "/nowhere")):
        answer = httpx.request(method, served.url + path, headers=headers, content=b"x" * 100_000)
        assert answer.status_code == 401
        assert error(answer) == "unauthorized"


CALL: dict[str, Any] = {"id": "a", "type": "function", "function": {"name": "undo", "arguments": "{}"}}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"id": "m"}', b'{"id": "m", "message": {}, "more": 1}',
        b'{"id": "", "message": {}}', b'{"id": 1, "message": {}}', b'{"id": "m\\n", "message": {}}',
        json.dumps({"id": "m" * 101, "message": {}}).encode(), b'{"id": "m", "message": "hello"}',
        b'{"id": "m", "message": {"role": "user"}}', b'{"id": "m", "message": {"content": 1}}',
        b'{"id": "m", "message": {"tool_calls": [1]}}', b'{"id": "m", "message": {"usage": {"prompt_tokens": NaN}}}',
        json.dumps({"id": "m", "message": {"tool_calls": [CALL] * 33}}).encode(),
        json.dumps({"id": "m", "message": {"tool_calls": [CALL | {"type": "other"}]}}).encode(),
        json.dumps({"id": "m", "message": {"tool_calls": [CALL | {"id": "x" * 201}]}}).encode(),
        json.dumps({"id": "m", "message": {"tool_calls": [{"id": "a", "function": {"name": 1}}]}}).encode(),
        b'{"id": "m", "message": {"content": "\\ud800"}}',
    ],
)  # fmt: skip
def test_a_body_of_another_form_is_refused_and_is_no_turn(served: LabServer, body: bytes) -> None:
    id = opened(served)
    answer = httpx.post(f"{served.url}/episodes/{id}/messages", content=body, headers=HEADERS)
    assert answer.status_code == 400
    assert error(answer) == "bad_request"
    told = httpx.get(f"{served.url}/episodes/{id}", headers=HEADERS).json()
    assert told["status"]["turns"]["used"] == 0


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "unknown_path"),
        ("GET", "/../../etc/passwd", 404, "unknown_path"),
        ("GET", "/episodes/" + "0" * 31, 404, "unknown_path"),
        ("GET", "/episodes/" + "0" * 32, 404, "unknown_episode"),
        ("DELETE", "/episodes/" + "0" * 32, 404, "unknown_episode"),
        ("GET", "/episodes", 405, "unknown_method"),
        ("PUT", "/episodes/" + "0" * 32, 405, "unknown_method"),
        ("GET", f"/episodes/{'0' * 32}/messages", 405, "unknown_method"),
        ("BREW", "/episodes", 501, "bad_request"),
    ],
)
def test_another_path_or_method_is_a_clear_error(
    served: LabServer, method: str, path: str, status: int, code: str
) -> None:
    answer = httpx.request(method, served.url + path, headers=HEADERS)
    assert (answer.status_code, error(answer)) == (status, code)


def raw(served: LabServer, sent: bytes, *, half: bool = False) -> bytes:
    """What comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", int(served.url.rsplit(":", 1)[1])), timeout=20) as connection:
        connection.sendall(sent)
        if not half:
            connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n".encode()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /episodes HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + AUTHORIZED + b"\r\n0\r\n\r\n", 411),
        (b"POST /episodes HTTP/1.1\r\nContent-Length: -1\r\n" + AUTHORIZED + b"\r\n", 400),
        (b"POST /episodes HTTP/1.1\r\nContent-Length: \xb2\r\n" + AUTHORIZED + b"\r\n", 400),
        (b"POST /episodes HTTP/1.1\r\nContent-Length: %d\r\n" % (MOST_BYTES + 1) + AUTHORIZED + b"\r\n", 413),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /%s HTTP/1.1\r\n\r\n" % (b"a" * 70_000), 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/9.1\r\n\r\n", 505),
    ],
)
def test_what_is_no_request_for_a_lab(served: LabServer, sent: bytes, status: int) -> None:
    found = raw(served, sent)
    assert b'{"error":{"code":' in found
    if found.startswith(b"HTTP"):
        assert found.split()[1] == str(status).encode()
    assert opened(served)


def test_a_fault_of_ours_is_told_without_its_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def load(id: str) -> Instance | None:
        raise OSError(f"{tmp_path}/secret.truth is not readable")

    with server(tmp_path, loader=load) as served:
        answer = post(served, "/episodes", {"id": "a", "instance": "one"})
    assert (answer.status_code, error(answer)) == (500, "lab_failed")
    assert "secret" not in answer.text
    assert "secret.truth" in caplog.text


def test_half_a_request_holds_nobody_up_and_is_let_go(tmp_path: Path) -> None:
    whole = b"POST /episodes HTTP/1.1\r\nContent-Length: 1000\r\n" + AUTHORIZED + b'\r\n{"id": "half'
    with server(tmp_path, patience=1.0) as served:
        address = ("127.0.0.1", int(served.url.rsplit(":", 1)[1]))
        begun = time.monotonic()
        halves = [socket.create_connection(address, timeout=20) for _ in range(20)]
        for index, connection in enumerate(halves):
            connection.sendall(whole[: 10 + 6 * index])
        assert opened(served)
        assert time.monotonic() - begun < 1.0
        gone, waiting, trickling = halves[:3], halves[3:-1], halves[-1]
        for connection in gone:
            connection.close()
        while trickle(trickling):
            assert time.monotonic() - begun < 10
        for connection in waiting:
            assert connection.recv(10) == b""
            connection.close()
        assert time.monotonic() - begun < 10
        assert opened(served, id="another")


def trickle(connection: socket.socket) -> bool:
    """Whether the server still takes a byte."""
    time.sleep(0.1)
    try:
        connection.sendall(b"x")
    except ConnectionError:
        connection.close()
        return False
    return True


KILLED = """
import sys
from weightgym.rewards.wsp.lab.client import LabClient, RemoteEpisode
url, token, episode = sys.argv[1:]
remote = RemoteEpisode(LabClient(url, token), {"episode": episode, "messages": [], "tools": []})
edit = '{"parameter": "NAME", "axis": "rows", "indices": [0]}'
calls = [{"id": "a", "function": {"name": "zero", "arguments": edit}},
         {"id": "b", "function": {"name": "generate", "arguments": '{"prompts": ["abc"], "max_new_tokens": 3}'}}]
remote.message({"content": "", "tool_calls": calls}, id="fatal")
"""


def test_a_client_killed_in_a_call_leaves_nothing_behind(tmp_path: Path) -> None:
    before, held = set(threading.enumerate()), wsp_labs.Held()  # before: other tests' own
    with server(tmp_path, loader=held.load, lease=1.5) as served:
        killed, other = opened(served, "killed"), opened(served, "other", "two")
        script = KILLED.replace("NAME", NAME)
        process = subprocess.Popen([sys.executable, "-c", script, served.url, TOKEN, killed])
        try:
            assert held.begun.wait(30)
        finally:
            process.send_signal(signal.SIGKILL)
            assert process.wait(20) == -signal.SIGKILL
        post(served, f"/episodes/{other}/messages", {"id": "m", "message": EDIT})  # others go on meanwhile
        held.go.set()
        (row,) = waited(lambda: [one for one in results(tmp_path) if one["episode"] == killed])
        assert row["ended_by"] == "lease"
        # The call was finished: all of it.
        assert row["status"]["gpu_calls"]["used"] == row["status"]["turns"]["used"] == 1
        assert row["status"]["elements"]["used"] == 48
    waited(lambda: set(threading.enumerate()) <= before)


def test_a_client_that_starts_again_gets_the_reply_that_it_missed(tmp_path: Path) -> None:
    with server(tmp_path) as served, Proxy(served.url, lost=2) as proxy:
        client = LabClient(proxy.url, TOKEN)
        episode = client.open("one")
        first = episode.message(EDIT, id="m")
        assert proxy.lost == 0
        assert episode.message(EDIT, id="m") == first
        assert client.open("one").id != episode.id
        status = episode.status()["status"]
        assert (status["turns"]["used"], status["elements"]["used"]) == (1, 48)
        client.close()
    assert len(results(tmp_path)) == 2


class Proxy:
    """Passes requests on, and loses the first answers: the connection breaks when the lab has answered."""

    def __init__(self, url: str, *, lost: int) -> None:
        self._target = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.lost = lost
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            with near, socket.create_connection(self._target) as far:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += near.recv(65536)
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                missing = int(length[1]) - len(head.split(b"\r\n\r\n", 1)[1]) if length else 0
                while missing > 0:
                    part = near.recv(65536)
                    head, missing = head + part, missing - len(part)
                far.sendall(head)
                answer = b""
                while part := far.recv(65536):
                    answer += part
                if self.lost:
                    self.lost -= 1
                else:
                    near.sendall(answer)


def test_a_client_says_what_is_wrong(tmp_path: Path) -> None:
    with server(tmp_path) as served:
        with pytest.raises(BackendError, match="401: unauthorized"):
            LabClient(served.url, "wrong").open("one")
        with pytest.raises(BackendError, match="404: unknown_instance: there is no instance 'four'"):
            LabClient(served.url, TOKEN).open("four")
        gone = served.url
    with pytest.raises(BackendError, match=f"can't reach the lab at {gone}"):
        LabClient(gone, TOKEN, tries=2).open("one")
