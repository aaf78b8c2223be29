"""The live view: it shows what is known, and whatever it gets, or whatever its terminal does, training goes on."""

from __future__ import annotations

import io
import math
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from run_folders import step_row

from weightgym.cli.live import LiveView, line, sparkline


def terminal(**options: Any) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=110, height=40, legacy_windows=False, **options)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def last_frame(console: Console) -> str:
    return written(console)[written(console).rindex("metric ") :]


def test_a_terminal_shows_values_and_trends() -> None:
    console = terminal(color_system=None)
    with LiveView(40, bounds={"rollout/truncated": 0.9}, console=console) as view:
        view.update({"step": 0.0, "eval/reward": 0.25, "eval/invalid": 0.5})
        for step in range(1, 31):
            view.update(step_row(step))
        view.note("sync took [bold]long[/bold]")
    frame = last_frame(console)
    assert "30/40" in written(console)
    assert "reward/mean" in frame
    assert "0.4 " in frame
    assert "▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████" in frame
    assert "step 0: reward 0.2500, 50% invalid" in frame
    assert "within the limits" in frame
    assert "sync took [bold]long[/bold]" in written(console)  # text, not markup


def test_a_resumed_run_does_not_start_at_zero() -> None:
    console = terminal()
    with LiveView(40, done=12, console=console):
        pass
    assert "12/40" in written(console)


def test_a_near_limit_is_said() -> None:
    console = terminal(color_system=None)
    with LiveView(40, bounds={"rollout/truncated": 0.9, "rollout/invalid": 1.0}, console=console) as view:
        view.update(step_row(1, rollout__truncated=0.6, rollout__invalid=0.9))
    assert "near a limit: rollout/truncated 0.6 of 0.9" in last_frame(console)
    assert "rollout/invalid 0.9 of 1" not in last_frame(console)  # a limit of 1 never stops a run


def test_elsewhere_it_is_one_line_a_step() -> None:
    console = Console(file=io.StringIO(), width=40)
    with LiveView(40, console=console) as view:
        view.update({"step": 0.0, "eval/reward": 0.25, "eval/invalid": 0.5})
        view.update(step_row(1))
    assert written(console).splitlines() == [
        "step 0: evaluation: reward 0.2500, 50% invalid, – faults",
        "step 1: reward 0.1100 (best 0.510), 5% invalid, 0% cut, 0% faults, 10% of groups without spread, "
        "log-probability gap 5.0e-07, – tokens a second, – + 1.8 s",
    ]


def test_missing_and_broken_metrics_are_dashes() -> None:
    console = terminal(color_system=None)
    with LiveView(40, console=console) as view:
        view.update(step_row(1, loss__kl=0.5))
        gone = step_row(2, rollout__invalid=math.nan)
        del gone["loss/kl"]
        view.update(gone)
    rows = {row.split()[0]: row.split()[1] for row in last_frame(console).splitlines() if "/" in row}
    assert rows["loss/kl"] == rows["rollout/invalid"] == "–"
    assert line({}).startswith("step –: reward – (best –), – invalid")


anything = st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.just(10**400))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from([*step_row(1), "eval/reward", "x"]), anything), max_size=4))
def test_whatever_comes_it_goes_on(rows: list[dict[str, Any]]) -> None:
    for console in (terminal(), Console(file=io.StringIO())):
        with LiveView(3, bounds={"rollout/invalid": 0.5}, console=console) as view:
            for row in rows:
                view.update(row)
            view.note("end")
        assert "end" in written(console)


def test_a_terminal_that_goes_away_stops_nothing(tmp_path: Path) -> None:
    console = terminal()
    with LiveView(40, console=console) as view:
        view.update(step_row(1))
        console.file.close()
        for step in (2, 3):
            view.update(step_row(step))
        view.note("nobody reads this")


def test_two_views_at_once_stop_nothing() -> None:
    """rich allows one live display a console: the second view is lost, the training is not."""
    console = terminal()
    with LiveView(40, console=console) as one, LiveView(40, console=console) as other:
        one.update(step_row(1))
        other.update(step_row(1))


def test_a_terminal_that_knows_ascii_only(tmp_path: Path) -> None:
    with (tmp_path / "tty").open("w", encoding="ascii") as file:
        console = Console(file=file, force_terminal=True, width=110, color_system=None, legacy_windows=False)
        with LiveView(40, console=console) as view:
            for step in range(1, 9):
                view.update(step_row(step))
            view.update(step_row(9, rollout__invalid=math.nan))
    text = (tmp_path / "tty").read_text("ascii")
    assert "_.-:=+*##" in text.replace(" ", "")
    assert "9/40" in text


@given(st.lists(st.floats(), max_size=40))
def test_a_trend_has_a_character_a_value(values: list[float]) -> None:
    finite = [value if math.isfinite(value) else math.nan for value in values]
    trend = sparkline(deque(finite))
    assert len(trend) == len(values)
    assert set(trend) <= set("▁▂▃▄▅▆▇█ ")
    known = [value for value in finite if not math.isnan(value)]
    if known and max(known) > min(known):
        assert trend[finite.index(max(known))] == "█"
        assert trend[finite.index(min(known))] == "▁"


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("TERM", name)
    console = terminal()
    with LiveView(40, console=console) as view:
        view.update(step_row(1))
    assert written(console).startswith("step 1: reward 0.1100")
