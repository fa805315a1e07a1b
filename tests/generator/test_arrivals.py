"""Arrivals: rates, bursts, schedules; each time is the same in any slice of the sessions."""

from __future__ import annotations

import statistics
from itertools import islice, pairwise

import pytest
from specs import EVERYTHING, FIXED, made

from agentx.generator.arrivals import arrival_times
from agentx.generator.sessions import sessions
from agentx.generator.spec_events import Arrivals


def times(count: int, **keys: object) -> list[float]:
    return [time for time in islice(arrival_times(Arrivals.model_validate(keys), 0), count) if time is not None]


RATES = [
    # (keys, mean interval, coefficient of variation)
    ({"kind": "poisson", "per_second": 4.0}, 0.25, 1.0),
    ({"kind": "gamma", "per_second": 4.0, "cv": 2.0}, 0.25, 2.0),
    ({"kind": "gamma", "per_second": 0.5, "cv": 0.5}, 2.0, 0.5),
]


@pytest.mark.parametrize(("keys", "mean", "cv"), RATES)
def test_rate_and_variation(keys: dict[str, object], mean: float, cv: float) -> None:
    gaps = [late - early for early, late in pairwise([0.0, *times(2500, **keys)])]
    assert min(gaps) >= 0
    assert statistics.mean(gaps) == pytest.approx(mean, rel=0.12)
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(cv, rel=0.12)


def test_a_schedule_changes_the_rate_and_begins_again() -> None:
    steps = [{"lasts": "10s", "per_second": 20}, {"lasts": "10s", "per_second": 0}, {"lasts": "20s", "per_second": 5}]
    found = times(3000, kind="schedule", steps=steps)
    phases = [time % 40 for time in found]
    assert not [phase for phase in phases if 10 < phase < 20]
    busy = sum(phase <= 10 for phase in phases) / len(phases)
    assert busy == pytest.approx(200 / 300, abs=0.04)
    assert found[-1] == pytest.approx(3000 / 300 * 40, rel=0.1)


def test_nothing_is_said_without_arrivals() -> None:
    assert [session.arrival for session in sessions(made(FIXED), 0, 3)] == [None] * 3


def test_any_slice_has_the_times_of_the_whole() -> None:
    spec = made(EVERYTHING)
    whole = [session.arrival for session in sessions(spec, 5, 9)]
    assert whole == sorted(whole)
    assert [next(sessions(spec, 5, 1, first=number)).arrival for number in range(9)] == whole


def test_they_move_nothing_else() -> None:
    spec = made(FIXED, "turns.user={geometric: {mean: 4}}")
    timed = spec.model_copy(update={"arrivals": Arrivals(kind="poisson", per_second=1)})
    assert [len(each.turns) for each in sessions(spec, 0, 9)] == [len(each.turns) for each in sessions(timed, 0, 9)]
