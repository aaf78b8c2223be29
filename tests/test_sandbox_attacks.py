"""Attacks on the sandbox, warm and cold. ``test_sandbox_user.py`` runs them again as an ordinary user."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_attacks import RUNNER, SMALL, attack, code_of, inputs, make_sandbox

from weightgym.rewards.sandbox import PhaseError, Sandbox
from weightgym.rewards.sandbox.inputs import Sealed
from weightgym.rewards.sandbox.watch import pid_of

__all__ = ["make_sandbox"]
DENIED = ("EPERM", "ENOSYS")


def test_only_tmp_can_be_written(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        written, here = [], []
        for folder, folders, names in os.walk("/"):
            here.append(folder)
            if attempt(open, folder + "/mine", "w") == "done":
                written.append(folder)
            paths = {name: folder + "/" + name for name in names if name != "mine"}
            written += [name for name, path in paths.items() if attempt(open, path, "r+b") == "done"]
        report(written=sorted(written), chmod=attempt(os.chmod, os.__file__, 0o777), count=len(here),
               unlink=attempt(os.unlink, os.__file__), rename=attempt(os.rename, os.__file__, "/tmp/os.py"))
        """,
    )
    assert seen["written"] == "['/tmp', 'full', 'null', 'random', 'urandom', 'zero']"
    assert int(seen["count"]) > 20
    assert {seen["chmod"], seen["unlink"], seen["rename"]} <= {"EROFS", "EPERM", "EXDEV"}


