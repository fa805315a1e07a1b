"""What a search reads, and which value it tries next, as a function of what is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.errors import BadInput
from agentx.replayer.search import DOUBLINGS, Bracket, Goal, bracket, goal_of, next_value, out_of_order
from agentx.replayer.slo import Objective

TTFT = Objective("ttft_p95", 5.0)


def test_what_is_read():
    assert goal_of("rate: ttft_p95 <= 5s") == Goal("rate", (TTFT,))
    assert goal_of("sessions 1..64: ttft_p95=5s, goodput >= 95%") == Goal(
        "sessions", (TTFT, Objective("goodput", 0.95)), 1.0, 64.0
    )
    assert goal_of(" rate 0.5..8 by 10%:ttft_p95<=5s") == Goal("rate", (TTFT,), 0.5, 8.0, 0.1)
    assert goal_of("requests by 0.2: ttft_p95 <= 5s").key == "load.requests"


WRONG = [
    # what is written, what the one line says
    ("rate", "should say what is searched and on which conditions (such as 'rate: ttft_p95 <= 5s'"),
    ("rate:", "no condition"),
    ("rat: ttft_p95 <= 5s", "rat cannot be searched (did you mean 'rate'?)"),
    ("target.cache.pool: reuse >= 50%", "cannot be searched (there are rate, sessions, requests)"),
    ("rate: ttft <= 5s", "ttft is of one turn, and a run has many (ttft_p95, for example)"),
    ("rate: ttft_p95 >= 5s", "ttft_p95 is good where it is <= a limit"),
    ("rate: ttft_p95 <= 5", "ttft_p95: a duration needs a unit"),
    ("rate: ttft_p59 <= 5s", "did you mean 'ttft_p99'?"),
    ("rate: ttft_p95 < 5s", "ttft_p95 < 5s is no objective"),
    ("rate: ttft_p95 <= 5s,", "nothing is no objective"),
    ("rate 8..1: ttft_p95 <= 5s", "8 is not below 1"),
    ("rate 1..x: ttft_p95 <= 5s", "x should be a number above 0"),
    ("rate 0..2: ttft_p95 <= 5s", "0 should be a number above 0"),
    ("rate 1..inf: ttft_p95 <= 5s", "inf should be a number above 0"),
    ("sessions 1.5..4: ttft_p95 <= 5s", "1.5 should be a whole number above 0"),
    ("rate by 0%: ttft_p95 <= 5s", "by 0% should be a share"),
    ("rate by half: ttft_p95 <= 5s", "by half should be a share"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_mistakes_are_one_line(text, says):
    with pytest.raises(BadInput) as caught:
        goal_of(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--find ")


def searched(goal, start, limit):
    """All values that are tried where everything up to `limit` is good."""
    good = {}
    while (value := next_value(goal, start, good)) is not None:
        assert value not in good, "tried twice"
        good[value] = value <= limit
    return good


TRIED = [
    # goal, start, limit -> the values in order, between which the limit lies
    ("rate", 4, 3.37, [4, 2, 2.83, 3.36, 3.67, 3.51], (3.36, 3.51)),
    ("sessions", 4, 6.2, [4, 8, 6, 7], (6, 7)),
    ("sessions", 1, 0, [1], (None, 1)),  # fewer than one session are none
    ("sessions 2..40", 4, 99, [4, 8, 16, 32, 40], (40, None)),
    ("sessions 2..40", 4, 1, [4, 2], (None, 2)),
    ("sessions 2..40", 100, 99, [40], (40, None)),
    ("rate by 50%", 1, 1.2, [1, 2, 1.41], (1, 1.41)),
]


@pytest.mark.parametrize(("text", "start", "limit", "values", "between"), TRIED)
def test_what_is_tried(text, start, limit, values, between):
    good = searched(goal_of(f"{text}: ttft_p95 <= 5s"), start, limit)
    assert list(good) == values
    assert bracket(good) == between


def test_it_ends_where_nothing_or_everything_is_good():
    goal = goal_of("rate: ttft_p95 <= 5s")
    assert len(searched(goal, 2.0, 0)) == DOUBLINGS + 1
    assert bracket(searched(goal, 2.0, 1e9)).good == pytest.approx(2.0 * 2**DOUBLINGS, rel=0.01)


@given(
    st.sampled_from(["rate", "sessions", "requests", "rate by 0.1%"]),
    st.floats(0.01, 500),
    st.floats(0.001, 1e5),
)
def test_the_limit_is_between_the_ends_and_few_are_tried(text, start, limit):
    goal = goal_of(f"{text}: ttft_p95 <= 5s")
    good = searched(goal, start, limit)
    found = bracket(good)
    assert len(good) <= DOUBLINGS + 16
    assert found.good is None or found.good <= limit
    assert found.bad is None or found.bad > limit
    if None not in found and not goal.whole and goal.within >= 0.05:
        assert found.bad / found.good <= 1.06


def test_points_that_are_out_of_order_give_the_lower_answer():
    good = {1.0: True, 2.0: False, 4.0: True, 8.0: False}
    assert bracket(good) == Bracket(1.0, 2.0)
    assert out_of_order(good) == [4.0]
    assert out_of_order({1.0: True, 2.0: False}) == []
    assert next_value(goal_of("rate: ttft_p95 <= 5s"), 4.0, good) == 1.41


def test_points_of_another_search_are_known():
    goal = goal_of("rate: ttft_p95 <= 5s")
    assert next_value(goal, 64.0, {1.0: True, 1.03: False}) is None
