"""Pictures of any numbers and names come about, without a warning."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from scored_rows import ATTACK

from weightgym.trainers.rollout_pictures import component_svg, lengths_svg, tasks_svg

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=15, deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=6), st.text(), st.integers(0, 2**53))
def test_any_values_are_drawn(values: list[float], name: str, place: int) -> None:
    stretches = [(place, place, values), (place + 1, place + 2**50, values[:1]), (0, 0, [])]
    assert component_svg(name, values, stretches, "line")
    assert tasks_svg([(name, values), (f"${ATTACK}$\\frac", values)])


def test_values_a_bit_apart_none_and_all_the_same() -> None:
    assert component_svg("m", [0.5, math.nextafter(0.5, 1)], [], "line")
    assert component_svg("m", [], [], "line") is None
    assert component_svg("m", [0.0] * 50, [(0, 1, [0.0] * 50)], "line")


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**9), FLOATS), max_size=5))
def test_any_lengths_are_drawn(pairs: list[tuple[int, float]]) -> None:
    assert (lengths_svg(pairs, "tokens") is None) == (len(pairs) < 3)
