"""Other people's texts in our messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.refusals import Refused


def test_one_line() -> None:
    assert one_line(" a\n\nb\x1b[0m\u2028c ") == "a b?[0m c"
    assert one_line("x" * 900, 10) == "x" * 9 + "…"


@given(st.text())
def test_what_a_refusal_quotes_stays_in_its_line(text: str) -> None:
    said = str(Refused(f"bad_arguments: {text}: no"))
    assert len(said.splitlines()) == 1
    assert said.isprintable()
