from __future__ import annotations

from agentx.reporter.client import Adjustments, Client, adjustments_of, client_of
from agentx.reporter.reporting import report


def test_adjustments_are_summed(attempt, play, run):
    made = run(
        [attempt("a", extra={"moved": 2.5}), attempt("b", extra={"moved": 4.0, "reconnects": 1}), attempt("c")],
        [play("a", extra={"dropped": 2, "moved": 2.5}), play("b", extra={"moved": 4.0})],
        end={"outcome": "done", "dropped_sessions": 3},
    )
    assert adjustments_of(made) == Adjustments(2, 3, 2, 6.5, 1)


def test_nothing_was_adjusted(attempt, run):
    assert adjustments_of(run([attempt()], end=None)) == Adjustments(0, 0, 0, 0.0, 0)


def test_the_clients_own_times(run):
    lag = {"samples": 9, "mean": 0.001, "p99": 0.06, "max": 0.07}
    made = run(end={"outcome": "done", "loop_lag": lag, "cpu_seconds": 1.5})
    assert client_of(made) == Client(0.001, 0.06, 0.07, 1.5)
    assert "loop_lag" in {one.kind for one in report(made).findings}


def test_a_short_or_killed_run_does_not_tell(run):
    assert client_of(run(end=None)) == Client(None, None, None, None)
    made = run(end={"outcome": "done", "loop_lag": {"samples": 0, "mean": None, "p99": None, "max": None}})
    assert client_of(made) == Client(None, None, None, None)
