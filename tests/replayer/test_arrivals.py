"""When sessions arrive: tables of times, rates that are kept, and draws that no other draw moves."""

from __future__ import annotations

import dataclasses

import pytest

from agentx.errors import BadInput
from agentx.replayer.arrivals import Arrivals, RateRule, ramp_time
from tests.making import linear

SESSION = linear(1)


def times(rule: RateRule, count: int) -> list[float]:
    arrivals = Arrivals(rule)
    return [arrivals.next(SESSION, again=False) for _ in range(count)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RateRule("constant", 2.0), [0.0, 0.5, 1.0, 1.5]),
        (RateRule("ramp", 1.0, to=1.0, over=9.0), [0.0, 1.0, 2.0, 3.0]),  # no ramp at all
        (RateRule("ramp", 1.0, to=3.0, over=2.0), [0.0, 3**0.5 - 1, 5**0.5 - 1, 7**0.5 - 1]),
        (RateRule("ramp", 1.0, to=3.0, over=1.0), [0.0, (5**0.5 - 1) / 2, 1.0, 4 / 3]),  # and stays at 3
    ],
)
def test_tables(rule, expected):
    assert times(rule, 4) == pytest.approx(expected)


@pytest.mark.parametrize(("first", "to", "over"), [(1.0, 3.0, 10.0), (3.0, 1.0, 10.0), (2.0, 2.0, 5.0)])
def test_a_ramp_holds_the_integral_of_its_rate(first, to, over):
    rule = RateRule("ramp", first, to=to, over=over)
    for number in (0.5, 5.0, 12.0, 50.0):
        at = ramp_time(rule, number)
        inside = min(at, over)
        come = first * inside + (to - first) * inside**2 / (2 * over) + max(0.0, at - over) * to
        assert come == pytest.approx(number)


@pytest.mark.parametrize(("kind", "cv"), [("poisson", 1.0), ("gamma", 0.5), ("gamma", 1.0), ("gamma", 3.0)])
def test_drawn_gaps_have_the_rate_and_the_variation(kind, cv):
    found = times(RateRule(kind, 4.0, cv=cv, seed=3), 4000)
    gaps = [after - before for before, after in zip([0.0, *found], found, strict=False)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.25, rel=4 * cv / 4000**0.5)
    assert deviation / mean == pytest.approx(cv, rel=0.15)


def test_the_seed_draws_and_the_rate_only_scales():
    one, other, twice = (times(RateRule("poisson", rate, seed=seed), 9) for rate, seed in ((1, 1), (1, 2), (2, 1)))
    assert one != other
    assert twice == pytest.approx([at / 2 for at in one])


def recorded(*arrivals):
    found, seen = Arrivals(RateRule("recorded")), set()
    out = []
    for number, arrival in arrivals:
        out.append(found.next(dataclasses.replace(SESSION, id=f"s{number}", arrival=arrival), number in seen))
        seen.add(number)
    return out


RECORDED = [
    # (session, arrival) in order of play -> seconds
    ([(0, 100.0), (1, 103.0), (2, 103.0)], [0.0, 3.0, 3.0]),
    ([(0, 100.0), (1, 104.0), (2, 106.0), (0, 100.0), (1, 104.0)], [0.0, 4.0, 6.0, 9.0, 13.0]),  # played again
    ([(0, 5.0), (0, 5.0), (0, 5.0)], [0.0, 0.0, 0.0]),  # one session has no gap
]


@pytest.mark.parametrize(("arrivals", "expected"), RECORDED)
def test_recorded_arrivals(arrivals, expected):
    assert recorded(*arrivals) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arrivals", "says"),
    [([(0, None)], "session 's0' has no arrival time"), ([(0, 5.0), (1, 3.0)], "'s1' arrives before the one")],
)
def test_what_cannot_be_played_as_recorded(arrivals, says):
    with pytest.raises(BadInput, match=says):
        recorded(*arrivals)
