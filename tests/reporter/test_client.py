from __future__ import annotations

from dataclasses import replace

import pytest

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


HEALTHY = {
    "loop_lag": {"samples": 99, "mean": 0.001, "p99": 0.004, "max": 0.01},
    "loop_cpu": {"seconds": 10, "full": 0, "mean": 0.3, "busiest": 0.5},
    "gc": {"pauses": 1, "seconds": 0.002, "longest": 0.002},
    "files": {"most": 20, "limit": 1024},
    "cpu_seconds": 3.0,
    "cpu_wait": 0.02,
}


@pytest.mark.parametrize(
    ("changed", "late", "causes", "kinds"),
    [
        ({}, 0.01, (), set()),
        ({"loop_lag": {"p99": 0.08}}, 0.0, ("its event loop was 80 ms late (p99)",), {"loop_lag"}),
        ({}, 0.09, ("requests left 90 ms late (p95)",), {"client_lag"}),
        ({}, 0.6, ("requests left 600 ms late (p95)",), {"client_lag", "fell_behind"}),
        (  # a quarter of the seconds: worth a word
            {"loop_cpu": {"seconds": 8, "full": 2, "mean": 0.5, "busiest": 0.99}},
            0.0,
            ("its loop used all of a core in 25% of the seconds",),
            {"client_busy"},
        ),
        (  # most of them: not to be used
            {"loop_cpu": {"seconds": 8, "full": 6, "mean": 0.9, "busiest": 0.99}},
            0.0,
            ("its loop used all of a core in 75% of the seconds",),
            {"client_saturated"},
        ),
        ({"loop_cpu": {"seconds": 3, "full": 3, "mean": 0.9, "busiest": 0.99}}, 0.0, (), set()),  # too short to tell
    ],
)
def test_the_verdict_and_its_causes(attempt, run, changed, late, causes, kinds):
    sent = [attempt(turn=turn, due=1.0, sent=1.0 + late) for turn in range(5)]
    made = run(sent, end={"outcome": "done", **HEALTHY, **changed})
    found = report(made)
    client = found.metrics.client
    assert client.causes == causes
    assert client.bottleneck is bool(causes)
    own = {"loop_lag", "client_lag", "fell_behind", "client_busy", "client_saturated"}
    assert {one.kind for one in found.findings} & own == kinds
    assert any(one.invalidates for one in found.findings) is bool(kinds & {"fell_behind", "client_saturated"})
    assert ("WAS THE BOTTLENECK" in found.text()) is bool(causes)


def test_what_a_cap_on_requests_held_back_is_not_the_clients_lateness(attempt, run):
    sent = [attempt(turn=turn, due=1.0, sent=9.0, extra={"held": 7.99}) for turn in range(5)]
    found = report(run(sent, end={"outcome": "done", **HEALTHY}))
    assert found.metrics.client.bottleneck is False
    assert found.metrics.latency.lag.at(95) == 8.0
    assert not {"client_lag", "fell_behind"} & {one.kind for one in found.findings}


def test_of_several_workers_the_worst_is_told(attempt, run):
    made = run([attempt()], end={"outcome": "done"})
    late = {**HEALTHY, "loop_lag": {"p99": 0.2}, "loop_cpu": {"seconds": 9, "full": 9, "mean": 0.99, "busiest": 1.0}}
    found = client_of(replace(made, workers=(HEALTHY, None, late)), made.attempts)
    assert (found.workers, found.loop_lag_p99, found.cpu_seconds) == (3, 0.2, 6.0)
    assert (found.cpu_full, found.cpu_looked, found.files, found.files_limit) == (1.0, 9, 20, 1024)
    assert found.bottleneck


def test_nothing_known_is_no_verdict(attempt, run):
    found = report(run([attempt()], end=None))
    assert found.metrics.client.bottleneck is None
    assert "unknown, the run does not tell how its client was" in " ".join(found.text().split())


@pytest.mark.parametrize(
    ("waited", "says"), [(0.5, "Use more workers"), (4.0, "in 10 s the client waited 4.0 s for a CPU")]
)
def test_what_to_do_hangs_on_whose_fault_it_was(attempt, run, waited, says):
    sent = [attempt(turn=turn, due=1.0, sent=1.6) for turn in range(5)]
    found = report(run(sent, end={"outcome": "done", **HEALTHY, "cpu_wait": waited}))
    (behind,) = [one.text for one in found.findings if one.kind == "fell_behind"]
    assert says in behind