def test_nothing_of_the_machine_is_there(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    repository = Path(__file__).parents[1]
    paths = ["/etc/passwd", "/home", "/var", "/usr/bin", "/bin/sh", "/proc/self", "/proc/1", "/dev/shm/x", "/dev/mem",
             str(tmp_path / "secret"), str(repository), str(Path.home() / ".bashrc"), "/sys/kernel", "/sys/class",
             "/sys/fs", "/run", "/dev/pts", "/dev/tty", "/dev/fuse", "/dev/kvm"]  # fmt: skip
    seen = attack(
        sandbox,
        f"""
        import importlib.util
        there = [path for path in {paths!r} if os.path.exists(path)]
        walked = [name for _, folders, names in os.walk("/") for name in folders + names]
        walked = [name for name in walked if "weightgym" in name or name == "passwd"]
        report(there=there, proc=os.listdir("/proc"), walked=walked, dev=sorted(os.listdir("/dev")),
               ours=importlib.util.find_spec("weightgym"), pytest=importlib.util.find_spec("pytest"))
        """,
    )
    assert seen["there"] == seen["proc"] == seen["walked"] == "[]"
    assert (seen["ours"], seen["pytest"]) == ("None", "None")
    assert seen["dev"] == "['full', 'null', 'random', 'shm', 'urandom', 'zero']"


def test_the_environment_is_not_passed_on(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHTGYM_SECRET", "swordfish")
    with Sandbox(SMALL, RUNNER, warm=sandbox.warm) as fresh:
        seen = attack(
            fresh,
            """
            import ctypes
            environ, index, raw = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"), 0, []
            while environ[index]:
                raw.append(environ[index])
                index += 1
            report(names=sorted(os.environ), raw=raw)
            """,
        )
    assert "swordfish" not in str(seen)
    assert set(eval(seen["names"])) <= {
        *("HOME", "LANG", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PWD"),
        *("PYTHONHASHSEED", "TMPDIR"),
    }


def test_no_sockets(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        import socket
        families = [int(family) for family in socket.AddressFamily]
        report(opened=[f for f in families if attempt(socket.socket, f, socket.SOCK_STREAM) == "done"],
               datagram=attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM), pair=attempt(socket.socketpair),
               resolve=attempt(socket.getaddrinfo, "example.org", 80))
        """,
    )
    assert seen["opened"] == "[]"
    assert "done" not in (seen["datagram"], seen["pair"], seen["resolve"])


def test_no_other_processes_and_programs(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        import subprocess, sys
        report(fork=attempt(os.fork), forkpty=attempt(os.forkpty),
               spawn=attempt(os.posix_spawn, sys.executable, ["x"], {}),
               shell="done" if os.system("true") == 0 else "failed",
               run=attempt(subprocess.run, [sys.executable, "-c", "0"]),
               python=attempt(os.execv, sys.executable, ["x"]))
        """,
    )
    assert "done" not in seen.values()


#: Numbers on x86_64.
FORBIDDEN = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_open": 434,
    "pidfd_getfd": 438, "pidfd_send_signal": 424, "process_madvise": 440, "perf_event_open": 298, "bpf": 321,
    "keyctl": 250, "add_key": 248, "request_key": 249, "io_uring_setup": 425, "io_setup": 206, "userfaultfd": 323,
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "fsopen": 430,
    "open_tree": 428, "move_mount": 429, "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "memfd_create": 319, "memfd_secret": 447, "inotify_init1": 294, "inotify_init": 253, "fanotify_init": 300,
    "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "personality": 135, "syslog": 103, "reboot": 169,
    "swapon": 167, "kexec_load": 246, "init_module": 175, "acct": 163, "quotactl": 179, "setuid": 105, "setgid": 106,
    "setresuid": 117, "setgroups": 116, "capset": 126, "seccomp": 317, "vfork": 58, "fork": 57, "clone3": 435,
    "execve": 59, "execveat": 322, "socket": 41, "socketpair": 53, "setpriority": 141, "sched_setscheduler": 144,
    "sched_setattr": 314, "sethostname": 170, "settimeofday": 164, "clock_settime": 227, "mknod": 133, "chown": 92,
    "ioperm": 173, "iopl": 172, "modify_ldt": 154, "vmsplice": 278, "splice": 275, "tee": 276, "landlock": 444,
    "lookup_dcookie": 212, "vhangup": 153, "nfsservctl": 180, "remap_file_pages": 216, "migrate_pages": 256,
    "move_pages": 279, "futex_waitv": 449, "cachestat": 451, "mseal": 462, "of the future": 600,
    "fadvise64": 221, "readahead": 187, "mincore": 27,
}  # fmt: skip


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86_64")
def test_forbidden_system_calls(sandbox: Sandbox) -> None:
    seen = attack(sandbox, f"report(**{{name: call(n, 0, 0, 0, 0, 0, 0) for name, n in {FORBIDDEN!r}.items()}})")
    assert {name: verdict for name, verdict in seen.items() if verdict not in DENIED} == {}
    assert len(seen) == len(FORBIDDEN)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86_64")
def test_arguments_of_system_calls(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        flags = (0, 0x8000, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
        report(**{f"clone {flag:x}": call(56, flag | 17, 0, 0, 0, 0) for flag in flags})
        """,
    )
    assert set(seen.values()) == {"EPERM"}
    seen = attack(
        sandbox,
        """
        import fcntl
        file = os.open("/runner/runner.py", os.O_RDONLY)
        report(lease=attempt(fcntl.fcntl, file, 1024, 0), notify=attempt(fcntl.fcntl, file, 1026, 4),
               pipe=attempt(fcntl.fcntl, 4, 1031, 1 << 20), sti=attempt(fcntl.ioctl, 0, 0x5412, b"x"),
               owner=attempt(fcntl.fcntl, 4, 8, 1))
        """,
    )
    assert set(seen.values()) == {"EPERM"}
    assert code_of(sandbox, "call(0x40000000 | 39)")[0] == "crashed"  # the x32 table


def test_descriptors(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        import fcntl, stat
        found = {}
        for number in range(256):
            try:
                mode = os.fstat(number).st_mode
            except OSError:
                continue
            kind = "pipe" if stat.S_ISFIFO(mode) else "device" if stat.S_ISCHR(mode) else "file"
            found[number] = kind, fcntl.fcntl(number, fcntl.F_GETFL) & 3
        paths = ("/proc/self/fd/3", "/proc/thread-self/fd/3", "/dev/fd/3", "/dev/stdin")
        reopened = [path for path in paths if attempt(os.open, path, os.O_RDWR) == "done"]
        report(found=found, reopened=reopened)
        """,
    )
    device = ("device", 2)
    assert eval(seen["found"]) == {0: device, 1: device, 2: device, 3: ("pipe", 0), 4: ("pipe", 1)}
    assert seen["reopened"] == "[]"


def test_inputs_can_not_be_changed(sandbox: Sandbox) -> None:
    secret = bytes(range(256)) * 64
    with Sealed(secret) as data:
        seen = attack(
            sandbox,
            """
            import ctypes
            view = port.inputs["data"]
            libc = ctypes.CDLL(None, use_errno=True)
            address = ctypes.addressof(view.obj)
            writable = libc.mprotect(ctypes.c_void_p(address), len(view), 3)
            report(readonly=view.readonly, equal=view[:256] == bytes(range(256)), size=len(view), writable=writable)
            """,
            data=data,
        )
        assert seen == {"readonly": "True", "equal": "True", "size": str(len(secret)), "writable": "-1"}
        overwrite = "import ctypes; ctypes.memset(ctypes.addressof(port.inputs['code'].obj), 65, 16)"
        assert code_of(sandbox, overwrite)[0] == "crashed"
        seen = attack(sandbox, "report(same=port.inputs['data'] == bytes(range(256)) * 64)", data=data)
        assert seen["same"] == "True"


def test_killing_others(sandbox: Sandbox) -> None:
    seen = attack(
        sandbox,
        """
        import signal
        tried = [attempt(os.kill, pid, 9) for pid in (os.getppid(), -1, *range(2, 40_000)) if pid]
        report(parent=os.getppid(), me=os.getpid(), session=os.getsid(0), tried=sorted(set(tried)))
        """,
    )
    assert (seen["parent"], seen["me"], seen["session"]) == ("0", "1", "1")
    assert seen["tried"] == "['ESRCH']"
    os.kill(os.getpid(), 0)
    code, _ = code_of(sandbox, "import signal; signal.signal(15, lambda *_: os._exit(9)); os.killpg(0, 15); os.abort()")
    assert code in ("ended", "crashed")
    assert attack(sandbox, "report(alive=1)") == {"alive": "1"}


def test_symbolic_links_lead_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("swordfish")
    seen = attack(
        sandbox,
        f"""
        os.symlink({str(secret)!r}, "/tmp/a")
        os.symlink("/proc/1/root", "/tmp/b")
        os.symlink("../../../../../../etc", "/tmp/c")
        report(a=attempt(open, "/tmp/a"), b=attempt(os.listdir, "/tmp/b"), c=attempt(os.listdir, "/tmp/c"),
               up=os.path.samefile("/", "/.."), hard=attempt(os.link, os.__file__, "/tmp/d"))
        """,
    )
    assert seen == {"a": "ENOENT", "b": "ENOENT", "c": "ENOENT", "up": "True", "hard": "EXDEV"}


def test_one_phase_leaves_nothing_to_the_next(sandbox: Sandbox) -> None:
    poison = """
        import builtins, json, math, sys
        from inside import frames, isolate, port as port_module, zygote
        builtins.swordfish = 1
        open("/tmp/swordfish", "w").write("x")
        report(done=1)
        for module in (json, math, frames, isolate, zygote, port_module, sys.modules["runner"], os):
            for name in list(vars(module)):
                if not name.startswith("__"):
                    setattr(module, name, None)
        sys.modules.clear()
        """
    with sandbox.start("code", inputs(poison)) as phase:
        phase.receive()
        with pytest.raises(PhaseError):
            phase.finish()
    seen = attack(
        sandbox,
        """
        import builtins, math
        report(builtin=hasattr(builtins, "swordfish"), tmp=os.listdir("/tmp"), log=math.log(1))
        """,
    )
    assert seen == {"builtin": "False", "tmp": "[]", "log": "0.0"}


def test_what_the_machine_sees_of_it(sandbox: Sandbox) -> None:
    users = set()
    for _ in range(2):
        with sandbox.start("code", inputs("report(a=1); port.receive()")) as phase:
            phase.receive()
            pid = pid_of(phase._pidfd)
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
            for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                assert int(status[capabilities][0], 16) == 0, capabilities
            assert (status["NoNewPrivs"], status["Seccomp"], status["Threads"]) == (["1"], ["2"], ["1"])
            assert status["NSpid"][-1] == "1"
            assert len(status["NSpid"]) >= 3  # ours, the zygote's, its own
            users.add(status["Uid"][0])
            for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
                theirs, ours = (os.stat(f"/proc/{process}/ns/{kind}").st_ino for process in (pid, "self"))
                assert theirs != ours, kind
    if os.geteuid() == 0:  # as root, it is a user that nobody else has; cold, two sandboxes have two
        assert len(users) == (1 if sandbox.warm else 2)
        assert "0" not in users
        assert min(map(int, users)) >= 0x7000_0000
    else:
        assert users == {str(os.getuid())}
