"""Charts as SVG: well-formed, self-contained, the same bytes, every value where it belongs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.plots import COLOURS, Axis, Panel, Series, places, scale, svg

SVG = "{http://www.w3.org/2000/svg}"
AXIS = Axis("pool", ("10", "20", "40"))


def chart(*series, axis=AXIS, label="reuse, %"):
    return svg("a <title> & more", axis, [Panel(label, series)])


def test_it_is_one_self_contained_document():
    text = chart(Series("a", (1.0, 2.0, 3.0)), Series("b & c", (3.0, None, 1.0)))
    root = ElementTree.fromstring(text)
    assert root.tag == SVG + "svg"
    words = [element.text for element in root.iter(SVG + "text")]
    assert {"a <title> & more", "reuse, %", "pool", "10", "40", "a", "b & c"} <= set(words)
    assert not re.search(r"href|url\(|<script|@import", text)
    assert text == chart(Series("a", (1.0, 2.0, 3.0)), Series("b & c", (3.0, None, 1.0)))


def test_points_lie_where_their_values_are():
    root = ElementTree.fromstring(chart(Series("a", (0.0, 50.0, 100.0))))
    circles = [(float(each.get("cx")), float(each.get("cy"))) for each in root.iter(SVG + "circle")]
    assert [x for x, _ in circles] == sorted(x for x, _ in circles)
    (_, low), (_, middle), (_, high) = circles
    assert low > middle > high  # y grows downward
    assert middle == pytest.approx((low + high) / 2, abs=0.1)


def test_one_series_needs_no_legend_and_a_gap_is_no_point():
    root = ElementTree.fromstring(chart(Series("alone", (1.0, None, 3.0))))
    assert "alone" not in [element.text for element in root.iter(SVG + "text")]
    assert len(list(root.iter(SVG + "circle"))) == 2


def test_nothing_known_is_said():
    assert ">unknown<" in chart(Series("a", (None, None, None)))
    assert "nothing" in svg("nothing", Axis("x", ()), [])


def test_more_series_than_colours_are_told_apart():
    text = chart(*(Series(f"s{n}", (float(n), 1.0, 2.0)) for n in range(2 * len(COLOURS))))
    lines = re.findall(r'<path d="M[^"]*" fill="none" (stroke=[^/]*)/>', text)
    assert len(set(lines)) == 2 * len(COLOURS)


def test_a_series_of_another_length_is_refused():
    with pytest.raises(ValueError, match="a has 2 values for 3 on the axis"):
        chart(Series("a", (1.0, 2.0)))


PLACES = [
    (("0", "5", "10"), [0, 0.5, 1]),  # by their numbers
    (("10", "5", "0"), [1, 0.5, 0]),  # in whatever order they were given
    (("1", "10", "100"), [0, 0.5, 1]),  # far apart: logarithmic
    (("lru", "lfu"), [0.25, 0.75]),  # words stand side by side
    (("1", "lfu"), [0.25, 0.75]),
    (("7",), [0.5]),
    (("nan", "1"), [0.25, 0.75]),
    (("-1", "100"), [0, 1]),
]


@pytest.mark.parametrize(("values", "where"), PLACES)
def test_places_on_the_axis(values, where):
    assert places(values) == pytest.approx(where)


SCALES = [
    ((0.0, 100.0), [0, 20, 40, 60, 80, 100]),
    ((3.0, 97.0), [0, 20, 40, 60, 80, 100]),  # begins at 0 when that is near
    ((96.0, 97.0), [96, 96.2, 96.4, 96.6, 96.8, 97]),  # and not when it is far
    ((5.0, 5.0), [2, 3, 4, 5, 6, 7, 8]),
    ((0.0, 0.0), [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ((0.0, 5e-324), [0, 0.2, 0.4, 0.6, 0.8, 1]),  # nothing to tell apart
]


@pytest.mark.parametrize(("values", "ticks"), SCALES)
def test_ticks_are_round(values, ticks):
    assert scale(values) == pytest.approx(ticks)


@given(st.lists(st.floats(-1e9, 1e9) | st.floats(0, 1e-6), min_size=1, max_size=5))
def test_ticks_hold_every_value(values):
    ticks = scale(values)
    slack = 1e-6 * max(abs(ticks[0]), abs(ticks[-1]))
    assert ticks[0] - slack <= min(values)
    assert max(values) <= ticks[-1] + slack
    assert 2 <= len(ticks) <= 12
