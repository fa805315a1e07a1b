"""A worker: plays its part of a plan, and writes what came of it into its own file.

A run without workers is one part that is the whole, in the process that was asked. With workers each is a process
(`python -m agentx.replayer.worker`, told by a pipe what to do) or a Ray actor. It ends when its part is played, when
it is told to, or when whoever started it is gone; in each case its file has its books.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import ClientSession
from yarl import URL

from agentx import __version__
from agentx.content import Encoder, WordList, lexicon
from agentx.errors import AgentxError
from agentx.frames import FrameWriter
from agentx.replayer.bodies import Bodies
from agentx.replayer.client import Clock, Silence, open_session, warm
from agentx.replayer.counters import Scraper
from agentx.replayer.drive import Driver
from agentx.replayer.folder import Facts
from agentx.replayer.messages import (
    Begin,
    Broken,
    Go,
    Idle,
    Link,
    Over,
    Pass,
    PipeLink,
    Ready,
    Stop,
    Stopped,
    Warm,
)
from agentx.replayer.order import fates_of, source_of
from agentx.replayer.part_schedule import PartSchedule
from agentx.replayer.progress import Progress
from agentx.replayer.schedule import Schedule
from agentx.replayer.source import Source
from agentx.replayer.split import Part
from agentx.replayer.targets import Endpoint, session_headers
from agentx.replayer.wires import Wire
from agentx.results import Frames, Records, part_path

TELL_EVERY = 0.25  # s between words for the bar


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is to do. `headers` go with every request; `folder` is the run's, as the worker sees it."""

    part: Part
    facts: Facts
    endpoint: Endpoint
    headers: Mapping[str, str]
    run_id: str
    folder: Path
    progress: bool = False


def driver_of(
    facts: Facts,
    schedule: Schedule,
    endpoint: Endpoint,
    session: ClientSession,
    records: Records,
    clock: Clock,
    *,
    run_id: str,
    counters: bool = True,
    progress: bool = False,
    worker: int = 0,
) -> Driver:
    """What plays a schedule against the run's server. `counters`: read the server's own, too."""
    plan, words = facts.plan, facts.words or WordList(lexicon())
    exact = plan.length == "exact"
    wire = Wire(plan.wire, facts.server["model"], exact=exact, history=plan.history, shape=plan.messages)
    urls = [URL(base + wire.path) for base in endpoint.bases]
    return Driver(
        schedule=schedule,
        session=session,
        url=lambda send: urls[send.lane % len(urls)],
        wire=wire,
        bodies=Bodies(Encoder(words), wire, policy=plan.salt, salt=facts.salt),
        headers=lambda send: session_headers(endpoint, send.session.key, send.play),
        writer=records,
        scraper=Scraper(session, endpoint.metrics_urls if counters else [], clock, endpoint.roles),
        silence=Silence(plan.timeouts.stall, clock),
        clock=clock,
        progress=Progress(clock, plan.measure.sessions, wanted=progress),
        run_id=run_id,
        on_overflow=fates_of(facts).when_refused,
        measured=plan.measure.seconds,
        worker=worker,
    )


def connections_of(facts: Facts, part: Part) -> int:
    """Connections to open before the run: as many as requests will be in flight, as far as the plan tells."""
    load = facts.plan.load
    return min((len(part.numbers(each)) for each in (load.sessions, load.requests) if each is not None), default=0)


class Reporter:
    """Tells the coordinator what of a part's schedule concerns the others, each thing once."""

    def __init__(self, schedule: PartSchedule, link: Link, *, idle: bool) -> None:
        self._schedule, self._link, self._idle = schedule, link, idle
        self._warm = self._stopped = False
        self._last = Idle(None, 0.0)

    def look(self) -> None:
        schedule = self._schedule
        if schedule.nearest is not None and not self._warm:
            self._warm = True
            self._link.tell(Warm(schedule.nearest))
        if schedule.stopped is not None and not self._stopped:
            self._stopped = True
            self._link.tell(Stopped(schedule.stopped))
        if self._idle:
            found = Idle(None, 0.0) if schedule.idle is None else Idle(*schedule.idle)
            if found != self._last:
                self._last = found
                self._link.tell(found)


async def work(job: Job, link: Link, frames: Callable[[], Frames]) -> None:
    """Play a part. `frames` opens where its records go."""
    try:
        async with open_session(job.headers) as session:
            source = source_of(job.facts)
            await warm(session, job.endpoint.bases, connections_of(job.facts, job.part))
            link.tell(Ready(os.getpid(), platform.node(), __version__))
            go = await link.hear()
            if isinstance(go, Go):
                await _play(job, link, session, source, frames(), go.start)
    except AgentxError as error:
        link.tell(Broken(str(error)))


async def _play(job: Job, link: Link, session: ClientSession, source: Source, frames: Frames, start: float) -> None:
    def clock() -> float:
        return time.monotonic() - start

    part, plan = job.part, job.facts.plan
    schedule = PartSchedule(iter(source), plan.rules, fates_of(job.facts), part=part)
    records = Records(frames, {"worker": part.index})
    with contextlib.closing(records):
        driver = driver_of(
            job.facts, schedule, job.endpoint, session, records, clock,
            run_id=job.run_id, counters=False, worker=part.index,
        )  # fmt: skip
        driver.look = Reporter(schedule, link, idle=plan.gaps.system_idle_cap is not None).look
        beside = [asyncio.ensure_future(_listen(driver, schedule, link))]
        if job.progress:
            beside.append(asyncio.ensure_future(_count(driver, link)))
        try:
            await driver.run()
        finally:
            for task in beside:
                task.cancel()
        schedule.check_integrity()
        records.end(driver.outcome, clock(), driver.facts())
    if driver.error is not None:
        link.tell(Broken(str(driver.error)))
    link.tell(Over(source.found, schedule.empty))


async def _listen(driver: Driver, schedule: PartSchedule, link: Link) -> None:
    """Do what the coordinator says; when it is gone, nobody wants the rest."""
    while True:
        message = await link.hear()
        if isinstance(message, Begin):
            schedule.begin(message.at, message.first)
        elif isinstance(message, Pass):
            schedule.pass_over(message.by, message.to)
        elif isinstance(message, Stop):
            driver.stop(message.why, interrupted=message.interrupted)
        elif message is None:
            driver.stop("whoever started the run is gone", interrupted=True)
            return
        driver.wake()


async def _count(driver: Driver, link: Link) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY)
        link.tell(driver.progress.counted(driver.schedule.in_flight))


def main(descriptor: int) -> None:
    """The process of a worker: its job is the first thing that it hears."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator hears it, and says what to do
    connection = Connection(descriptor)
    try:
        job: Job = connection.recv()
    except EOFError:  # whoever started it is gone
        return

    async def run() -> None:
        await work(job, PipeLink(connection), lambda: FrameWriter(part_path(job.folder, job.part.index)))

    asyncio.run(run())


if __name__ == "__main__":
    main(int(sys.argv[1]))
