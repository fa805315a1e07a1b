from __future__ import annotations

import pytest

from agentx.reporter.halves import drifts, halves
from agentx.reporter.throughput import Window


def test_halves_by_hand(attempt, run):
    # window 0 ... 10. First half: one of 100 tokens, none cached, busy 2 s; second: 300 tokens, half cached, 2 + 2 s
    made = [
        attempt("a", 0, sent=0.0, prompt=100, cached=0),
        attempt("a", 1, sent=5.0, prompt=200, cached=100),
        attempt("b", 0, sent=8.0, prompt=400, cached=200),
        attempt("b", 1, sent=8.0, prompt=999, failed="http"),  # failed
        attempt("b", 2, sent=1.0, phase="warmup"),  # not measured
    ]
    first, second = halves(run(made), Window(0.0, 10.0, "plan"))
    assert (first.isl, first.in_flight, first.reuse) == (100, pytest.approx(2 / 5), 0.0)
    assert (second.isl, second.in_flight, second.reuse) == (300, pytest.approx(4 / 5), 0.5)
    # reuse began at 0: no ratio can say how it changed
    assert drifts((first, second)) == {"isl": pytest.approx(3), "in_flight": pytest.approx(2)}
    assert drifts((second, second)) == {}


def test_a_request_over_the_middle_counts_in_both(attempt, run):
    first, second = halves(run([attempt(sent=4.0)]), Window(0.0, 10.0, "plan"))
    assert first.in_flight == second.in_flight == pytest.approx(1 / 5)
    assert second.isl is None  # it was sent in the first


def test_no_window_no_halves(attempt, run):
    assert halves(run([attempt()]), None) is None
    assert halves(run([attempt()]), Window(1.0, 1.0, "plan")) is None
