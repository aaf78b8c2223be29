"""The sandbox of phases of several processes: what they may do together, and what is left of them."""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_attacks import RUNNER, SMALL, attack, code_of, inputs, processes_named, wait_for

from weightgym.rewards.sandbox import Sandbox

SEVERAL = dataclasses.replace(SMALL, multiprocess=True, tasks=12)


@pytest.fixture(scope="module")
def several() -> Iterator[Sandbox]:
    with Sandbox(SEVERAL, RUNNER) as made:
        yield made


def test_processes_that_stay_behind_are_killed(several: Sandbox) -> None:
    source = """
        import time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
                name_process("wgstays")
                time.sleep(1000)
        port.send({"a": 1})
        port.receive()
        """
    with several.start("code", inputs(source)) as phase:
        phase.receive()
        assert wait_for("wgstays", gone=False)
        phase.send({})
        phase.finish()
    assert processes_named("wgstays") == []
    with several.start("code", inputs(source)) as phase:
        phase.receive()
        assert wait_for("wgstays", gone=False)
    assert processes_named("wgstays") == []


def test_a_fork_bomb_is_bounded(several: Sandbox) -> None:
    source = """
        import time
        count = 0
        def bomb():
            global count
            while True:
                if os.fork() == 0:
                    name_process("wgbomb")
                    try:
                        while True:
                            os.fork()
                    except OSError:
                        time.sleep(1000)
                count += 1
        outcome = attempt(bomb)
        report(outcome=outcome)
        port.receive()
        """
    with several.start("code", inputs(source)) as phase:
        assert phase.receive() == {"outcome": "EAGAIN"}
        assert 0 < len(processes_named("wgbomb")) <= SEVERAL.tasks
        assert attack(several, "report(fork=1 if os.fork() else os._exit(0))") == {"fork": "1"}
    assert processes_named("wgbomb") == []


def test_cpu_of_all_processes_counts(several: Sandbox) -> None:
    code, end = code_of(several, "for _ in range(3): os.fork()\nwhile True: pass")
    assert code == "cpu_limit"
    assert end.cpu_seconds < SEVERAL.cpu_seconds + 2


def test_several_processes_have_a_network_of_their_own(several: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0weightgym-test")
        local.listen()
        seen = attack(
            several,
            f"""
            import socket
            server = socket.create_server(("127.0.0.1", 0))
            def connect(family, address):
                with socket.socket(family) as s:
                    s.settimeout(2)
                    s.connect(address)
            own = attempt(connect, socket.AF_INET, server.getsockname())
            host = attempt(connect, socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]}))
            world = attempt(connect, socket.AF_INET, ("192.0.2.1", 80))
            local = attempt(connect, socket.AF_UNIX, "\\0weightgym-test")
            others = [f for f in range(64) if f not in (1, 2, socket.AF_NETLINK)
                      and attempt(socket.socket, f, socket.SOCK_STREAM) != "EPERM"]
            others += [p for p in range(1, 32)
                       if attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, p) != "EPERM"]
            raw = attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW)
            report(own=own, host=host, world=world, local=local, others=others, raw=raw)
            """,
        )
    assert seen["own"] == "done"
    assert (seen["host"], seen["world"], seen["local"]) == ("ECONNREFUSED", "ENETUNREACH", "ECONNREFUSED")
    assert seen["others"] == "[]"
    assert seen["raw"] in ("EPERM", "EPROTONOSUPPORT")


def test_pools_and_semaphores(several: Sandbox) -> None:
    source = """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            squares = pool.map(abs, range(-5, 0))
        report(squares=squares, shm=os.listdir("/dev/shm"), left=attempt(open, "/dev/shm/x", "w"))
        """
    first = attack(several, source)
    assert first == {"squares": "[5, 4, 3, 2, 1]", "shm": "[]", "left": "done"}
    assert attack(several, source) == first


def test_exec_finds_the_interpreter_only(several: Sandbox) -> None:
    seen = attack(
        several,
        """
        import subprocess, sys
        run = lambda *words: attempt(lambda: subprocess.run(words, check=True, timeout=20))
        report(python=run(sys.executable, "-S", "-c", "0"), shell=run("/bin/sh", "-c", "true"), ls=run("ls"))
        """,
    )
    assert seen == {"python": "done", "shell": "ENOENT", "ls": "ENOENT"}
