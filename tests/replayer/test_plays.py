"""The state of one play: timers and books."""

from __future__ import annotations

from itertools import count

import pytest

from agentx.core import Gap, Output, Prompt, Session, Turn
from agentx.replayer.plays import LivePlay


def play(*turns: tuple[tuple[int, ...], float]) -> LivePlay:
    made = [Turn(at, 0, Prompt(()), 10, Output(1), after, Gap("tool", gap)) for at, (after, gap) in enumerate(turns)]
    return LivePlay(0, Session("s", tuple(made)), 0, 0, 10.0)


def test_timers_move_together_and_keep_their_order():
    live, order = play(((), 0), ((), 5.0), ((), 8.0), ((), 5.0)), count()
    live.begin(10.0, 1.0, order)
    assert live.pop().turn == 0
    live.bring_forward(11.0)
    timers = [live.pop() for _ in range(3)]
    assert [(timer.turn, timer.due, timer.moved) for timer in timers] == [
        (1, 11.0, 4.0),
        (3, 11.0, 4.0),
        (2, 14.0, 4.0),
    ]
    assert live.moved == 4.0


def test_a_turn_waits_for_the_last_of_several():
    live, order = play(((), 0), ((), 0), ((0, 1), 2.0)), count()
    live.release(0, 20.0, 1.0, order)
    assert live.first_due() is None
    live.release(1, 15.0, 1.0, order)  # heard of later, but ended earlier
    assert live.first_due() == 22.0


def test_books():
    live = play(((), 0), ((0,), 0))
    live.launch(0)
    live.check_integrity()
    live.land(0, 12.0)
    with pytest.raises(RuntimeError, match="lost a turn"):
        live.check_integrity()
    live.completed += 1
    live.check_integrity()
    record = live.record(13.0)
    assert (record.outcome, record.turns, record.sent, record.completed, record.started, record.ended) == (
        "cut", 2, 1, 1, 10.0, 13.0,
    )  # fmt: skip
    with pytest.raises(KeyError):
        live.land(0, 14.0)
