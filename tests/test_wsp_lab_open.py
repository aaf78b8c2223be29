"""The open track: a client that could read the lab's files is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ordinary_user import run_as_user
from wsp_labs import TOKEN, server

from weightgym.rewards.wsp.lab import peers
from weightgym.rewards.wsp.lab.server import LabServer

#: Prints the status and the code, or the episode's id, of an opening.
CLIENT = """
import http.client, json, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
body = json.dumps({"id": sys.argv[3], "instance": "one"})
connection.request("POST", "/episodes", body, {"Authorization": "Bearer " + sys.argv[2]})
answer = connection.getresponse()
found = json.loads(answer.read())
print(answer.status, found["error"]["code"] if "error" in found else found["episode"])
"""


def command(served: LabServer, id: str = "a") -> list[str]:
    return [sys.executable, "-c", CLIENT, served.url.rsplit(":", 1)[1], TOKEN, id]


def test_a_client_of_the_labs_own_user_is_refused_on_the_open_track(tmp_path: Path) -> None:
    with server(tmp_path, track="open") as served:
        done = subprocess.run(command(served), capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["403", "same_user"]
    with server(tmp_path, track="fixed") as served:
        done = subprocess.run(command(served), capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[0] == "200"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a client of another user")
def test_a_client_of_another_user_plays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with server(tmp_path, track="open") as served:
        done = run_as_user(command(served), writable=home, environment={}, seconds=60)
        assert done.stderr == ""
        status, episode = done.stdout.split()
        assert (status, len(episode)) == ("200", 32)
        done = run_as_user([*command(served)[:4], "wrong", "b"], writable=home, environment={}, seconds=60)
        assert done.stdout.split() == ["401", "unauthorized"]


def test_who_is_at_the_other_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = listening.getsockname()
        with socket.create_connection(here) as near:
            mine = near.getsockname()
            far, _ = listening.accept()
            with far:
                assert peers.peer_uid(mine, here) == os.getuid()
                assert peers.peer_uid(here, mine) == os.getuid()
                assert peers.peer_uid((mine[0], mine[1] ^ 1), here) is None
                assert peers.peer_uid(mine, ("127.0.0.2", here[1])) is None
                near.close()
                assert peers.peer_uid(mine, here) is None  # nobody's any more
