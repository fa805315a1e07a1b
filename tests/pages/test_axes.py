"""Places along an axis, and numbers as a person reads them."""

from __future__ import annotations

import pytest

from agentx.pages.axes import exact, linear, logarithmic, short

NUMBERS = [(0, "0"), (0.00001, "1.0e-05"), (0.0041234, "0.004123"), (87.5, "87.5"), (9999, "9999"), (12345, "12.35k"),
           (2_100_000, "2.1M"), (-8800, "-8800"), (3.2e9, "3.2G")]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_linear_axis_holds_its_values_and_begins_at_0() -> None:
    axis = linear("x", [3.0, 97.0])
    assert (axis.low, axis.high, axis.place(0.0), axis.place(axis.high)) == (0.0, 100.0, 0.0, 1.0)
    assert linear("x", [-5.0, 5.0]).low <= -5.0


def test_a_logarithmic_axis_is_even_in_ratios() -> None:
    axis = logarithmic("x", [0.02, 30.0, 0.0])
    assert (axis.low, axis.high) == (0.01, 100.0)
    assert axis.place(1.0) == pytest.approx(0.5)
    assert axis.place(0.0) == 0.0  # what is not positive lies at the edge
    assert logarithmic("x", []).high > logarithmic("x", []).low


def test_an_exact_axis_ends_where_it_is_told() -> None:
    axis = exact("s", 3.0, 17.0)
    assert (axis.place(3.0), axis.place(17.0), axis.place(99.0)) == (0.0, 1.0, 1.0)
    assert all(3.0 <= tick <= 17.0 for tick in axis.ticks)
    assert exact("s", 5.0, 5.0).high == 6.0  # no time passed
