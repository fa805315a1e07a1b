"""The order in which a trace's prompts are sent: hand-written schedules."""

from __future__ import annotations

from dataclasses import replace

from making import linear

from agentx.core import Gap, Observed, Session
from agentx.reporter.interleaving import interleaved


def order(*made: Session, at_once: int | None = None) -> str:
    return " ".join(f"{step.session.id}{step.turn}{'.' * step.last}" for step in interleaved(made, at_once))


def paused(name: str, seconds: float, turns: int = 3, **more: object) -> Session:
    """Calls take 2.1 s (5 tokens), and so many seconds lie between them."""
    made = linear(turns, id=name, **more)
    return replace(
        made, turns=tuple(replace(turn, gap=Gap("tool", seconds)) if turn.index else turn for turn in made.turns)
    )


def test_one_lane_plays_one_session_after_another() -> None:
    assert order(paused("a", 1), paused("b", 1), at_once=1) == "a0 a1 a2. b0 b1 b2."


def test_lanes_go_side_by_side_and_the_quicker_one_takes_the_next_session() -> None:
    """a: 0, 3.1, 6.2; b: 0, 12.1; a's lane is free at 8.3: c then, and 9.4 + ... ."""
    assert order(paused("a", 1), paused("b", 10, 2), paused("c", 1), at_once=2) == "a0 b0 a1 a2. c0 c1 b1. c2."


def test_sessions_begin_when_they_arrive() -> None:
    sessions = paused("a", 10, 2, arrival=0.0), paused("b", 1, 2, arrival=5.0), paused("c", 1, 1, arrival=50.0)
    assert order(*sessions) == "a0 b0 b1. a1. c0."
    assert order(*sessions, at_once=1) == "a0 a1. b0 b1. c0."  # when it is asked for, arrivals are not looked at


def test_recorded_times_come_before_gaps() -> None:
    """Both have all times recorded: b's calls lie within a's pause."""
    turns = [
        tuple(replace(turn, observed=Observed(start=at)) for turn, at in zip(linear(2).turns, times, strict=True))
        for times in ((0.0, 60.0), (5.0, 9.0))
    ]
    a, b = (replace(linear(2, id=name), turns=made) for name, made in zip("ab", turns, strict=True))
    assert order(a, b, at_once=2) == "a0 b0 b1. a1."


def test_sessions_that_are_empty_or_out_of_order_do_no_harm() -> None:
    assert order(linear(0), paused("b", 1, 1), at_once=3) == "b0."
    late_first = paused("a", 1, 1, arrival=9.0), paused("b", 1, 1, arrival=1.0)
    assert sorted(order(*late_first).split()) == ["a0.", "b0."]
    assert order() == ""
