"""The price at which two targets cost the same, by hand."""

from __future__ import annotations

import pytest

from agentx.reporter.compare import compare
from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_cost import break_evens
from agentx.reporter.compare_figures import measured


@pytest.fixture
def priced(attempt, play, run):
    """A window of an hour: one whole session of so many reply tokens, all in one turn."""

    def make(told, gpus=1, price=None, **other):
        target = {"gpus": gpus, "price": {"gpu_hour": price}}
        made = [attempt("a", 0, sent=1.0, cached=0, osl=told, told=told)]
        end = {"outcome": "done", "window": [0.0, 3600.0]}
        return run(made, [play("a", turns=1)], settings={"target": target}, end=end, **other)

    return make


def sides(a, b):
    return [tuple(measured(one) for one in side) for side in (a, b)]


def test_by_hand(priced):
    # 4 tokens in an hour of 2 GPUs, 6 in an hour of 1: per GPU-hour 2 and 6, so B may cost three times as much
    found, session = break_evens(*sides([priced(4, 2, 1.5)], [priced(6, 1, 2.0)]))
    assert found.prices.ratio == pytest.approx(3)
    assert found.dollars(found.prices.ratio) == pytest.approx(4.5)
    assert (found.baseline, found.other) == (1.5, 2.0)
    # one session each: in one GPU-hour instead of two
    assert session.prices.ratio == pytest.approx(2)


def test_one_pair_says_no_verdict(priced):
    found = compare([priced(4, 1, 1.0), priced(400, 1, 1.0)])
    text = " ".join(found.text().split())
    assert "An output token costs the same where a GPU-hour of B costs x100.0 of one of A: $100.0 against $1.00" in text
    assert "cheaper" not in text
    assert [one["verdict"] for one in found.document()["pairs"][0]["break_even"]] == [None, None]


@pytest.mark.parametrize(("price", "verdict"), [(1.0, "cheaper"), (9.0, "dearer"), (2.0, None), (None, None)])
def test_repeats_have_a_verdict_where_the_interval_leaves_the_price_out(priced, price, verdict):
    a = [priced(told, 1, 1.0) for told in (100, 101, 99)]
    b = [priced(told, 1, price) for told in (200, 202, 198)]
    found, _ = break_evens(*sides(a, b))
    assert found.prices.low < 2 < found.prices.high
    assert found.verdict == verdict


def test_what_is_not_known(priced):
    pair = sides([priced(4, None, 1.0)], [priced(6, 1, 1.0)])
    assert [one.prices.ratio for one in break_evens(*pair)] == [None, None]
    nothing = compare([priced(4), priced(6)])
    assert "Break-even" not in nothing.text()  # no price: the document alone has the ratio
    assert nothing.document()["pairs"][0]["break_even"][0]["price_ratio"] == pytest.approx(1.5)
    assert Side("A", pair[0]).runs[0].cost.missing is not None
