"""Warming up, in virtual time: which turns are sent first, in which phase, and when the run begins."""

from __future__ import annotations

import pytest

from agentx.core import Gap, Observed, Output, Prompt, Session, Turn
from agentx.replayer.moves import Rules, StartRule
from agentx.replayer.schedule import Schedule
from tests.driving import World


def turn(index, *after, thread=0, gap=5.0, start=None):
    observed = None if start is None else Observed(start=start)
    return Turn(index, thread, Prompt(()), 100, Output(10), after, Gap("tool", gap), observed=observed)


def chain(name, turns, gap=5.0):
    return Session(name, tuple(turn(i, *([i - 1] if i else []), gap=gap, start=10.0 * i) for i in range(turns)))


HALF = StartRule("turns", 0.5, 0.5)


def run(*sessions, takes=lambda send: 1.0, **rules):
    world = World(Schedule(iter(sessions), Rules(**rules)), takes).run()
    return world, [(at, send.session.id, send.key.turn, send.phase) for at, send in world.sends]


def test_a_lane_is_primed_sends_its_turns_without_pauses_and_goes_on_at_its_distance():
    world, sends = run(chain("a", 8), start=HALF, warmup=2, phase="burst")
    assert sends == [
        (0, "a", 3, "warmup"),  # primes: the last turn before the start
        (1, "a", 4, "warmup"),
        (2, "a", 5, "warmup"),
        (3, "a", 6, "measure"),  # the run begins at 2, with turn 5 in flight: its successor waits for it
        (9, "a", 7, "measure"),
    ]
    assert world.schedule.began == 2.0
    (play,) = world.schedule.take_finished()
    assert (play.outcome, play.sent, play.extra["skipped"]) == ("done", 5, 3)


def test_warm_replies_have_one_token_and_others_what_was_recorded():
    world, _ = run(chain("a", 4), warmup=2)
    assert [send.tokens for _, send in world.sends] == [1, 1, 10, 10]


def test_the_run_begins_when_the_last_lane_has_sent_its_last_turn():
    slow = lambda send: 4.0 if send.session.id == "b" else 1.0  # noqa: E731
    world, sends = run(chain("a", 9), chain("b", 9), lanes=2, warmup=2, seconds=30.0, takes=slow)
    assert world.schedule.began == 4.0  # b's second turn goes out, and is in flight: nothing has drained to idle
    assert [each for each in sends if each[3] == "warmup"] == [
        (0, "a", 0, "warmup"), (0, "b", 0, "warmup"), (1, "a", 1, "warmup"), (4, "b", 1, "warmup"),
    ]  # fmt: skip
    first = {name: at for at, name, _, phase in reversed(sends) if phase == "measure"}
    assert first == {"a": 4.0, "b": 8.0}  # a waited, b still hears of its turn 1
    assert max(at for at, *_ in sends) < 34.0  # 30 s from the beginning of the run


SPREAD = [
    # phase, when turn 2 of b and of a is sent: recorded at 17 and 20 s from where they began
    ("spread", 2.0, 4.0),  # b's turn 1 is in flight until 2, when the run begins at 1: a follows 3 s behind that
    ("burst", 2.0, 2.0),
]


@pytest.mark.parametrize(("phase", "b", "a"), SPREAD)
def test_spread_keeps_the_recorded_distances_between_lanes(phase, b, a):
    late = Session("b", tuple(turn(i, *([i - 1] if i else []), start=[0.0, 10.0, 17.0, 90.0][i]) for i in range(4)))
    _, sends = run(late, chain("a", 4), lanes=2, start=StartRule("time", 0.0, 0.0), warmup=2, phase=phase)
    assert [(at, name) for at, name, index, _ in sends if index == 2] == [(b, "b"), (a, "a")]


def test_a_session_that_ends_is_followed_by_the_next_which_begins_at_its_beginning():
    _, sends = run(chain("a", 4), chain("b", 3), start=HALF, warmup=4, phase="burst")
    assert [(name, index, phase) for _, name, index, phase in sends] == [
        ("a", 1, "warmup"), ("a", 2, "warmup"), ("a", 3, "warmup"), ("b", 0, "warmup"), ("b", 1, "warmup"),
        ("b", 2, "measure"),
    ]  # fmt: skip


def test_every_live_thread_is_primed_and_turns_follow_in_recorded_order():
    tree = Session(
        "t",
        (
            turn(0, start=0.0),
            turn(1, 0, thread=1, start=5.0),
            turn(2, 1, thread=1, start=30.0),
            turn(3, 0, start=20.0),
            turn(4, 2, 3, start=60.0),
        ),
    )
    _, sends = run(tree, start=StartRule("turns", 0.4, 0.4), warmup=1, phase="burst")
    assert [(index, phase) for _, _, index, phase in sends] == [
        (0, "warmup"), (1, "warmup"),  # of both threads
        (3, "warmup"),  # at 20 s, before turn 2 at 30 s
        (2, "measure"), (4, "measure"),
    ]  # fmt: skip


def test_a_background_thread_keeps_its_distance():
    tree = Session("t", (turn(0, start=0.0), turn(1, 0, thread=1, start=25.0), turn(2, 0, start=21.0)))
    _, sends = run(tree, start=StartRule("time", 0.7, 0.7))
    assert [(at, index) for at, _, index, _ in sends] == [(0, 2), (pytest.approx(4.0), 1)]


def test_a_trace_that_runs_out_is_warm():
    world, sends = run(chain("a", 2), warmup=9)
    assert [phase for *_, phase in sends] == ["warmup", "warmup"]
    assert [play.outcome for play in world.schedule.take_finished()] == ["done"]


def test_failures_while_warming_do_what_the_rules_say():
    schedule = Schedule(iter([chain("a", 6), chain("b", 6)]), Rules(warmup=3, on_failure="end_session"))
    world = World(schedule, lambda send: 1.0, lambda send: (send.session.id, send.key.turn) == ("a", 1)).run()
    assert [(send.session.id, send.key.turn) for _, send in world.sends if send.phase == "warmup"] == [
        ("a", 0), ("a", 1), ("b", 0),
    ]  # fmt: skip
    assert [play.outcome for play in schedule.take_finished()] == ["failed", "done"]


def test_turns_that_do_not_fit_are_passed_over_while_warming():
    fate = lambda session, index: "drop" if index in (1, 2) else "send"  # noqa: E731
    world = World(Schedule(iter([chain("a", 6)]), Rules(warmup=2), fate)).run()
    assert [(send.key.turn, send.phase) for _, send in world.sends] == [
        (0, "warmup"), (3, "warmup"), (4, "measure"), (5, "measure"),
    ]  # fmt: skip
