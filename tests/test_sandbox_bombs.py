"""Code that wants too much of the sandbox, or says too much, warm and cold."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_attacks import SMALL, attack, code_of, make_sandbox

from weightgym.rewards.sandbox import PhaseError, Sandbox

__all__ = ["make_sandbox"]
DENIED = ("EPERM", "ENOSYS")


def test_limits_can_not_be_raised(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        import resource as r
        kinds = [getattr(r, name) for name in dir(r) if name.startswith("RLIMIT_")]
        raised = [k for k in kinds if r.getrlimit(k)[1] != r.RLIM_INFINITY
                  and attempt(r.setrlimit, k, (r.RLIM_INFINITY, r.RLIM_INFINITY)) == "done"]
        nice = attempt(os.nice, -5)
        report(raised=raised, nice=nice, core=r.getrlimit(r.RLIMIT_CORE), user=os.getresuid(), groups=os.getgroups())
        """,
    )
    assert seen["raised"] == "[]"
    assert seen["nice"] in (*DENIED, "EACCES")
    assert (seen["core"], seen["user"]) == ("(0, 0)", "(1000, 1000, 1000)")


def test_memory_bombs(sandbox: Sandbox) -> None:
    code, end = code_of(sandbox, "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))")
    assert code == "out_of_memory"
    assert end.peak_bytes < 400 << 20
    code, _ = code_of(sandbox, "x = 'a'\nwhile True: x += x")
    assert code == "out_of_memory"
    seen = attack(
        sandbox,
        """
        import mmap
        maps = []
        def fill():
            while True:
                maps.append(mmap.mmap(-1, 16 << 20))
        outcome = attempt(fill)
        count = len(maps)
        maps.clear()
        report(outcome=outcome, count=count)
        """,
    )
    assert seen["outcome"] == "ENOMEM"
    assert int(seen["count"]) <= 16


def test_thread_bombs(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        import threading
        stop, threads = threading.Event(), []
        threading.stack_size(65536)
        def more():
            while True:
                threads.append(threading.Thread(target=stop.wait, daemon=True))
                threads[-1].start()
        outcome = attempt(more)
        report(outcome=outcome, count=len(threads))
        """,
    )
    assert seen["outcome"] == "RuntimeError"
    assert int(seen["count"]) <= SMALL.tasks


def test_disk_bombs(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        def fill(size):
            written = 0
            try:
                for index in range(100_000):
                    with open(f"/tmp/{index}", "wb", buffering=0) as file:
                        while size and file.tell() < size:
                            written += file.write(bytes(1 << 16))
            except OSError as error:
                return error.errno, written, len(os.listdir("/tmp"))
        def large():
            with open("/tmp/large", "wb") as file:
                file.truncate(1 << 40)
        size = attempt(large)
        os.unlink("/tmp/large")
        full = fill(2 << 20)
        for name in os.listdir("/tmp"):
            os.unlink("/tmp/" + name)
        report(size=size, full=full, inodes=fill(0))
        """,
    )
    assert seen["size"] == "EFBIG"
    number, written, _ = eval(seen["full"])
    assert number == 28
    assert written <= SMALL.tmpfs_bytes
    assert eval(seen["inodes"])[2] <= 1000
    assert attack(sandbox, "report(left=os.listdir('/tmp'))")["left"] == "[]"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("while True: pass", "cpu_limit"),
        ("import signal\nfor s in (2, 3, 15, 24): signal.signal(s, signal.SIG_IGN)\nwhile True: pass", "cpu_limit"),
        ("sum(range(10 ** 12))", "cpu_limit"),
        ("try:\n  while True: pass\nfinally:\n  while True: pass", "cpu_limit"),
        ("import re; re.match(r'(a+)+$', 'a' * 64 + 'b')", "cpu_limit"),
        ("import threading as t\nfor _ in range(6): t.Thread(target=sum, args=[range(10 ** 12)]).start()", "cpu_limit"),
        ("while True: os.write(1, bytes(1 << 20))", "cpu_limit"),
        ("import sys\nwhile True: print('x' * 10_000); print('y' * 10_000, file=sys.stderr)", "cpu_limit"),
    ],
)  # fmt: skip
def test_cpu_limit(sandbox: Sandbox, source: str, expected: str) -> None:
    code, end = code_of(sandbox, source)
    assert code == expected
    assert end.cpu_seconds < SMALL.cpu_seconds + 1.5


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("raise ValueError('swordfish')", "exception"),
        ("import sys; sys.exit(0)", "exception"),
        ("import sys; sys.exit('swordfish')", "exception"),
        ("swordfish swordfish", "exception"),
        ("def f(): f()\nf()", "exception"),
        ("raise MemoryError", "out_of_memory"),
        ("os._exit(0)", "ended"),
        ("os._exit(77)", "ended"),
        ("os.abort()", "crashed"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("import signal; os.kill(1, 9)\nos.close(4)\nos._exit(1)", "ended"),
        ("port.send({'a': 1})", "ended"),  # and no second frame
    ],
)
def test_failures_become_codes(sandbox: Sandbox, source: str, expected: str) -> None:
    with sandbox.start("code", {"code": source.encode()}) as phase, pytest.raises(PhaseError) as caught:
        list(iter(phase.receive, None))
    assert caught.value.code == expected
    assert "swordfish" not in str(caught.value)
    assert caught.value.__context__ is None or "swordfish" not in str(caught.value.__context__)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("os.write(4, b'{\"val_bpb\": 0.1}' * 10)", "bad_frame"),
        ("os.write(4, b'WGF1' + (2 ** 63).to_bytes(8, 'little'))", "output_limit"),
        ("os.write(4, b'WGF1' + (2 ** 64 - 1).to_bytes(8, 'little'))", "output_limit"),
        ("os.write(4, b'WGF1' + (5 << 20).to_bytes(8, 'little'))", "output_limit"),
        ("os.write(4, b'WGF1' + (10).to_bytes(8, 'little') + b'i')", "bad_frame"),
        ("os.write(4, b'WGF1')", "bad_frame"),
        ("os.write(4, b'WGF1' + (3).to_bytes(8, 'little') + b'q' + bytes(2))", "bad_frame"),
        ("port.send({'a': bytes(3 << 20)}); port.send({'b': bytes(3 << 20)})", "output_limit"),
        ("while True: port.send({'a': bytes(1 << 19)})", "output_limit"),
    ],
)
def test_malformed_output(sandbox: Sandbox, source: str, expected: str) -> None:
    assert code_of(sandbox, source, frames=20)[0] == expected


def test_more_than_was_asked_for(sandbox: Sandbox) -> None:
    assert code_of(sandbox, "port.send({'a': 1}); port.send({'a': 2})", frames=1)[0] == "bad_frame"
    assert code_of(sandbox, "port.send({'a': 1}); os.write(4, b'x')", frames=1)[0] == "bad_frame"
    assert code_of(sandbox, "port.send({'a': 1}); raise ValueError", frames=1)[0] == "exception"
    assert code_of(sandbox, "port.send({'a': 1}); os._exit(5)", frames=1)[0] == "ended"
