from __future__ import annotations

import pytest

from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_figures import measured
from agentx.reporter.compare_pair import pair_of

TRACE = {"trace": {"name": "t", "sha256": "aa"}}


@pytest.fixture
def one(attempt, play, run):
    """A measured run of turns {turn: seconds to the first token}; every reply is two tokens a second apart."""

    def make(turns, settings=TRACE, **other):
        made = [
            attempt("a", turn, sent=10.0 * turn, chunks=[(ttft, 1), (ttft + 1, 1)], **other)
            for turn, ttft in turns.items()
        ]
        return measured(run(made, [play("a", turns=len(made))], settings=settings))

    return make


def row(pair, name):
    return next(row for row in pair.rows if row.name == name)


def test_the_same_turns_beside_all(one):
    # A answers 0, 1, 2; B 1, 2, 3, twice as fast on turn 1, as fast on turn 2, and turn 3 is slow
    pair = pair_of(Side("A", (one({0: 1.0, 1: 2.0, 2: 4.0}),)), Side("B", (one({1: 1.0, 2: 4.0, 3: 9.0}),)))
    found = row(pair, "ttft_mean_seconds")
    assert found.all.ratio.ratio == pytest.approx((14 / 3) / (7 / 3))
    assert found.same.ratio.ratio == pytest.approx(2.5 / 3)
    assert (found.turns, pair.same_turns, pair.paired) == (2, 2, True)
    ratios = pair.turn_ratios["ttft"]
    assert (ratios.ratios.minimum, ratios.ratios.maximum, ratios.shorter) == (0.5, 1.0, 0.5)
    # the same turns' output: 4 tokens from 10 s to 25 s in both
    assert row(pair, "output_tokens_per_second").same.a == (4 / 15,)
    assert row(pair, "emitted_output_tokens_per_second").same is None
    assert pair.basis == "one pair, 1 session: no interval"


def test_a_figure_counts_the_turns_that_have_it_in_every_run(one):
    quick = one({1: 1.0, 2: 4.0}, told=1)  # one token told: no TPOT
    pair = pair_of(Side("A", (one({1: 1.0, 2: 4.0}),)), Side("B", (quick,)))
    assert row(pair, "tpot_p50_seconds").same is None
    assert row(pair, "ttft_p50_seconds").turns == 2


def test_repeats(one):
    a = Side("A", tuple(one({0: 1.0 + 0.1 * n, 1: 2.0}) for n in range(3)))
    b = Side("B", tuple(one({0: 2.0 + 0.1 * n, 1: 4.0, 2: 1.0}) for n in range(3)))
    pair = pair_of(a, b)
    assert pair.basis == "3 and 3 runs: 95 % t-intervals between runs"
    found = row(pair, "ttft_mean_seconds").same
    assert found.a == pytest.approx((1.5, 1.55, 1.6))
    assert found.ratio.low < found.ratio.ratio < found.ratio.high
    assert pair_of(a, Side("B", b.runs[:2])).basis == "3 and 2 runs: no interval, which takes 3 of each side"
    alike = pair_of(Side("A", (a.runs[0],) * 3), Side("B", (b.runs[0],) * 3))
    assert "equal to the last digit" in alike.basis


@pytest.mark.parametrize("other", [{"trace": {"sha256": "bb"}}, {"trace": {"name": "t"}}, {"plan": {}}])
def test_without_a_common_trace_the_distributions_are_compared(one, other):
    pair = pair_of(Side("A", (one({0: 1.0, 1: 2.0}),)), Side("B", (one({0: 3.0, 1: 4.0}, settings=other),)))
    assert (pair.paired, pair.same_turns, pair.turn_ratios) == (False, 0, {})
    assert row(pair, "ttft_p50_seconds").same is None
    assert pair.distances["ttft"] == 1.0
    assert "traces" in [caveat.kind for caveat in pair.breaking]


def test_two_runs_without_a_trace_are_not_paired(one):
    pair = pair_of(Side("A", (one({0: 1.0}, settings={}),)), Side("B", (one({0: 1.0}, settings={}),)))
    assert not pair.paired


def test_nothing_answered_is_no_crash(run):
    empty = measured(run())
    pair = pair_of(Side("A", (empty,)), Side("B", (empty,)))
    assert [row.all.ratio.ratio for row in pair.rows] == [None] * len(pair.rows)
    assert pair.turn_ratios == pair.distances == {}
