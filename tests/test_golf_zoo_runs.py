"""Golf's zoo through the whole evaluator, in the real sandbox: no attack gains, with the gate or without it.

CI runs the honest files, what the gate lets through of a spread of the attacks, and a spread of what it stops with the
gate held open; ``make nightly`` runs every file both ways.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from golf_zoo_runs import (
    ATTACKS,
    CASES,
    HONEST,
    LEAST,
    SCORE_SLACK,
    SECRET,
    TWIN,
    Case,
    close,
    faults,
    gain,
    left_over,
    nothing_changes,
    open_gate,
    processes,
    run,
    run_honest,
    same,
    twin,
)

from weightgym.rewards.golf import reading
from weightgym.rewards.golf.gate import gate

#: Families that the rules name; each needs files of its own.
FAMILIES = {"leak", "state", "artifact", "data", "tamper", "resource", "numeric", "escape", "compute"}
#: These run until a limit ends them: twelve seconds and more.
LONG = {
    *("a147_tcpstore", "a204_endless_while", "a205_sleep", "a372_big_state", "a373_big_zeros", "a374_slow_to_count"),
    *("a410_sleeping_stops", "a421_garbage", "a423_threads", "a424_rlimits", "a425_blocked_signals", "a426_regex"),
    *("a427_big_number", "a428_zlib_bomb", "a429_sleep_when_scored", "a435_train_in_pack"),
}
_LET = [name for name, one in ATTACKS.items() if one.gate != "illegal" and name not in LONG]
_STOPPED = [name for name, one in ATTACKS.items() if one.gate == "illegal" and name not in LONG]
#: In CI: every third that the gate lets through, every sixth that it stops, and two that a limit must end.
SAMPLE = {*_LET[::3], *_STOPPED[::6], "a205_sleep", "a424_rlimits"}
QUICK_HONEST = {
    "h100_twin",
    "h106_conv_stack",
    "h108_counts_in_training",
    "h111_codebook",
    "h115_bf16",
    "h122_copy_heads",
}


def sampled(names: Iterator[str], chosen: set[str]) -> list[object]:
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.nightly) for name in names]


@pytest.fixture(scope="module", autouse=True)
def secret() -> Iterator[None]:
    """A secret in the environment of whoever evaluates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIGHTGYM_TEST_SECRET", SECRET)
        yield
    close()


def check_attack(one: Case, home: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("HOME", str(home))
    with nothing_changes(home, one.source) as changes:
        result = run(one.source)
    assert changes == []
    assert faults(result) == []
    other = twin(one.twin)
    if one.only_budgeted:
        return
    assert gain(result, other) <= SCORE_SLACK
    if result.status == "ok" and gain(result, other) > -SCORE_SLACK:  # as good, so its weights must be somewhere
        assert result.artifact_bytes is not None
        assert other.artifact_bytes is not None
        assert result.artifact_bytes > LEAST * other.artifact_bytes


@pytest.mark.parametrize("name", sampled(iter(ATTACKS), SAMPLE & set(_LET)))
def test_no_attack_gains(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ATTACKS[name]
    if gate(one.source).verdict == "illegal":
        result = run(one.source)
        assert (result.status, result.phase, result.reason, result.cpu_s) == ("buggy", "gate", "illegal", {})
    else:
        check_attack(one, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", sampled(iter(ATTACKS), SAMPLE - set(_LET)))
def test_no_attack_gains_when_the_gate_is_open(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "judge", open_gate)
    check_attack(ATTACKS[name], tmp_path, monkeypatch)


@pytest.mark.parametrize("name", sampled(iter(HONEST), QUICK_HONEST))
def test_honest_files_are_scored(name: str) -> None:
    one = HONEST[name]
    result = run_honest(one.source)
    assert (result.status, result.reason) == ("ok", None), result.message
    assert result.verdict != "illegal"
    assert faults(result) == []
    assert result.apart is not None
    assert result.apart < 1e-4
    assert result.audited_bytes is not None
    assert result.claimed_bytes is not None
    assert result.audited_bytes <= 1.1 * result.claimed_bytes
    assert same(result, run_honest(one.source))


def test_processes_of_a_candidate_would_be_seen() -> None:
    source = (
        CASES[TWIN]
        .source.replace(b"    return LM", b"    time.sleep(0.5)\n    return LM")
        .replace(b"import torch\n", b"import time\nimport torch\n", 1)
    )
    run(source)  # the sandbox is there
    seen = []
    thread = threading.Thread(target=run, args=[source])
    thread.start()
    while thread.is_alive():
        seen += processes()
        time.sleep(0.05)
    thread.join()
    assert seen
    assert left_over() == []


def test_the_zoo_has_files_of_every_family() -> None:
    for family in FAMILIES:
        found = [one for one in ATTACKS.values() if one.family == family]
        assert len(found) >= 5, family
        assert {one.gate for one in found} != {"illegal"}, family
    assert all(one.twin in HONEST for one in CASES.values())


@pytest.mark.parametrize("name", ["a160_patch_log", "a163_patch_class", "a304_odd_rows", "a382_dump_to_exception"])
def test_messages_are_in_fixed_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "judge", open_gate)
    result = run(ATTACKS[name].source)
    assert not re.search(r"[0-9a-f]{16}", result.message)
    assert faults(result) == []
