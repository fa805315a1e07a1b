"""A schedule that is one of several: what it tells, and what it is told."""

from __future__ import annotations

import math

from driving import World

from agentx.core import Gap, Output, Prompt, Session, Turn
from agentx.replayer.moves import Ended, Rules, Send, StartRule, Wait
from agentx.replayer.part_schedule import PartSchedule
from agentx.replayer.schedule import Schedule
from agentx.replayer.split import Part


def chain(name: str, *gaps: float) -> Session:
    turns = [
        Turn(at, 0, Prompt(()), 8, Output(1), (at - 1,) if at else (), Gap("tool", gap)) for at, gap in enumerate(gaps)
    ]
    return Session(name, tuple(turns))


def some(count: int) -> list[Session]:
    return [chain(f"s{number}", 0, 1.0 + number % 3, 0.5) for number in range(count)]


def everything(world: World) -> set[tuple[str, int, int, int]]:
    return {(send.session.id, send.play, send.key.turn, send.key.serial) for _, send in world.sends}


def test_two_parts_send_what_one_schedule_sends():
    rules = Rules(lanes=5)
    alone = World(Schedule(iter(some(13)), rules)).run()
    parts = [World(PartSchedule(iter(some(13)), rules, part=Part(index, 2))).run() for index in range(2)]
    assert everything(parts[0]) | everything(parts[1]) == everything(alone)
    assert not everything(parts[0]) & everything(parts[1])
    assert {send.lane for _, send in parts[0].sends} == {0, 2, 4}
    assert {send.lane for _, send in parts[1].sends} == {1, 3}


def test_ten_thousand_sessions_with_five_hundred_live_over_four_workers():
    rules, met = Rules(lanes=500), set()
    for index in range(4):
        schedule = PartSchedule((chain(f"s{number}", 0) for number in range(10_000)), rules, part=Part(index, 4))
        world = World(schedule, lambda send: 1.0 + send.key.serial % 7)
        schedule.check_integrity = lambda: None  # once at the end is enough here
        world.run()
        assert world.most == 125
        PartSchedule.check_integrity(schedule)
        met |= {send.session.id for _, send in world.sends}
    assert len(met) == 10_000


def test_lanes_begin_where_they_begin_in_one_schedule():
    rules = Rules(lanes=4, start=StartRule(seed=3), plays=4)
    long = [chain(f"s{number}", *[1.0] * 20) for number in range(4)]
    alone = World(Schedule(iter(long), rules)).run()
    found = {}
    for index in range(2):
        schedule = PartSchedule(iter(long), rules, part=Part(index, 2))
        assert schedule.next(0.0) == Wait(None)
        assert schedule.nearest is not None
        schedule.begin(0.0, 0.0)
        found |= firsts(World(schedule).run())
    assert found == firsts(alone)


def firsts(world: World) -> dict[str, int]:
    """The first turn of each session."""
    return {send.session.id: send.key.turn for _, send in reversed(world.sends)}


def test_it_waits_behind_its_warm_up_until_all_are_warm():
    schedule = PartSchedule(iter([chain("a", 0, 2, 4)]), Rules(lanes=2, warmup=1), part=Part(0, 2))
    (send,) = schedule.next(0.1)
    assert (send.phase, schedule.nearest) == ("warmup", None)
    assert schedule.next(0.2) == Wait(None)
    assert schedule.nearest is not None  # warm, whether the reply has come or not
    schedule.feed(0.3, Ended(send.key))
    assert schedule.next(0.4) == Wait(None)
    schedule.begin(5.0, schedule.nearest - 3.0)  # another worker's first turn is 3 s nearer
    assert schedule.next(4.9) == Wait(8.0)
    assert schedule.began == 5.0
    (send,) = schedule.next(8.0)
    assert (send.key.turn, send.due, send.phase) == (1, 8.0, "measure")


def test_what_it_was_told_to_wait_for_it_does_not_outlive():
    schedule = PartSchedule(iter([chain("a", 0, 2)]), Rules(lanes=2, warmup=1), part=Part(0, 2))
    (send,) = schedule.next(0.0)
    schedule.feed(0.1, Ended(send.key))
    assert schedule.next(0.2) == Wait(None)
    schedule.stop(0.3, "another was lost")
    assert World(schedule, now=0.3).run().sends == []


def test_idleness_is_told_and_passed_over_when_told():
    schedule = PartSchedule(iter([chain("a", 0, 100)]), Rules(lanes=2, system_idle_cap=10.0), part=Part(0, 2))
    (send,) = schedule.next(0.0)
    assert isinstance(send, Send)
    assert schedule.idle is None
    schedule.feed(1.0, Ended(send.key))
    assert schedule.idle == (1.0, 101.0)
    assert schedule.next(50.0) == Wait(101.0)  # nothing by itself
    schedule.pass_over(90.0, 11.0)
    (send,) = schedule.next(50.0)
    assert (send.due, send.moved) == (11.0, 90.0)
    schedule.feed(51.0, Ended(send.key))
    assert schedule.idle == (51.0, math.inf)


def test_the_run_begins_at_second_0_whenever_it_first_looks():
    schedule = PartSchedule(iter(some(2)), Rules(lanes=2, seconds=10.0), part=Part(0, 2))
    (send,) = schedule.next(0.05)
    assert (schedule.began, send.due) == (0.0, 0.0)
