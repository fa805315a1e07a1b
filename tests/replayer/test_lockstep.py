"""Lockstep: another run's order, whatever the speed here; what never comes is left out, and nothing waits for ever."""

from __future__ import annotations

import dataclasses
import math
import zlib

import pytest
from driving import World
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Gap, Header
from agentx.errors import BadInput
from agentx.replayer.arrivals import RateRule
from agentx.replayer.lockstep import Course, LockstepSchedule, Place, course_of
from agentx.replayer.moves import Rules, StartRule
from agentx.replayer.run import replay
from agentx.replayer.schedule import Schedule
from agentx.replayer.simulate import simulate
from agentx.reporter.compare import compare
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter
from tests.making import linear


def sessions(count=6, turns=4, gap=1.0):
    made = []
    for number in range(count):
        one = linear(turns + number % 3, id=f"s{number}", fresh=40, reply=8)
        own = [
            dataclasses.replace(turn, gap=Gap("tool", gap * (1 + number % 2)) if turn.index else Gap())
            for turn in one.turns
        ]
        made.append(dataclasses.replace(one, turns=tuple(own), arrival=2.0 * number))
    return made


def drawn(*what):
    """0 ... 99, the same in every process."""
    return zlib.crc32(repr(what).encode()) % 100


def seconds(seed):
    """How long each turn takes: other times for another seed."""
    return lambda send: 0.2 + 0.09 * drawn(seed, send.session.key, send.key.turn)


def places(world, phase="measure"):
    sent = [send for _, send in world.sends if send.phase == phase]
    return tuple(Place(send.session.key, send.play, send.key.turn) for send in sent)


def course(world):
    return Course("other", "x", places(world), places(world, "warmup"))


RULES = [
    Rules(lanes=3),
    Rules(lanes=2, scale=0.0),
    Rules(lanes=3, plays=9),  # some are played again
    Rules(lanes=3, tree_idle_cap=0.5, system_idle_cap=0.2),
    Rules(lanes=None, requests=3),
    Rules(lanes=3, requests=2),
    Rules(lanes=None, rate=RateRule("poisson", 0.5)),
    Rules(lanes=3, start=StartRule("turns", 0.2, 0.7), warmup=2),
    Rules(lanes=3, start=StartRule("turns", 0.0, 0.3), warmup=1, plays=8),
    Rules(lanes=3, turns=5),
    Rules(lanes=3, seconds=12.0, drain=5.0),
]


def source(rules):
    listed = sessions()
    return iter(listed * 2 if rules.plays else listed)


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: repr(rules)[:60])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_the_other_runs(rules, seed):
    first = World(Schedule(source(rules), rules), seconds(seed)).run()
    slow = dataclasses.replace(rules, seconds=None, drain=math.inf)
    again = World(LockstepSchedule(source(rules), slow, course=course(first)), seconds(seed + 100)).run()
    assert places(again) == places(first)
    assert places(again, "warmup") == places(first, "warmup")
    assert again.schedule.left_out == 0


def test_without_it_speed_makes_another_order():
    runs = [World(Schedule(source(RULES[0]), RULES[0]), seconds(seed)).run() for seed in range(4)]
    assert len({places(run) for run in runs}) == 4


def test_dependencies_and_pauses_are_kept():
    rules = Rules(lanes=3)
    first = World(Schedule(iter(sessions()), rules), seconds(1)).run()
    again = World(LockstepSchedule(iter(sessions()), rules, course=course(first)), seconds(7)).run()
    sent = {(send.key.serial, send.key.turn): at for at, send in again.sends}
    for at, send in again.sends:
        for earlier in send.session.turns[send.key.turn].after:
            gap = send.session.turns[send.key.turn].gap.seconds
            assert at >= again.ends[send.key._replace(turn=earlier)] + gap - 1e-9
            assert sent[send.key.serial, earlier] < at


def test_a_session_that_fails_here_is_left_out():
    rules = Rules(lanes=3)
    first = World(Schedule(iter(sessions()), rules), seconds(1)).run()
    bad = lambda send: send.session.id == "s1" and send.key.turn == 1  # noqa: E731
    again = World(LockstepSchedule(iter(sessions()), rules, course=course(first)), seconds(7), bad).run()
    rest = tuple(place for place in places(first) if not ("s1" in place.session and place.turn > 1))
    assert places(again) == rest
    assert again.schedule.left_out == len(places(first)) - len(rest)


def test_what_the_other_run_did_not_send_is_not_sent():
    rules = Rules(lanes=2)
    whole = World(Schedule(iter(sessions()), rules), seconds(1)).run()
    listed = [place for place in places(whole) if not place.session.endswith("s3")]  # a session that it dropped
    listed = [place for place in listed if not (place.session.endswith("s0") and place.turn == 1)]  # a turn
    listed = [place for place in listed if not (place.session.endswith("s2") and place.turn > 1)]  # and one that failed
    again = World(LockstepSchedule(iter(sessions()), rules, course=Course("o", None, tuple(listed))), seconds(5)).run()
    assert places(again) == tuple(listed)
    assert dict(again.outcomes) == {"s0": "done", "s1": "done", "s2": "cut", "s4": "done", "s5": "done"}


