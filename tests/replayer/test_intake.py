"""Which plays a worker takes: together they are the plays of one process, with the same numbers."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Output, Prompt, Session, Turn
from agentx.replayer.arrivals import RateRule
from agentx.replayer.intake import Intake
from agentx.replayer.moves import Rules
from agentx.replayer.split import Part


def named(name: str, turns: int = 1) -> Session:
    return Session(name, tuple(Turn(at, 0, Prompt(()), 1, Output(1)) for at in range(turns)))


def plays(intake: Intake, most: int = 1000) -> list[tuple[int, str, int]]:
    taken = iter(intake.take, None)
    return [(each.serial, each.session.id, each.play) for each in islice(taken, most)]


def arrivals(intake: Intake) -> list[tuple[float, int, str]]:
    found = []
    while (at := intake.expected()) is not None:
        taken = intake.arrived()
        found.append((at, taken.serial, taken.session.id))
    return found


@given(sessions=st.integers(1, 7), lanes=st.integers(1, 9), workers=st.integers(1, 9), most=st.integers(0, 40))
def test_together_they_are_the_plays_of_one_process(sessions, lanes, workers, most):
    workers = min(workers, lanes)
    rules = Rules(lanes=lanes, plays=most)

    def source():
        return cycle([named(f"s{number}") for number in range(sessions)])

    alone = plays(Intake(source(), rules, Part()))
    parts = [plays(Intake(source(), rules, Part(index, workers))) for index in range(workers)]
    assert sorted(play for part in parts for play in part) == alone
    assert alone == [(number, f"s{number % sessions}", number // sessions) for number in range(most)]


@pytest.mark.parametrize("kind", ["constant", "poisson"])
def test_arrivals_are_dealt_out_and_not_drawn_anew(kind):
    rules = Rules(lanes=None, rate=RateRule(kind, 2.0, seed=5), plays=20)

    def source():
        return iter([named(f"s{number}") for number in range(20)])

    alone = arrivals(Intake(source(), rules, Part()))
    parts = [arrivals(Intake(source(), rules, Part(index, 3))) for index in range(3)]
    assert sorted(one for part in parts for one in part) == alone
    assert [len(part) for part in parts] == [7, 7, 6]


def test_sessions_without_turns_are_counted_and_have_no_number():
    intake = Intake(iter([named("a", 0), named("b"), named("c", 0), named("d")]), Rules(), Part())
    assert plays(intake) == [(0, "b", 0), (1, "d", 0)]
    assert intake.empty == 2


def test_an_arrival_that_nobody_expected_is_a_bug():
    with pytest.raises(RuntimeError, match="expected"):
        Intake(iter([]), Rules(), Part()).arrived()
