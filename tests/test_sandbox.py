"""The sandbox from its public side: limits in time, many phases at once, what dies with what."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_attacks import RUNNER, SMALL, attack, code_of, inputs, wait_for

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.sandbox import PhaseError, Sandbox, SandboxPolicy, find_sandbox, watch

QUICK = dataclasses.replace(SMALL, wall_seconds=0.7)


@pytest.fixture(scope="module")
def quick() -> Iterator[Sandbox]:
    with Sandbox(QUICK, RUNNER) as made:
        yield made


@pytest.mark.parametrize(
    "source",
    [
        "import time; time.sleep(1000)",
        "import signal\nfor s in range(1, 32): attempt(signal.signal, s, signal.SIG_IGN)\nwhile True: signal.pause()",
        "os.close(4)\nimport time; time.sleep(1000)",
        "os.read(3, 1); import threading; threading.Event().wait()",
        "import threading; threading.Thread(target=threading.Event().wait).start(); os.close(4); os.close(3)\n"
        "threading.Event().wait()",
    ],
)
def test_wall_limit(quick: Sandbox, source: str) -> None:
    started = time.monotonic()
    code, end = code_of(quick, source)
    assert code == "wall_limit"
    assert end.wall_seconds >= 0.7
    assert time.monotonic() - started < 4 * 0.7 + 5


def test_input_that_nobody_reads(quick: Sandbox) -> None:
    with quick.start("code", inputs("import time; time.sleep(1000)")) as phase:
        phase.send({"data": bytes(1 << 10)})
        with pytest.raises(PhaseError) as caught:
            phase.send({"data": bytes(64 << 20)})
    assert caught.value.code == "wall_limit"


def test_time_of_ours_is_not_the_phases(quick: Sandbox) -> None:
    with quick.start("code", inputs("port.receive(); port.send({'a': 1})")) as phase:
        time.sleep(1.5)
        phase.send({"go": 1})
        assert phase.receive() == {"a": 1}
        assert phase.finish().wall_seconds < 0.7


def test_waiting_for_a_core_is_not_the_phases() -> None:
    """Three phases on one core take three times as long as the wall clock allows, and still get their CPU time."""
    core = min(os.sched_getaffinity(0))
    source = f"os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    codes: list[str] = []
    with Sandbox(dataclasses.replace(SMALL, cpu_seconds=1, wall_seconds=1.3), RUNNER) as sandbox:
        attack(sandbox, "report(a=1)")
        threads = [threading.Thread(target=lambda: codes.append(code_of(sandbox, source)[0])) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert codes == ["cpu_limit"] * 3


def test_a_conversation(quick: Sandbox) -> None:
    source = "while True:\n  frame = port.receive()\n  port.send({'sum': sum(frame['data']), 'n': frame['n'] + 1})"
    with quick.start("code", inputs(source)) as phase:
        for number in range(50):
            phase.send({"data": bytes([number, 1]), "n": number})
            assert phase.receive(max_bytes=100) == {"sum": number + 1, "n": number + 1}
        end = phase.stop()
    assert end.code == "stopped"
    with pytest.raises(PhaseError, match="stopped"):
        phase.receive()


def test_phases_at_once_do_not_see_each_other(quick: Sandbox) -> None:
    write = "import time; open('/tmp/swordfish', 'w').write('x'); port.send({'a': 1}); port.receive()"
    look = """
        pids = [pid for pid in range(1, 5000) if attempt(os.kill, pid, 0) == "done"]
        report(tmp=os.listdir("/tmp"), kill=attempt(os.kill, -1, 9), pids=pids)
        """
    with quick.start("code", inputs(write)) as first, quick.start("code", inputs(write)) as second:
        assert first.receive() == second.receive() == {"a": 1}
        assert attack(quick, look) == {"tmp": "[]", "kill": "ESRCH", "pids": "[1]"}
        first.send({})
        assert first.finish().code == "ok"
        second.send({})
        assert second.finish().code == "ok"


def test_many_threads(quick: Sandbox) -> None:
    results: list[str] = []

    def work(number: int) -> None:
        results.append(attack(quick, f"report(n={number})")["n"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, results)) == list(range(12))


def test_it_outlives_the_thread_that_started_it() -> None:
    made: list[Sandbox] = []

    def start() -> None:
        made.append(Sandbox(SMALL, RUNNER))
        attack(made[0], "report(a=1)")

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    zygote = made[0]._zygote
    assert attack(made[0], "report(a=1)") == {"a": "1"}
    assert made[0]._zygote is zygote
    made[0].close()


def test_no_descriptor_is_left(quick: Sandbox) -> None:
    attack(quick, "report(a=1)")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        attack(quick, "report(a=1)")
        code_of(quick, "raise ValueError")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_lost_zygote_is_ours_and_is_replaced() -> None:
    with Sandbox(SMALL, RUNNER) as sandbox:
        with sandbox.start("code", inputs("port.send({'a': 1}); import time; time.sleep(99)")) as phase:
            phase.receive()
            assert sandbox._zygote is not None
            os.killpg(sandbox._zygote._process.pid, signal.SIGKILL)
            with pytest.raises(SandboxError):
                phase.receive()
        assert attack(sandbox, "report(a=1)") == {"a": "1"}


def test_a_runner_that_can_not_be_prepared(tmp_path: Path) -> None:
    runner = tmp_path / "runner.py"
    runner.write_text("def prepare():\n    raise RuntimeError('no such thing')\n")
    with Sandbox(SMALL, runner) as sandbox, pytest.raises(SandboxError, match="no such thing"):
        sandbox.start("code")
    runner.write_text("import threading\ndef prepare():\n    threading.Thread(target=threading.Event().wait).start()\n")
    with Sandbox(SMALL, runner) as sandbox, pytest.raises(SandboxError, match="threads running"):
        sandbox.start("code")
    with Sandbox(SMALL, RUNNER) as sandbox:
        phase = sandbox.start("code", inputs("port.send({'a': 1}); port.receive()"))
        with pytest.raises(SandboxError, match="nonesuch"):
            sandbox.start("nonesuch")
        phase.receive()
        phase.send({})
        phase.finish()  # it was none of its business
    unknown = dataclasses.replace(SMALL, packages=("no-such-package",))
    with Sandbox(unknown, RUNNER) as sandbox, pytest.raises(SandboxError, match="no-such-package is not installed"):
        sandbox.start("code")


PARENT = """
import dataclasses, sys, time
sys.path.insert(0, sys.argv[1])
from sandbox_attacks import RUNNER, SMALL, inputs
from weightgym.rewards.sandbox import Sandbox
sandbox = Sandbox(dataclasses.replace(SMALL, multiprocess=True, wall_seconds=100), RUNNER)
phase = sandbox.start("code", inputs("os.fork(); name_process('wgorphan'); import time; time.sleep(1000)"))
print("ready", flush=True)
time.sleep(1000)
"""


def test_all_dies_with_the_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        assert wait_for("wgorphan", gone=False)
        parent.kill()
    assert wait_for("wgorphan", gone=True)


STOPPED = """
import dataclasses, sys
sys.path.insert(0, sys.argv[1])
from sandbox_attacks import RUNNER, SMALL, attack
from weightgym.rewards.sandbox import Sandbox
with Sandbox(dataclasses.replace(SMALL, wall_seconds=2), RUNNER) as sandbox:
    attack(sandbox, "report(a=1)")
    print("ready", flush=True)
    print(attack(sandbox, "import time; time.sleep(1); report(a=1)"))