def test_nothing_waits_for_what_cannot_come():
    rules = Rules(lanes=1)
    strange = (Place("nobody", 0, 0), Place("s1", 0, 0), Place("s0", 0, 3), Place("s0", 0, 0), Place("s0", 5, 0))
    run = World(LockstepSchedule(iter(sessions(2)), rules, course=Course("o", None, strange))).run()
    assert len(run.sends) + run.schedule.left_out == len(strange)


@given(st.data())
def test_any_order_ends_with_balanced_books(data):
    rules = data.draw(st.sampled_from(RULES))
    first = World(Schedule(source(rules), rules), seconds(data.draw(st.integers(0, 9)))).run()
    listed = data.draw(st.permutations(places(first)))
    kept = tuple(listed[: data.draw(st.integers(0, len(listed)))]) or places(first)[:1]
    fails = data.draw(st.sampled_from([0, 3, 10]))
    bad = lambda send: fails and drawn(send.session.key, send.key.turn) % fails == 1  # noqa: E731
    run = World(LockstepSchedule(source(rules), rules, course=Course("o", None, kept)), seconds(3), bad).run()
    assert set(places(run)) <= set(kept)
    assert run.schedule.left_out >= 0


@pytest.fixture
def write(tmp_path):
    def make(name, *made):
        with TraceWriter(tmp_path / name, Header(name="t", scope="scope")) as writer:
            for each in made:
                writer.session(each)
        return tmp_path / name

    return make


SETS = ["load.sessions=3", "gaps.scale=0.05"]


def follows(run, places):
    """Whether the turns were sent in this order; what is sent at one moment has none."""
    sent = {Place(one.session, one.play, one.turn): one.sent for one in run.attempts}
    return [sent[place] for place in places] == sorted(sent.values())


@pytest.mark.parametrize("play", [simulate, replay])
def test_a_slower_server_in_the_order_of_a_faster_one(write, tmp_path, play):
    trace = write("t.trace", *sessions())
    fast = play(trace, out=tmp_path / "fast", sets=SETS, salt="a")
    slow = ["target.timing.prefill_token=1ms", "target.cache.pool=900"]
    free = play(trace, out=tmp_path / "free", sets=[*SETS, *slow], salt="b")
    held = play(trace, out=tmp_path / "held", sets=[*SETS, *slow], salt="c", order_from=tmp_path / "fast")
    places = course_of(tmp_path / "fast", trace).places
    assert follows(held, places)
    assert not follows(free, places)
    assert max(one.lag for one in held.attempts) < 1.0 or play is replay  # waiting for the order is no lag
    assert held.settings["order_from"] == {"run": "fast", "salt": "a", "turns": len(fast.attempts)}
    assert held.end["lockstep"] == {"turns": len(fast.attempts), "left_out": 0}
    assert "sent in the order of the run fast" in report(held).text().replace("\n    ", " ")
    (pair,) = compare([[fast], [held]]).pairs
    caveat = next(one for one in pair.caveats if one.kind == "lockstep")
    assert "B in that of fast" in caveat.text


def test_what_is_refused(write, tmp_path):
    trace, other = write("t.trace", *sessions()), write("u.trace", *sessions(3))
    simulate(trace, out=tmp_path / "one", sets=SETS)
    with pytest.raises(BadInput, match="one: replayed another trace"):
        simulate(other, out=tmp_path / "two", sets=SETS, order_from=tmp_path / "one")
    with pytest.raises(BadInput, match="no such run folder"):
        simulate(trace, out=tmp_path / "two", sets=SETS, order_from=tmp_path / "none")
    simulate(trace, out=tmp_path / "empty", sets=[*SETS, "target.context=60"])
    with pytest.raises(BadInput, match="there is no order to follow"):
        course_of(tmp_path / "empty", trace)
    with pytest.raises(BadInput, match="cannot be split over workers"):
        replay(trace, out=tmp_path / "two", sets=SETS, order_from=tmp_path / "one", workers=2)
    assert not (tmp_path / "two").exists()


def test_turns_that_do_not_fit_here_are_told(write, tmp_path):
    trace = write("t.trace", *sessions())
    simulate(trace, out=tmp_path / "one", sets=SETS)
    run = simulate(trace, out=tmp_path / "two", sets=[*SETS, "target.context=200"], order_from=tmp_path / "one")
    assert run.books().balanced
    assert run.end["lockstep"]["turns"] > len(run.attempts)
