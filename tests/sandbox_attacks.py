"""What the attack tests of the sandbox share."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from weightgym.rewards.sandbox import Phase, PhaseEnd, PhaseError, Sandbox, SandboxPolicy
from weightgym.rewards.sandbox.inputs import Sealed

RUNNER = Path(__file__).with_name("sandbox_runner.py")
SMALL = SandboxPolicy(
    cpu_seconds=1,
    wall_seconds=8,
    memory_bytes=256 << 20,
    tasks=16,
    file_bytes=4 << 20,
    tmpfs_bytes=8 << 20,
    output_bytes=4 << 20,
)


@pytest.fixture(name="sandbox", scope="module", params=["warm", "cold"])
def make_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SMALL, RUNNER, warm=request.param == "warm") as made:
        yield made


def inputs(source: str, more: Mapping[str, bytes | Sealed] | None = None) -> dict[str, bytes | Sealed]:
    """The inputs of a phase that runs the source."""
    return {"code": textwrap.dedent(source).encode(), **(more or {})}


def attack(sandbox: Sandbox, source: str, **more: bytes | Sealed) -> dict[str, str]:
    """Run the source in a phase of its own; what it reported. It must end well."""
    with sandbox.start("code", inputs(source, more)) as phase:
        report = phase.receive()
        phase.finish()
    return {name: value if isinstance(value, str) else str(value) for name, value in report.items()}


def code_of(sandbox: Sandbox, source: str, *, frames: int = 0) -> tuple[str, PhaseEnd]:
    """Run the source, whose phase must fail: with which code, and what it used."""
    with sandbox.start("code", inputs(source)) as phase:
        code = _failure(phase, frames)
    assert phase.end is not None
    assert phase.end.code == code, "the phase ended well" if code == "" else "two codes"
    return code, phase.end


def _failure(phase: Phase, frames: int) -> str:
    try:
        for _ in range(frames):
            phase.receive()
        phase.finish()
    except PhaseError as error:
        return error.code
    return ""


def processes_named(name: str) -> list[int]:
    """Living processes of that name on the whole machine."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            if f"({name})" in text and text.rpartition(")")[2].split()[0] not in "ZX":
                found.append(int(folder.name))
    return found


def wait_for(name: str, *, gone: bool) -> bool:
    """Wait (10 s at most) until processes of the name are there, or gone."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if bool(processes_named(name)) != gone:
            return True
        time.sleep(0.02)
    return False
