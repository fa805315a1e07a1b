"""The coordinator, with workers that the test plays."""

from __future__ import annotations

import asyncio
import math

import pytest

from agentx.errors import BadInput
from agentx.replayer.found import Amount, Found
from agentx.replayer.messages import Begin, Broken, Counted, Go, Idle, Over, Pass, Ready, Stop, Stopped, Warm
from agentx.replayer.moves import Rules
from agentx.replayer.progress import Progress
from agentx.replayer.workers import LEAD, Coordinator, Lost

OVER = Over(Found(), 0)


class Fake:
    """The coordinator's end of a link; `told` is what the worker was told."""

    def __init__(self, *says: object) -> None:
        self.told: list[object] = []
        self._says: asyncio.Queue[object] = asyncio.Queue()
        for each in says:
            self._says.put_nowait(each)

    def tell(self, message: object) -> None:
        self.told.append(message)

    async def hear(self) -> object:
        return await self._says.get()

    def say(self, message: object) -> None:
        self._says.put_nowait(message)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Lead:
    """A coordinator that runs while the test says what its workers say, at times that the test sets."""

    def __init__(self, workers: int, **rules) -> None:
        self.links = [Fake() for _ in range(workers)]
        self.crew = Coordinator(self.links, Rules(**rules))
        self.now = 0.0
        self.task = None

    async def say(self, worker: int, message: object) -> None:
        if self.task is None:
            progress = Progress(lambda: self.now, None, wanted=False)
            starts = [100.0 + number for number in range(len(self.links))]
            self.task = asyncio.ensure_future(self.crew.run(lambda: self.now, starts, progress))
        self.links[worker].say(message)
        await settle()

    async def end(self) -> Coordinator:
        for link in self.links:
            link.say(OVER)
        await self.task
        return self.crew

    def told(self, kind: type) -> list[list[object]]:
        return [[message for message in link.told if isinstance(message, kind)] for link in self.links]


async def test_each_is_given_second_0_on_its_own_clock():
    lead = Lead(2)
    await lead.say(0, OVER)
    crew = await lead.end()
    assert lead.told(Go) == [[Go(100.0)], [Go(101.0)]]
    assert (crew.outcome, crew.facts(None)) == ("done", {"dropped_sessions": 0})


async def test_the_run_begins_when_all_are_warm_at_one_moment_and_place():
    lead, began = Lead(3, warmup=1), []
    lead.crew.warmed = lambda: began.append(lead.crew.began)
    await lead.say(0, Warm(7.0))
    await lead.say(2, Warm(4.0))
    assert lead.told(Begin) == [[], [], []]
    lead.now = 2.0
    await lead.say(1, Warm(math.inf))
    assert lead.told(Begin) == [[Begin(2.0 + LEAD, 4.0)]] * 3
    assert began == [2.0 + LEAD]
    assert (await lead.end()).facts(60.0)["window"] == [2.0 + LEAD, 62.0 + LEAD]


async def test_nobody_waits_for_a_worker_that_is_lost_while_it_warms():
    lead = Lead(2, warmup=1)
    await lead.say(0, Warm(7.0))
    lead.now = 3.0
    await lead.say(1, None)
    assert lead.told(Begin)[0] == [Begin(3.0 + LEAD, 7.0)]
    crew = await lead.end()
    assert crew.lost == [Lost(1, 3.0)]
    assert (crew.outcome, crew.facts(None)["lost"]) == ("partial", [[1, 3.0]])


async def test_idleness_is_that_of_all_and_passes_once():
    lead = Lead(2, system_idle_cap=0.01)
    await lead.say(0, Idle(1.0, 500.0))
    await asyncio.sleep(0.02)
    assert lead.told(Pass) == [[], []]  # the other one has something in flight
    lead.now = 2.0
    await lead.say(1, Idle(2.0, math.inf))
    await asyncio.sleep(0.03)
    (only,), same = lead.told(Pass)
    assert same == [only]
    assert only.to == pytest.approx(2.01)
    assert 500.0 - only.by == pytest.approx(only.to)
    await lead.say(0, Idle(1.0, 2.01))  # as it says when it has moved its timers
    await asyncio.sleep(0.02)
    assert lead.told(Pass) == [[only], [only]]
    await lead.say(0, Idle(None, 0.0))
    await lead.end()


async def test_a_worker_that_becomes_busy_in_time_keeps_all_timers():
    lead = Lead(2, system_idle_cap=0.05)
    await lead.say(0, Idle(0.0, 500.0))
    await lead.say(1, Idle(0.0, 400.0))
    await lead.say(1, Idle(None, 0.0))
    await asyncio.sleep(0.08)
    assert lead.told(Pass) == [[], []]
    await lead.end()


async def test_one_that_stops_stops_all_but_once():
    lead = Lead(2)
    await lead.say(0, Stopped("turn 3 failed"))
    await lead.say(1, Stopped("turn 3 failed"))
    assert lead.told(Stop) == [[Stop("turn 3 failed")]] * 2
    crew = await lead.end()
    assert (crew.outcome, crew.facts(10.0)["reason"]) == ("failed", "turn 3 failed")
    assert "window" not in crew.facts(10.0)


async def test_what_cannot_go_on_ends_all_and_is_kept():
    lead = Lead(2)
    await lead.say(1, Broken("results-1.agx: writing failed"))
    crew = await lead.end()
    assert lead.told(Stop)[0] == [Stop("results-1.agx: writing failed")]
    assert crew.error == "results-1.agx: writing failed"


async def test_an_interruption_is_told_to_all():
    lead = Lead(2)
    await lead.say(0, Counted(1, 0, 4, 1, 200, 100, 50))
    lead.crew.stop("interrupted by SIGINT", interrupted=True)
    crew = await lead.end()
    assert lead.told(Stop) == [[Stop("interrupted by SIGINT", True)]] * 2
    assert crew.outcome == "interrupted"


async def test_without_workers_the_run_has_failed():
    lead = Lead(2)
    await lead.say(0, None)
    await lead.say(1, None)
    await lead.task
    assert (lead.crew.outcome, lead.crew.stopped) == ("failed", "all workers were lost")


@pytest.mark.parametrize(
    ("says", "message"), [(None, "worker 1 ended before it began"), (Broken("no such file"), "no such file")]
)
async def test_a_worker_that_cannot_begin_ends_it_before_it_began(says, message):
    crew = Coordinator([Fake(Ready(1, "a", "0.1")), Fake(says)], Rules())
    with pytest.raises(BadInput, match=message):
        await crew.ready()


async def test_sessions_that_were_dropped_are_told_by_who_read_furthest():
    lead = Lead(2)
    await lead.say(0, Over(Found(["a"], read=Amount(1)), 1))
    await lead.say(1, Over(Found(["a", "b"], ["z"], read=Amount(2)), 2))
    await lead.task
    assert (lead.crew.told().dropped, lead.crew.told().torn) == (["a", "b"], ["z"])
    assert lead.crew.facts(None)["dropped_sessions"] == 4


async def test_counters_that_cannot_be_recorded_end_the_run():
    lead = Lead(1)

    async def fails():
        raise OSError("writing failed: no space left on device")

    await lead.say(0, Counted(1, 0, 0, 0, 0, 0, None))
    job = asyncio.ensure_future(fails())
    job.add_done_callback(lead.crew.failed)
    await settle()
    crew = await lead.end()
    assert lead.told(Stop) == [[Stop("writing failed: no space left on device")]]
    assert crew.error == "writing failed: no space left on device"
