"""``weightgym doctor`` says what works, what does not, and what to do."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from weightgym.cli.doctor import doctor
from weightgym.rewards.sandbox.support import find_sandbox


def test_here_it_works() -> None:
    result = CliRunner().invoke(doctor)
    assert result.exit_code == 0, result.output
    assert "Foreign code can be sandboxed here." in result.output
    for part in ("bubblewrap", "a phase", "seccomp", "read-only"):
        assert f"ok       {part}" in result.output
    result = CliRunner().invoke(doctor, ["--json"])
    found = json.loads(result.stdout)
    assert found["sandbox"] is True
    assert {row["state"] for row in found["findings"]} <= {"ok", "warning"}


def test_without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    result = CliRunner().invoke(doctor)
    find_sandbox.cache_clear()
    assert result.exit_code == 1
    assert "failed   bubblewrap" in result.output
    assert "apt install bubblewrap" in result.output
    assert "can't be sandboxed" in result.output


def test_a_bwrap_that_can_not_make_namespaces(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bin")
    fake = folder / "bwrap"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.9.0" && exit\n'
                    'echo "bwrap: No permissions to create new namespace" >&2; exit 1\n')  # fmt: skip
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    result = CliRunner().invoke(doctor)
    find_sandbox.cache_clear()
    assert result.exit_code == 1
    assert "No permissions to create new namespace" in result.output
    assert "--security-opt" in result.output
