"""The filter of system calls, run by a small interpreter of classic BPF, for both architectures."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from weightgym.rewards.sandbox.inside import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: clone, clone3, fcntl, ioctl, socket, socketpair, execve, ptrace, read, openat
NUMBERS = {
    "x86_64": (56, 435, 72, 16, 41, 53, 59, 101, 0, 257),
    "aarch64": (220, 435, 25, 29, 198, 199, 221, 117, 63, 56),
}
THREAD = 0x3D0F00  # what glibc's pthread_create passes


def verdict(program: bytes, audit: int, number: int, *arguments: int) -> int:
    data = struct.pack("<iIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator: int = 0
    at = 0
    while True:
        operation, yes, no, k = code[at]
        at += 1
        if operation == 0x06:
            return int(k)
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, k)
            continue
        test = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}
        at += yes if test[operation] else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_verdicts(machine: str) -> None:
    clone, clone3, fcntl, ioctl, socket, pair, execve, ptrace, read, openat = NUMBERS[machine]
    audit = AUDIT[machine]
    single = seccomp.program(machine)
    several = seccomp.program(machine, multiprocess=True)
    gpu = seccomp.program(machine, gpu=True)
    assert len(single) // 8 < 4096
    for program in (single, several, gpu):
        assert verdict(program, audit, read) == verdict(program, audit, openat) == ALLOW
        assert verdict(program, audit, clone, THREAD) == ALLOW
        assert verdict(program, audit, clone3) == ENOSYS
        assert verdict(program, audit, ptrace) == EPERM
        assert verdict(program, audit, 462) == verdict(program, audit, 9999) == ENOSYS
        assert verdict(program, AUDIT["aarch64" if machine == "x86_64" else "x86_64"], read) == KILL
        assert verdict(program, 0x40000003, read) == KILL  # 32 bits
        assert verdict(program, audit, 0x40000000 | read) == verdict(program, audit, 0xFFFFFFFF - 2**32) == KILL
        for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
            assert verdict(program, audit, clone, flag | THREAD) == EPERM
        assert verdict(program, audit, fcntl, 3, 1024) == EPERM
        assert verdict(program, audit, fcntl, 3, 3) == ALLOW
    assert verdict(single, audit, clone, 17) == EPERM
    assert verdict(several, audit, clone, 17) == ALLOW
    assert verdict(several, audit, clone, 17 | 0x8000) == EPERM
    assert (
        verdict(single, audit, execve) == verdict(single, audit, socket, 2) == verdict(single, audit, pair, 1) == EPERM
    )
    assert verdict(several, audit, execve) == ALLOW
    families = [family for family in range(64) if verdict(several, audit, socket, family) == ALLOW]
    assert families == [1, 2, 16]
    assert verdict(several, audit, socket, 16, 3, 0) == ALLOW
    assert all(verdict(several, audit, socket, 16, 3, protocol) == EPERM for protocol in range(1, 32))
    assert verdict(several, audit, socket, 2 | 2**32) == ALLOW  # the kernel reads 32 bits of it, too
    assert verdict(single, audit, ioctl, 0, 0x5412) == EPERM
    assert verdict(single, audit, ioctl, 0, 0x5401) == verdict(gpu, audit, ioctl, 0, 0xC020462A) == ALLOW


@pytest.mark.parametrize(
    ("column", "header", "pattern"),
    [
        (1, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+) (\d+)"),
        (2, "/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+) (\d+)"),
    ],
)
def test_numbers_are_the_kernels(column: int, header: str, pattern: str) -> None:
    if not Path(header).exists():
        pytest.skip(f"no {header} here")
    kernel = {name: int(number) for name, number in re.findall(pattern, Path(header).read_text())}
    kernel |= {"newfstatat": kernel.get("newfstatat", kernel.get("fstatat", -1))}
    for table in (seccomp._ALWAYS, seccomp._MULTIPROCESS, seccomp._GPU, seccomp._CLOSER):
        for name, number in seccomp._numbers(table, column).items():
            assert kernel[name] == number, name


def test_other_machines_are_refused() -> None:
    with pytest.raises(OSError, match="riscv64"):
        seccomp.program("riscv64")
