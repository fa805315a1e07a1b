"""Runs a schedule against a server in real time: starts requests, hears of their ends, records everything.

All decisions and all records are made in one coroutine; a turn's own task only talks to the server. So nothing that
goes wrong in a record can be lost in a task, and the order of records is the order of ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
from yarl import URL

from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.replayer.alarm import Alarm
from agentx.replayer.bodies import Bodies
from agentx.replayer.client import Clock, Silence, exchange_with
from agentx.replayer.counters import Scraper
from agentx.replayer.exchange import Exchange, attempt_of
from agentx.replayer.health import Health
from agentx.replayer.moves import Cancel, Cut, Done, Ended, Event, Failed, Key, OnFailure, Send, Wait
from agentx.replayer.progress import Progress
from agentx.replayer.sampling import Sampler
from agentx.replayer.schedule import Schedule
from agentx.replayer.wires import Wire
from agentx.results import Records

AT_A_TIME = 4  # ends that are recorded before the sockets are read again: many replies end together
LOOK_EVERY = 0.25  # s between refreshes of the bar


@dataclass(slots=True)
class Driver:
    """Everything that one run needs. `url` gives the address of a turn, `headers` the headers of a play's requests.

    `look` is called after each step of the schedule.
    """

    schedule: Schedule
    session: aiohttp.ClientSession
    url: Callable[[Send], URL]
    wire: Wire
    bodies: Bodies
    headers: Callable[[Send], Mapping[str, str]]
    writer: Records
    scraper: Scraper
    silence: Silence
    clock: Clock
    progress: Progress
    run_id: str
    on_overflow: OnFailure  # what a turn means that the server refuses as too long
    measured: float | None = None  # s of the plan's window
    worker: int = 0
    look: Callable[[], None] = lambda: None
    interrupted: bool = False
    error: BadInput | None = None  # an input that could not be played: what came before it is in the books
    health: Health = field(default_factory=Health)
    _tasks: dict[Key, tuple[asyncio.Task[None], Exchange]] = field(default_factory=dict)
    _ended: deque[tuple[Send, Exchange]] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _sampler: Sampler = field(init=False)
    _begun: set[int] = field(default_factory=set)  # live plays of which something was sent
    _warming: bool = field(init=False)
    _broken: BaseException | None = None

    def __post_init__(self) -> None:
        self._sampler = Sampler(self.scraper, self.writer)
        self._warming = self.schedule.rules.warmup > 0  # without, the first sample is the one before the run

    async def run(self) -> None:
        """Play until the schedule is done. Raises WriteFailed when a record cannot be written."""
        beside = [self._beside(job) for job in (self._sampler.watch(), self._look(), self.silence.watch(self._live))]
        try:
            await self._sampler.take()
            with self.health.measured(), contextlib.closing(Alarm(self._wake.set)) as alarm:
                await asyncio.sleep(-self.clock())  # second 0, where it was agreed upon with others
                beside.append(self._beside(self.health.watch()))  # what was done before it is not the run's
                while not await self._step(alarm):
                    if self._broken is not None:
                        raise self._broken
            await self._sampler.last(settled=not self.interrupted)
        finally:
            tasks = [*beside, *(task for task, _ in self._tasks.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.progress.close()

    def stop(self, why: str, *, interrupted: bool = False) -> None:
        """Send nothing more, cut what is in flight, and let the books be written."""
        self.interrupted = self.interrupted or interrupted
        self.schedule.stop(self.clock(), why)
        self._wake.set()

    def wake(self) -> None:
        """The schedule was told something: ask it again."""
        self._wake.set()

    @property
    def outcome(self) -> str:
        if self.interrupted:
            return "interrupted"
        return "failed" if self.schedule.stopped else "done"

    async def _step(self, alarm: Alarm) -> bool:
        """Hear what has ended, do what is due, and wait for more. Returns whether all is over."""
        self._wake.clear()
        try:
            for _ in range(min(len(self._ended), AT_A_TIME)):
                self._land(*self._ended.popleft())
            step = self.schedule.next(self.clock())
        except BadInput as error:  # the trace, which is read as the run goes on
            self._give_up(error)
            return False
        finally:
            self._write_plays()
        if self._warming and not self.schedule.warming:
            self._warming = False
            self._sampler.soon()  # what the window is measured against
        self.look()
        if isinstance(step, list):
            for send in step:
                self._launch(send)
        elif isinstance(step, Cancel):
            for key in step.keys:
                self._tasks[key][0].cancel()
        elif isinstance(step, Wait) and not self._ended:
            await self._sleep(alarm, step.until)
        if self._ended:
            await asyncio.sleep(0)
        return isinstance(step, Done)

    def _give_up(self, error: BadInput) -> None:
        self.error = self.error or error
        self.schedule.stop(self.clock(), str(error))

    async def _sleep(self, alarm: Alarm, until: float | None) -> None:
        """Until that time of the run, or until something has happened."""
        if until is None:
            await self._wake.wait()
            return
        alarm.at(asyncio.get_running_loop().time() + until - self.clock())
        await self._wake.wait()
        alarm.off()

    def _launch(self, send: Send) -> None:
        if send.key.serial not in self._begun:
            self._begun.add(send.key.serial)
            self.writer.begun(send.session.key, send.play, send.lane, len(send.session.turns), self.clock())
        rid = f"{self.run_id}-{send.key.serial}-{send.key.turn}" if self.wire.kind == "generate" else None
        exchange = Exchange(
            heard=self.clock(), rid=rid, asked=send.tokens, cumulative=self.wire.cumulative, whole=self.wire.live
        )
        try:
            body = self.bodies.body(send, rid)
        except BadInput as error:  # content that this wire cannot carry
            exchange.sent = exchange.end = self.clock()
            exchange.fail("input", str(error))
            self._ended.append((send, exchange))
            self._give_up(error)
            return
        request = exchange_with(self.session, self.url(send), body, self.headers(send), exchange, self.clock)
        task = asyncio.get_running_loop().create_task(request)
        self._tasks[send.key] = (task, exchange)
        task.add_done_callback(partial(self._landed, send, exchange))

    def _live(self) -> list[tuple[asyncio.Task[None], Exchange]]:
        return list(self._tasks.values())

    def _landed(self, send: Send, exchange: Exchange, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            exchange.fail("cut", "the run ended first")
            exchange.end = exchange.end or self.clock()
            exchange.sent = exchange.sent or exchange.end
        else:
            self._broken = self._broken or task.exception()
        self._ended.append((send, exchange))
        self._wake.set()

    def _beside(self, job: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
        """Let a job run until the end of the run, which ends with it if it fails."""
        running = asyncio.ensure_future(job)
        running.add_done_callback(self._heard)
        return running

    def _heard(self, job: asyncio.Future[None]) -> None:
        if not job.cancelled() and job.exception() is not None:
            self._broken = self._broken or job.exception()
            self._wake.set()

    def _land(self, send: Send, exchange: Exchange) -> None:
        self._tasks.pop(send.key, None)
        attempt, reply = attempt_of(send, exchange, self.wire, self.worker)
        if reply is not None:
            self.bodies.replies.keep(send.key.serial, send.key.turn, reply)
        self.writer.attempt(attempt)
        self.progress.count(attempt)
        over = exchange.end if exchange.free is None else exchange.free
        end = self.clock() if over is None else over
        self.schedule.feed(end, self._event(send.key, attempt))
        if send.key.serial not in self.schedule.live:
            self.bodies.forget(send.key.serial, send.session)
            self._begun.discard(send.key.serial)

    def _event(self, key: Key, attempt: Attempt) -> Event:
        if attempt.failure is None:
            return Ended(key)
        if attempt.failure.kind == "cut":
            return Cut(key)
        return Failed(key, self.on_overflow if attempt.failure.kind == "overflow" else None)

    def _write_plays(self) -> None:
        for play in self.schedule.take_finished():
            self.writer.play(play)
            self.progress.count_play()

    async def _look(self) -> None:
        while self.progress.visible:
            self.progress.show(self.schedule.in_flight)
            await asyncio.sleep(LOOK_EVERY)

    def facts(self) -> dict[str, Any]:
        """What only the driver knows, for the end of the results."""
        facts = self.health.facts()
        if self.schedule.stopped:
            facts["reason"] = self.schedule.stopped
        elif self.measured is not None:
            facts["window"] = [self.schedule.began, self.schedule.began + self.measured]
        return facts
