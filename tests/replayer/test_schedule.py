"""The schedule by tables and in virtual time; then properties of random sessions."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.core import Gap, Output, Prompt, Session, Turn
from agentx.replayer.arrivals import RateRule
from agentx.replayer.moves import Cancel, Cut, Done, Ended, Key, Rules, StartRule, Wait
from agentx.replayer.schedule import Schedule, always_send
from tests.driving import World


def turn(index, *after, gap=0.0, out=10):
    return Turn(index, 0, Prompt(()), 100, Output(out), after=after, gap=Gap("tool", gap))


def session(id, *turns):
    return Session(id, tuple(turns))


def chain(id, *gaps):
    """One thread: each turn waits for the one before it, and for its gap."""
    return session(id, *(turn(i, *([i - 1] if i else []), gap=gap) for i, gap in enumerate(gaps)))


def world(
    *sessions,
    fate=always_send,
    takes=lambda send: send.tokens / 10 if send.tokens == 90 else 1.0,
    fails=lambda send: False,
    **rules,
):
    return World(Schedule(iter(sessions), Rules(**rules), fate), takes, fails).run()


CASES = [
    # One thread: each turn after the end of the one before it (1 s each) and its gap; the first gap does not count.
    ([chain("a", 9, 2, 0)], {}, [(0, "a", 0), (3, "a", 1), (4, "a", 2)]),
    # A scale changes the gaps, not the turns.
    ([chain("a", 9, 2, 4)], {"scale": 0.5}, [(0, "a", 0), (2, "a", 1), (5, "a", 2)]),
    # One lane: the next session begins when the whole of the first has ended.
    ([chain("a", 0, 0), chain("b", 0)], {}, [(0, "a", 0), (1, "a", 1), (2, "b", 0)]),
    # Two lanes: both at once; the third session takes the lane that is free first.
    (
        [chain("a", 0, 5), chain("b", 0), chain("c", 0)],
        {"lanes": 2},
        [(0, "a", 0), (0, "b", 0), (1, "c", 0), (6, "a", 1)],
    ),
    # A subagent's turns (1, 2) beside the main thread (3): turn 4 waits for both, its gap from the later end.
    (
        [session("a", turn(0), turn(1, 0), turn(2, 1), turn(3, 0), turn(4, 2, 3, gap=1))],
        {},
        [(0, "a", 0), (1, "a", 1), (1, "a", 3), (2, "a", 2), (4, "a", 4)],
    ),
    # The lane waits for a subagent that outlives its parent.
    (
        [session("a", turn(0), turn(1, 0), turn(2, 1, gap=7)), chain("b", 0)],
        {},
        [(0, "a", 0), (1, "a", 1), (9, "a", 2), (10, "b", 0)],
    ),
    # Another turn that waits for nothing: its gap counts from the start of the play.
    ([session("a", turn(0), turn(1, gap=5))], {}, [(0, "a", 0), (5, "a", 1)]),
    # Idle cap: 100 s of idleness become 3, and all timers of the tree move by as much (turn 2 was due at 111).
    (
        [session("a", turn(0), turn(1, 0, gap=100), turn(2, 0, gap=110))],
        {"tree_idle_cap": 3.0},
        [(0, "a", 0), (4, "a", 1), (8, "a", 2)],
    ),
    # The cap never clips a gap beside a working thread: turn 1's gap of 2 runs while turn 2 works for 1 s twice.
    (
        [session("a", turn(0), turn(1, 0, gap=2), turn(2, 0), turn(3, 2))],
        {"tree_idle_cap": 0.5},
        [(0, "a", 0), (1, "a", 2), (2, "a", 3), (3, "a", 1)],
    ),
    # The cap is of one tree: another lane's work does not count as its own.
    (
        [chain("a", 0, 100), chain("b", 0, 0, 0, 0, 0)],
        {"lanes": 2, "tree_idle_cap": 3.0},
        [(0, "a", 0), (0, "b", 0), (1, "b", 1), (2, "b", 2), (3, "b", 3), (4, "b", 4), (4, "a", 1)],
    ),
    # System cap: nothing at all in flight for 2 s: all timers of both trees move by as much (b's from 31 to 3 + 20).
    (
        [chain("a", 0, 10), chain("b", 0, 30)],
        {"lanes": 2, "system_idle_cap": 2.0},
        [(0, "a", 0), (0, "b", 0), (3, "a", 1), (6, "b", 1)],
    ),
    # It does not count while anything works: a's turn runs until 10, and b keeps its gap of 8.
    (
        [session("a", turn(0, out=90)), chain("b", 0, 8)],
        {"lanes": 2, "system_idle_cap": 2.0},
        [(0, "a", 0), (0, "b", 0), (9, "b", 1)],
    ),
    # Both caps: the tree's own is shorter for a, the system's moves b.
    (
        [chain("a", 0, 50), chain("b", 0, 50)],
        {"lanes": 2, "tree_idle_cap": 3.0, "system_idle_cap": 100.0},
        [(0, "a", 0), (0, "b", 0), (4, "a", 1), (4, "b", 1)],
    ),
    # Open loop: a session every 2 s, whatever the others do (a's first turn takes 9 s).
    (
        [session("a", turn(0, out=90), turn(1, 0)), chain("b", 0, 3), chain("c", 0)],
        {"lanes": None, "rate": RateRule("constant", 0.5)},
        [(0, "a", 0), (2, "b", 0), (4, "c", 0), (6, "b", 1), (9, "a", 1)],
    ),
    # With one request in flight at most: what is due waits for room, first due first.
    (
        [session("a", turn(0, out=90), turn(1, 0)), chain("b", 0, 3), chain("c", 0)],
        {"lanes": None, "rate": RateRule("constant", 0.5), "requests": 1},
        [(0, "a", 0), (9, "b", 0), (10, "c", 0), (11, "a", 1), (13, "b", 1)],
    ),
    # Two requests in flight and nothing else said: the pause of one session lets the next begin.
    (
        [chain("a", 0, 5), chain("b", 0, 5), chain("c", 0, 0), chain("d", 0), chain("e", 0)],
        {"lanes": None, "requests": 2},
        [
            *[(0, "a", 0), (0, "b", 0), (1, "c", 0), (1, "d", 0), (2, "c", 1), (2, "e", 0)],
            *[(6, "a", 1), (6, "b", 1)],
        ],
    ),
    # Three lanes, two requests: the third one's turn waits, and keeps its place.
    (
        [chain("a", 0, 0), chain("b", 0), chain("c", 0)],
        {"lanes": 3, "requests": 2},
        [(0, "a", 0), (0, "b", 0), (1, "c", 0), (1, "a", 1)],
    ),
    # So many turns of each lane: a goes on to its second session for the third turn, b never ends its session.
    (
        [chain("a", 0, 0), chain("b", 0, 0, 0, 0), chain("c", 0, 0)],
        {"lanes": 2, "turns": 3},
        [(0, "a", 0), (0, "b", 0), (1, "a", 1), (1, "b", 1), (2, "b", 2), (2, "c", 0)],
    ),
    # A fixed number of sessions.
    ([chain("a", 0), chain("b", 0), chain("c", 0)], {"plays": 2}, [(0, "a", 0), (1, "b", 0)]),
    # A session without turns is passed over.
    ([session("a"), chain("b", 0)], {}, [(0, "b", 0)]),
    # A fixed time: what is due after 3 s is not sent.
    ([chain("a", 0, 0, 0, 0, 0)], {"seconds": 2.5}, [(0, "a", 0), (1, "a", 1), (2, "a", 2)]),
]


@pytest.mark.parametrize(("sessions", "rules", "sends"), CASES)
def test_when_turns_are_sent(sessions, rules, sends):
    assert sorted(world(*sessions, **rules).when) == sorted(sends)


def test_due_is_the_plan_and_lateness_does_not_change_it():
    schedule = Schedule(iter([chain("a", 0, 2)]), Rules())
    (first,) = schedule.next(10.0)
    assert (first.due, first.moved) == (10.0, 0.0)
    schedule.feed(11.0, Ended(first.key))
    assert schedule.next(11.0) == Wait(13.0)
    (second,) = schedule.next(13.7)  # the driver is late
    assert second.due == 13.0


def test_an_event_counts_from_its_own_time_not_from_when_it_was_heard():
    schedule = Schedule(iter([chain("a", 0, 2)]), Rules())
    (first,) = schedule.next(0.0)
    assert schedule.next(5.0) == Wait(None)
    schedule.feed(4.0, Ended(first.key))
    assert schedule.next(5.0) == Wait(6.0)


def test_a_moved_turn_says_by_how_much():
    run = world(chain("a", 0, 100, 1), tree_idle_cap=3.0)
    assert [(send.due, send.moved) for _, send in run.sends] == [(0, 0), (4, 97), (6, 0)]
    (play,) = run.schedule.take_finished()
    assert play.extra == {"moved": 97}


@pytest.mark.parametrize(
    ("policy", "sent", "outcome"),
    [
        ("end_session", [("a", 0), ("a", 1), ("b", 0)], "failed"),  # the failed one, and then the next session
        ("continue", [("a", 0), ("a", 1), ("a", 2), ("b", 0)], "done"),
        ("stop", [("a", 0), ("a", 1)], "failed"),
    ],
)
def test_what_a_failed_turn_does(policy, sent, outcome):
    fails = lambda send: (send.session.id, send.key.turn) == ("a", 1)  # noqa: E731
    run = world(chain("a", 0, 0, 0), chain("b", 0), fails=fails, on_failure=policy)
    assert [(name, index) for _, name, index in run.when] == sent
    assert run.outcomes[0] == ("a", outcome)
    assert (run.schedule.stopped is not None) is (policy == "stop")


def test_a_failed_turn_lets_a_running_sibling_end():
    tree = session("a", turn(0), turn(1, 0), turn(2, 0), turn(3, 2))
    run = world(tree, takes=lambda send: 5.0 if send.key.turn == 2 else 1.0, fails=lambda send: send.key.turn == 1)
    (play,) = run.schedule.take_finished()
    assert (play.outcome, play.sent, play.completed, play.ended) == ("failed", 3, 2, 6.0)


def test_after_the_measured_time_what_is_in_flight_may_drain_and_is_then_cut():
    slow = {"a": 4.0, "b": 30.0}
    sessions = iter([chain("a", 0, 0), chain("b", 0), chain("c", 0)])
    schedule = Schedule(sessions, Rules(lanes=3, seconds=3.0, drain=10.0))
    run = World(schedule, lambda send: slow.get(send.session.id, 1.0)).run()
    assert [key.serial for key in run.cuts] == [1]  # a's first turn ended at 4, b's would have at 30
    assert run.now == 13.0
    plays = {play.session: play for play in run.schedule.take_finished()}
    assert {name: play.outcome for name, play in plays.items()} == {"a": "cut", "b": "cut", "c": "done"}
    assert (plays["a"].sent, plays["a"].completed, plays["b"].completed) == (1, 1, 0)


def test_a_stop_cuts_at_once():
    schedule = Schedule(iter([chain("a", 0), chain("b", 0)]), Rules())
    (send,) = schedule.next(0.0)
    schedule.stop(0.5, "interrupted")
    assert schedule.next(0.5) == Cancel((send.key,))
    assert schedule.next(0.5) == Wait(None)  # until the driver has given it up
    schedule.feed(0.6, Cut(send.key))
    assert schedule.next(0.6) == Done()
    assert [play.outcome for play in schedule.take_finished()] == ["cut"]


FATES = [
    # Dropped: its end is when it was due, and the others go on.
    ("drop", [(0, "a", 0), (3, "a", 2), (4, "b", 0)], "done"),
    # The session ends there.
    ("end", [(0, "a", 0), (2, "b", 0)], "failed"),
    # The run ends there.
    ("stop", [(0, "a", 0)], "failed"),
]


@pytest.mark.parametrize(("fate", "sends", "outcome"), FATES)
def test_turns_that_are_not_sent(fate, sends, outcome):
    judge = lambda session, index: fate if (session.id, index) == ("a", 1) else "send"  # noqa: E731
    run = world(chain("a", 0, 1, 1), chain("b", 0), fate=judge)
    assert run.when == sends
    assert run.outcomes[0] == ("a", outcome)


def test_playing_a_session_again_numbers_its_plays():
    def forever():
        while True:
            yield from (chain("a", 0), chain("b", 0))

    run = World(Schedule(forever(), Rules(plays=5))).run()
    assert [(send.session.id, send.play) for _, send in run.sends] == [
        ("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2),
    ]  # fmt: skip


def test_sessions_are_read_as_lanes_become_free():
    read = []

    def lazily():
        for name in "abcdef":
            read.append(name)
            yield chain(name, 0)

    schedule = Schedule(lazily(), Rules(lanes=2))
    schedule.next(0.0)
    assert read == ["a", "b"]


def test_turns_that_are_due_and_not_sent_when_the_run_ends_are_counted():
    sessions = (chain(f"s{i}", 0, 0.5, 0.5) for i in range(3))
    run = World(Schedule(sessions, Rules(lanes=3, requests=1, seconds=1.5, drain=0.5)), lambda send: 10.0).run()
    plays = {play.session: play for play in run.schedule.take_finished()}
    assert {name: play.extra.get("overdue", 0) for name, play in plays.items()} == {"s0": 0, "s1": 1, "s2": 1}
    assert plays["s0"].sent == 1


def test_many_sessions_are_cheap():
    """Steps, not seconds: the number of wakes that are kept stays near the number of live plays."""
    sessions = (chain(f"s{i}", 0, 0.5, 0.5) for i in range(2000))
    schedule = Schedule(sessions, Rules(lanes=500, tree_idle_cap=10.0))
    run = World(schedule, lambda send: 1.0 + (send.key.serial % 7) / 7)
    run.schedule.check_integrity = lambda: None  # O(live): once at the end is enough here
    run.run()
    assert len(run.sends) == 6000
    assert len(schedule._wakes) <= 4 * 500


@st.composite
def trees(draw, name):
    """A random session: turns that wait for some of the earlier ones, gaps of whole quarters of a second."""
    turns = []
    for index in range(draw(st.integers(0, 8))):
        after = draw(st.lists(st.integers(0, index - 1), unique=True, max_size=3)) if index else []
        turns.append(turn(index, *sorted(after), gap=draw(st.integers(0, 40)) / 4))
    return session(name, *turns)


@st.composite
def runs(draw):
    sessions = [draw(trees(f"s{number}")) for number in range(draw(st.integers(0, 6)))]
    rules = Rules(
        lanes=draw(st.integers(1, 4)),
        scale=draw(st.sampled_from([0.0, 0.25, 1.0, 3.0])),
        tree_idle_cap=draw(st.sampled_from([None, 0.0, 1.0, 5.0])),
        plays=draw(st.sampled_from([None, 1, 3])),
        seconds=draw(st.sampled_from([None, 0.0, 4.0, 20.0])),
        system_idle_cap=draw(st.sampled_from([None, None, 0.0, 1.0])),
        turns=draw(st.sampled_from([None, None, 1, 4])),
        drain=draw(st.sampled_from([0.0, 1.0, math.inf])),
        on_failure=draw(st.sampled_from(["end_session", "continue", "stop"])),
    )
    seed = draw(st.integers(0, 1 << 30))
    return sessions, rules, seed


def play(sessions, rules, seed):
    pick = lambda send, of: (hash((send.key.serial, send.key.turn, seed)) >> 3) % of  # noqa: E731
    return World(
        Schedule(iter(sessions), rules),
        lambda send: pick(send, 13) / 4,
        lambda send: pick(send, 17) == 0,
    ).run()


@given(runs())
@settings(max_examples=300, deadline=None)
def test_rules_that_hold_for_every_run(case):
    sessions, rules, seed = case
    run = play(sessions, rules, seed)
    keys = [send.key for _, send in run.sends]
    assert len(keys) == len(set(keys))  # at most once
    assert run.most <= rules.lanes
    started = {}
    for at, send in run.sends:
        own = send.session.turns[send.key.turn]
        started.setdefault(send.key.serial, at if send.key.turn == 0 else send.due)
        assert at >= send.due
        for earlier in own.after:
            end = run.ends.get(Key(send.key.serial, earlier))
            assert end is not None  # nothing is sent before what it waits for has ended
            assert at >= end
            assert send.due + send.moved >= end + own.gap.seconds * rules.scale - 1e-9
        assert send.moved == 0 or rules.tree_idle_cap is not None or rules.system_idle_cap is not None
    plays = run.schedule.take_finished()
    assert len(plays) == run.schedule._books["plays"]
    assert sum(p.sent for p in plays) == len(keys)
    failed = sum(run.fails(send) and send.key in run.ends for _, send in run.sends)
    assert sum(p.completed for p in plays) == len(keys) - failed - len(run.cuts)
    if rules.seconds is None and rules.turns is None and rules.on_failure == "continue":
        assert all(p.outcome == "done" and p.sent == p.turns for p in plays)


LOOPS = [
    {"lanes": None, "requests": 1},
    {"lanes": None, "requests": 3},
    {"lanes": None, "rate": RateRule("poisson", 2.0)},
    {"lanes": None, "rate": RateRule("constant", 50.0), "requests": 2},
    {"lanes": 3, "requests": 2},
]


@given(runs(), st.sampled_from(LOOPS))
@settings(max_examples=300, deadline=None)
def test_rules_that_hold_for_every_kind_of_load(case, loop):
    sessions, rules, seed = case
    run = play(sessions, dataclasses.replace(rules, turns=None, **loop), seed)
    flying, keys = [], [send.key for _, send in run.sends]
    for at, send in run.sends:
        flying = [end for end in flying if end > at]
        flying.append(run.ends.get(send.key, math.inf))
        assert len(flying) <= loop.get("requests", math.inf)
    plays = run.schedule.take_finished()
    assert sum(each.sent for each in plays) == len(run.sends) == len(set(keys))
    assert all(at >= send.due for at, send in run.sends)
    if rules.seconds is None and rules.on_failure == "continue":
        assert len(plays) == len([one for one in sessions if one.turns][: rules.plays])
        assert all(each.outcome == "done" and each.sent == each.turns for each in plays)
    live = [(each.lane, each.started, each.ended) for each in plays]
    assert not any(a[0] == b[0] and a is not b and a[1] < b[1] < a[2] for a in live for b in live)


def test_lag_counts_from_the_arrival():
    run = world(chain("a", 0), chain("b", 0), lanes=None, rate=RateRule("constant", 4.0), requests=1)
    assert [(at, send.due) for at, send in run.sends] == [(0.0, 0.0), (1.0, 0.25)]


@given(runs())
@settings(max_examples=100, deadline=None)
def test_the_same_inputs_give_the_same_order(case):
    one, two = play(*case), play(*case)
    assert [(at, send.key, send.due) for at, send in one.sends] == [(at, s.key, s.due) for at, s in two.sends]


@given(
    runs(),
    st.sampled_from([None, StartRule("time", 0.0, 1.0), StartRule("turns", 0.3, 0.9)]),
    st.integers(0, 4),
    st.sampled_from(["spread", "burst"]),
)
@settings(max_examples=200, deadline=None)
def test_rules_that_hold_for_runs_that_begin_in_the_middle(case, start, warmup, phase):
    sessions, rules, seed = case
    run = play(sessions, dataclasses.replace(rules, start=start, warmup=warmup, phase=phase), seed)
    keys = [send.key for _, send in run.sends]
    assert len(keys) == len(set(keys))
    phases = [send.phase for _, send in run.sends]
    assert phases == sorted(phases, reverse=True)  # what warms comes before what counts
    turns = Counter(send.lane for _, send in run.sends if send.phase == "measure")
    assert all(count <= (rules.turns or count) for count in turns.values())
    plays = run.schedule.take_finished()
    assert sum(each.sent for each in plays) == len(keys)
    for at, send in run.sends:
        assert at >= send.due
        for earlier in send.session.turns[send.key.turn].after:
            sent = Key(send.key.serial, earlier) in run.ends
            assert not sent or at >= run.ends[Key(send.key.serial, earlier)]
    if rules.seconds is None and rules.turns is None and rules.on_failure == "continue":
        assert all(each.outcome == "done" for each in plays)
        assert all(each.sent + each.extra.get("skipped", 0) == each.turns for each in plays)


def test_what_the_cap_held_back_is_told_and_what_was_late_otherwise_is_not():
    schedule = Schedule(iter([chain("a", 0), chain("b", 0)]), Rules(lanes=2, requests=1))
    (first,) = schedule.next(0.5)
    assert first.held == 0.0
    schedule.feed(4.0, Ended(first.key))
    (second,) = schedule.next(4.25)  # the driver was a quarter of a second late
    assert (second.due, second.held) == (0.5, 3.5)
