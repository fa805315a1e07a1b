"""Whether a server kept up: plays made by hand, and a queue of known rate."""

from __future__ import annotations

import random

import pytest

from agentx.reporter.saturation import saturation


def queue(rate, service, count=200, seed=1):
    """(arrival, end) at one server that takes `service` seconds for each, Poisson arrivals."""
    draw, free, at = random.Random(seed), 0.0, 0.0
    for _ in range(count):
        at += draw.expovariate(rate)
        free = max(free, at) + service
        yield at, free


@pytest.fixture
def told(attempt, play, run):
    """What is said of sessions of one turn each, by (arrival, end)."""

    def tell(times, outcome="done"):
        listed = list(enumerate(times))
        plays = [play(f"s{n}", started=start, ended=end, outcome=outcome) for n, (start, end) in listed]
        return saturation(run([attempt(f"s{n}", sent=start, end=end) for n, (start, end) in listed], plays))

    return tell


@pytest.mark.parametrize("seed", range(8))
def test_a_queue_below_and_above_its_rate(told, seed):
    assert told(queue(0.5, 1.0, seed=seed)) == "below"
    assert told(queue(2.0, 1.0, seed=seed)) == "saturated"


def test_what_cannot_be_told(told):
    assert told(queue(0.5, 1.0, count=19)) == "unknown"  # too few
    assert told((float(n), n + 30.0) for n in range(40)) == "unknown"  # each takes three quarters of the arrivals
    assert told((0.0, 1.0) for _ in range(40)) == "unknown"  # all at once
    assert told(((float(n), n + 0.1) for n in range(40)), "failed") == "unknown"
    assert told((float(n), n + 1.0) for n in range(40)) == "below"
