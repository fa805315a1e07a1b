from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.reporter.spread import PERCENTILES, percentile, rates, spread

values = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("ordered", "percent", "want"),
    [
        ([7.0], 99, 7.0),  # one value is every percentile
        ([1.0, 2.0], 50, 1.5),  # rank 0.5: halfway
        ([1.0, 2.0, 3.0, 4.0], 50, 2.5),  # rank 1.5
        ([1.0, 2.0, 3.0, 4.0, 5.0], 90, 4.6),  # rank 3.6: 4 + 0.6 * 1
        ([0.0, 10.0], 95, 9.5),  # rank 0.95
        ([0.0, 10.0, 20.0], 100, 20.0),  # the last rank has no right neighbour
        ([5.0, 5.0, 5.0], 5, 5.0),  # ties
    ],
)
def test_percentile_interpolates_between_ranks(ordered, percent, want):
    assert percentile(ordered, percent) == pytest.approx(want)


@given(values)
def test_percentiles_are_monotone_and_inside(found):
    one = spread(("a", value) for value in found)
    assert list(one.percentiles) == sorted(one.percentiles)
    assert one.minimum <= one.percentiles[0]
    assert one.percentiles[-1] <= one.maximum


@given(values)
def test_percentiles_are_numpys(found):
    one = spread(("a", value) for value in found)
    assert one.percentiles == pytest.approx(np.percentile(found, PERCENTILES), rel=1e-9, abs=1e-9)


def test_spread_counts_values_and_sessions():
    one = spread([("a", 1.0), ("a", 3.0), ("b", 5.0)])
    assert (one.n, one.sessions, one.mean, one.minimum, one.maximum) == (3, 2, 3.0, 1.0, 5.0)
    assert one.at(50) == 3.0


def test_no_values_are_no_spread():
    assert spread([]) is None
    assert rates(None) is None


def test_rates_are_one_over_the_same_percentile():
    # seconds per token 0.01 (fast) and 0.03: p50 of the time is 0.02, so p50 of the rate is 50; p95 is the slow tail
    one = rates(spread([("a", 0.01), ("a", 0.03)]))
    assert one.at(50) == pytest.approx(50)
    assert one.at(95) == pytest.approx(1 / 0.029)
    assert one.mean == pytest.approx(50)  # 1 / mean of the times, not the mean of 100 and 33.3
    assert (one.n, one.sessions) == (2, 1)


def test_a_rate_over_no_time_is_unknown():
    one = rates(spread([("a", 0.0)]))
    assert one.at(50) is None
    assert one.mean is None
