"""What a worker tells of its schedule, each thing once."""

from __future__ import annotations

import math

from agentx.replayer.messages import Idle, Stopped, Warm
from agentx.replayer.worker import Reporter


class Told(list):
    tell = list.append


class Fake:
    """A schedule of which the test says how it is."""

    nearest = stopped = idle = None


def test_each_thing_is_told_once():
    schedule, told = Fake(), Told()
    reporter = Reporter(schedule, told, idle=True)
    reporter.look()
    assert told == []
    schedule.nearest = 4.0
    schedule.idle = (1.0, 5.0)
    reporter.look()
    reporter.look()
    assert told == [Warm(4.0), Idle(1.0, 5.0)]
    schedule.idle = None
    schedule.stopped = "a turn failed"
    reporter.look()
    reporter.look()
    assert told[2:] == [Stopped("a turn failed"), Idle(None, 0.0)]


def test_idleness_is_told_only_where_there_is_a_cap():
    schedule, told = Fake(), Told()
    schedule.idle = (1.0, math.inf)
    Reporter(schedule, told, idle=False).look()
    assert told == []
