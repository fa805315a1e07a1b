"""Where lanes begin: a session's own clock, what is over at a point of it, and how far the next turns are."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Gap, Observed, Output, Prompt, Session, Turn
from agentx.replayer.moves import StartRule
from agentx.replayer.starts import (
    CALL,
    PER_TOKEN,
    Position,
    equilibrium,
    last_of_live_threads,
    placed,
    share,
    span,
    start_of,
    starts_of,
)
from tests.making import sessions

TOOK = CALL + 10 * PER_TOKEN  # s, estimated for a reply of 10 tokens


def turn(index, *after, thread=0, gap=0.0, start=None):
    observed = None if start is None else Observed(start=start)
    return Turn(index, thread, Prompt(()), 100, Output(10), after, Gap("tool", gap), observed=observed)


CLOCKS = [
    # Without times: gaps, and an estimate of each call. The first turn's own gap does not count.
    ([turn(0, gap=50.0), turn(1, 0, gap=3.0)], [0, TOOK + 3]),
    # A turn waits for the latest of what it waits for.
    ([turn(0), turn(1, 0, gap=9.0), turn(2, 0), turn(3, 1, 2, gap=1.0)], [0, TOOK + 9, TOOK, 2 * TOOK + 10]),
    # Recorded times come first, and count from the first of them.
    ([turn(0, gap=1.0, start=100.0), turn(1, 0, gap=1.0, start=107.0)], [0, 7]),
    # One that is missing makes all of them estimates.
    ([turn(0, start=0.0), turn(1, 0, gap=1.0)], [0, TOOK + 1]),
    ([], []),
]


@pytest.mark.parametrize(("turns", "begun"), CLOCKS)
def test_a_session_has_a_clock_of_its_own(turns, begun):
    assert starts_of(Session("s", tuple(turns))) == pytest.approx(begun)


def at(session, share_, by="time"):
    return start_of(session, 0, StartRule(by, share_, share_))


CHAIN = Session("c", tuple(turn(i, *([i - 1] if i else []), start=10.0 * i) for i in range(4)))  # ends at 30 + TOOK
STARTS = [
    # share, by, turns before
    (0.0, "time", []),
    (0.5, "time", [0, 1]),  # at 16.1 s
    (0.999, "time", [0, 1, 2]),  # one is always left
    (0.0, "turns", []),
    (0.5, "turns", [0, 1]),
    (0.74, "turns", [0, 1]),
    (1.0, "turns", [0, 1, 2]),
]


@pytest.mark.parametrize(("share_", "by", "before"), STARTS)
def test_what_is_over_at_the_start(share_, by, before):
    assert sorted(at(CHAIN, share_, by).before) == before


def test_a_turn_that_is_in_flight_at_the_start_is_over_and_its_successors_are_not():
    tree = Session(
        "t",
        (turn(0, start=0.0), turn(1, 0, thread=1, start=4.0), turn(2, 0, start=50.0), turn(3, 1, thread=1, start=60.0)),
    )
    position = at(tree, 5.0 / span(tree))
    assert (sorted(position.before), position.at) == ([0, 1], pytest.approx(5.0))
    assert last_of_live_threads(tree, position) == [0, 1]  # both threads go on: 2 and 3 are next
    over = at(tree, 55.0 / span(tree))
    assert sorted(over.before) == [0, 1, 2]
    assert last_of_live_threads(tree, over) == [1]  # the main thread has ended


def test_the_start_hangs_on_seed_session_and_lane_alone():
    drawn = [start_of(CHAIN, lane, StartRule(most=0.9, seed=seed)).at for seed in range(20) for lane in range(20)]
    assert drawn == [
        start_of(CHAIN, lane, StartRule(most=0.9, seed=seed)).at for seed in range(20) for lane in range(20)
    ]
    assert len(set(drawn)) == 400
    within = [start_of(CHAIN, lane, StartRule(least=0.25, most=0.75)).at / span(CHAIN) for lane in range(400)]
    assert 0.25 <= min(within) < 0.27
    assert 0.73 < max(within) <= 0.75


@given(sessions(), st.sampled_from(["time", "turns", "equilibrium"]), st.floats(0, 1), st.integers(0, 3))
def test_rules_of_every_start(session, by, share_, lane):
    position = start_of(session, lane, StartRule(by, share_, share_))
    assert len(position.before) < len(session.turns) or not session.turns
    for index in position.before:  # what is over waited for nothing that is not
        assert position.before.issuperset(session.turns[index].after)
    for index in last_of_live_threads(session, position):
        assert index in position.before


PLACES = [
    # distances by play and turn, phase, where they come to lie
    ({0: {3: 5.0, 4: 9.0}, 1: {0: 2.0}}, "spread", {0: {3: 3.0, 4: 7.0}, 1: {0: 0.0}}),
    ({0: {3: 5.0, 4: 9.0}, 1: {0: 2.0}}, "burst", {0: {3: 0.0, 4: 4.0}, 1: {0: 0.0}}),
    ({0: {}, 1: {0: 2.0}}, "spread", {0: {}, 1: {0: 0.0}}),
    ({}, "burst", {}),
]


@pytest.mark.parametrize(("distances", "phase", "places"), PLACES)
def test_next_turns_lie_on_one_clock_or_all_at_once(distances, phase, places):
    assert placed(distances, phase) == places


def test_equilibrium_finds_sessions_as_often_as_they_are_long():
    long, short = (Session(name, (turn(0), turn(1, 0, gap=gap))) for name, gap in (("l", 1000.0), ("s", 1.0)))
    trace = [short, long] * 10
    found = Counter(place % 2 for seed in range(50) for place in equilibrium(trace, 8, seed))
    expected = span(long) / (span(long) + span(short))
    assert found[1] / sum(found.values()) == pytest.approx(expected, abs=0.03)
    assert len(set(equilibrium(trace, 8, 1))) == 8  # no session twice while there is another
    assert equilibrium(trace, 8, 1) == equilibrium(trace, 8, 1) != equilibrium(trace, 8, 2)
    assert equilibrium(trace, 3, 1, keep=lambda session: session.id == "s") != []
    assert all(place % 2 == 0 for place in equilibrium(trace, 3, 1, keep=lambda session: session.id == "s"))
    assert equilibrium([], 3, 1) == []


def test_a_share_is_even():
    drawn = [share("x", n) for n in range(2000)]
    assert all(0 <= each < 1 for each in drawn)
    assert sum(drawn) / 2000 == pytest.approx(0.5, abs=0.02)
    assert Position(frozenset(), 0.0) == at(CHAIN, 0.0)
