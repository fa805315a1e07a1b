from __future__ import annotations

import math
import random
import re
from pathlib import Path
from statistics import fmean, median

import pytest

from agentx.reporter.compare_statistics import difference, estimate, student_quantile, typical

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


@pytest.mark.parametrize(
    ("p", "freedom", "want"),
    [  # printed tables of Student's t
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 4, 2.7764),
        (0.975, 10, 2.2281),
        (0.975, 30, 2.0423),
        (0.95, 3, 2.3534),
        (0.995, 5, 4.0321),
        (0.975, 1e6, 1.95997),  # the normal's
    ],
)
def test_student_quantile(p, freedom, want):
    assert student_quantile(p, freedom) == pytest.approx(want, rel=2e-5)


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [
        ([2.0], [1.0], 0.5),
        ([1.0, 4.0], [4.0, 4.0], 2.0),  # geometric means 2 and 4
        ([0.0], [1.0], None),  # a ratio to nothing
        ([1.0], [0.0], None),
        ([None], [1.0], None),
        ([1.0, None], [1.0, 1.0], None),  # one run does not tell
        ([], [1.0], None),
    ],
)
def test_ratio(a, b, ratio):
    found = estimate(a, b)
    assert found.ratio == (None if ratio is None else pytest.approx(ratio))
    assert (found.low, found.high) == (None, None)  # fewer than three runs of a side


def test_the_interval_by_hand():
    a, b = [1.0, math.e, math.e**2], [math.e, math.e**2, math.e**3]
    # means of logarithms 1 and 2, variance 1 each, so error sqrt(2/3) with 4 degrees: reach 2.7764 x 0.8165
    found = estimate(a, b)
    assert found.ratio == pytest.approx(math.e)
    assert math.log(found.high) == pytest.approx(1 + 2.77645 * math.sqrt(2 / 3), rel=1e-5)
    assert math.log(found.low) == pytest.approx(1 - 2.77645 * math.sqrt(2 / 3), rel=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        # means 2 and 12, variance 1 each: as above
        ([1, 2, 3], [11, 12, 13], (10 - 2.77645 * math.sqrt(2 / 3), 10 + 2.77645 * math.sqrt(2 / 3))),
        ([1, 2, 3], [0, 0, 0], (-2 - 4.30265 / math.sqrt(3), -2 + 4.30265 / math.sqrt(3))),  # one spread: 2 degrees
        ([1, 2], [11, 12, 13], None),  # two runs of a side
        ([5, 5, 5], [7, 7, 7], None),  # no spread was seen
        ([1, 2, None], [11, 12, 13], None),  # a run does not tell
        ([], [], None),
    ],
)
def test_the_interval_of_a_difference(a, b, want):
    found = difference(a, b)
    assert found == (None if want is None else pytest.approx(want, rel=1e-4))


def test_repeats_without_any_spread_give_none():
    assert estimate([2.0] * 3, [1.0] * 3) == estimate([2.0], [1.0])


@pytest.mark.parametrize("runs", [4, 6])
@pytest.mark.parametrize("figure", [fmean, median])
def test_intervals_hold_the_truth_as_often_as_they_say(runs, figure):
    """A/A: runs of 20 turns with a shared factor of the run; 1,500 comparisons, so the share is known to 0.6 %."""
    rng = random.Random(f"{runs}/{figure.__name__}")

    def run():
        factor = math.exp(rng.gauss(0, 0.1))
        return figure([factor * rng.lognormvariate(0, 0.8) for _ in range(20)])

    held = 0
    for _ in range(1500):
        found = estimate([run() for _ in range(runs)], [run() for _ in range(runs)])
        held += found.low <= 1 <= found.high
    assert 0.93 <= held / 1500 <= 0.97


def test_a_planted_effect_is_found():
    """20 % over runs that spread by 5 %, six a side: the power is above 0.9; of 5 % it is below a half."""
    rng = random.Random(1)

    def side(factor):
        return [factor * math.exp(rng.gauss(0, 0.05)) for _ in range(6)]

    def power(factor):
        found = [estimate(side(1.0), side(factor)) for _ in range(400)]
        return sum(one.low > 1 for one in found) / 400

    assert power(1.2) > 0.9
    assert 0.1 < power(1.05) < 0.5


POWER = re.compile(r"^ *\| (\d) \|((?: \d\.\d\d \|){6})$", re.MULTILINE)


@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_the_power_is_as_the_reference_says(row):
    """400 comparisons of each: a share of them is known to 0.025, so that three times it is allowed."""
    runs, cells = POWER.findall(REFERENCE.read_text())[row]
    rng = random.Random(row)
    effects = [(effect, spread) for effect in (1.05, 1.2) for spread in (0.02, 0.05, 0.1)]
    for (effect, spread), told in zip(effects, cells.replace("|", " ").split(), strict=True):

        def side(factor, spread=spread):
            return [factor * math.exp(rng.gauss(0, spread)) for _ in range(int(runs))]

        found = [estimate(side(1.0), side(effect)) for _ in range(400)]
        assert sum(one.low > 1 for one in found) / 400 == pytest.approx(float(told), abs=0.075)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 9), (2, 9), (9, 1), (2, 2)])
def test_fewer_than_three_runs_of_a_side_never_have_an_interval(a, b):
    rng = random.Random(2)
    found = estimate([rng.random() + 1 for _ in range(a)], [rng.random() + 1 for _ in range(b)])
    assert found.ratio is not None
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize(
    ("values", "want"),
    [([], None), ([3.0], 3.0), ([1.0, 4.0], 2.0), ([0.0, 4.0], 2.0), ([1.0, None], None)],
)
def test_typical(values, want):
    assert typical(values) == (None if want is None else pytest.approx(want))