"""


def test_time_in_which_we_were_stopped_is_nobodys() -> None:
    """Ctrl-Z, say: the phase ends meanwhile, long before its limit, and is then looked at long after it."""
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        time.sleep(0.5)
        parent.send_signal(signal.SIGSTOP)
        time.sleep(4)
        parent.send_signal(signal.SIGCONT)
        assert parent.stdout.readline() == "{'a': '1'}\n"


def test_a_machine_that_is_too_busy_is_ours(quick: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "waited_seconds", lambda pid: 1000.0)
    started = time.monotonic()
    busy = pytest.raises(SandboxError, match="the machine is too busy: a phase waited 1,000 seconds for a core")
    with quick.start("code", inputs("import time; time.sleep(1000)")) as phase, busy:
        phase.finish()
    assert 4 * 0.7 <= time.monotonic() - started < 4 * 0.7 + 5
    assert attack(quick, "report(a=1)") == {"a": "1"}


def test_what_is_closed_starts_nothing() -> None:
    """Not even in a thread that had only just lost its phase."""
    sandbox = Sandbox(SMALL, RUNNER)
    attack(sandbox, "report(a=1)")
    sandbox.close()
    with pytest.raises(SandboxError, match="was closed"):
        sandbox.start("code", inputs("report(a=1)"))


def test_unsafe_leaves_nothing_at_work() -> None:
    with pytest.warns(UserWarning, match="without a sandbox"):
        sandbox = Sandbox(SMALL, RUNNER, unsafe=True)
    phase = sandbox.start("code", inputs("name_process('wgunsafe'); import time; time.sleep(1000)"))
    assert wait_for("wgunsafe", gone=False)
    sandbox.close()
    assert wait_for("wgunsafe", gone=True)
    with pytest.raises(SandboxError, match="the sandbox is gone"):
        phase.stop()


def test_unsafe_is_loud_and_limited() -> None:
    with pytest.warns(UserWarning, match="without a sandbox"):
        sandbox, quick = Sandbox(SMALL, RUNNER, unsafe=True), Sandbox(QUICK, RUNNER, unsafe=True)
    with sandbox, quick:
        assert attack(sandbox, "report(there=os.path.exists('/etc/passwd'))") == {"there": "True"}
        assert code_of(sandbox, "while True: pass")[0] == "cpu_limit"
        assert code_of(sandbox, "hoard = []\nwhile True: hoard.append(bytearray(1 << 22))")[0] == "out_of_memory"
        assert code_of(quick, "import time; time.sleep(1000)")[0] == "wall_limit"


def test_without_bubblewrap_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    find_sandbox.cache_clear()
    try:
        with pytest.raises(SandboxError, match="no bwrap found: install bubblewrap"):
            Sandbox(SMALL, RUNNER)
    finally:
        find_sandbox.cache_clear()


@pytest.mark.parametrize(
    "field",
    [{"cpu_seconds": 0}, {"cpu_seconds": float("inf")}, {"cpu_seconds": float("nan")}, {"wall_seconds": -1},
     {"memory_bytes": 0}, {"descriptors": 3}, {"files": (("relative", "/etc"),)}, {"files": (("/a/../b", "/etc"),)}],
)  # fmt: skip
def test_policies_that_make_no_sense(field: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        SandboxPolicy(**field)  # type: ignore[arg-type]


def test_files_of_the_policy_are_read_only(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(b"abc")
    with Sandbox(dataclasses.replace(SMALL, files=(("/data/train.bin", str(tmp_path / "train.bin")),)), RUNNER) as made:
        seen = attack(made, "report(text=open('/data/train.bin').read(), write=attempt(open, '/data/train.bin', 'r+'))")
    assert seen["text"] == "abc"
    assert seen["write"] in ("EROFS", "EACCES")
