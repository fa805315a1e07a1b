"""Wakes: only the newest of each play counts, earliest first, ties in the order in which they were set."""

from __future__ import annotations

from itertools import count

import pytest
from making import linear

from agentx.replayer.plays import LivePlay
from agentx.replayer.wakes import Wakes


@pytest.fixture
def made():
    live = {serial: LivePlay(serial, linear(id=f"s{serial}"), 0, 0, 0.0) for serial in range(3)}
    return live, Wakes(live, count())


def test_the_earliest_comes_first_and_only_when_it_is_time(made):
    live, wakes = made
    for serial, at in ((0, 5.0), (1, 3.0), (2, 3.0)):
        wakes.set(live[serial], at)
    assert wakes.first() == 3.0
    assert wakes.pop(2.9) is None
    assert [wakes.pop(9.0) for _ in range(4)] == [live[1], live[2], live[0], None]
    assert wakes.first() is None


def test_a_later_word_replaces_an_earlier_one(made):
    live, wakes = made
    wakes.set(live[0], 1.0)
    wakes.set(live[0], 7.0)
    wakes.set(live[1], 2.0)
    wakes.set(live[1], None)
    assert wakes.first() == 7.0
    assert wakes.pop(9.0) is live[0]
    assert wakes.pop(9.0) is None


def test_a_play_that_is_over_has_none(made):
    live, wakes = made
    wakes.set(live[0], 1.0)
    del live[0]
    assert wakes.first() is None
    wakes.set(live[1], 1.0)
    wakes.clear()
    assert (wakes.first(), len(wakes)) == (None, 0)
