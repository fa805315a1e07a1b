"""Several workers play one plan: this is their coordinator, which plays nothing itself.

It starts all of them, gives them one clock, and hears of what concerns the whole: that all lanes are warm, that
everything has been idle for too long, that one has stopped, that one is gone. It alone samples the server's counters.
A worker that is lost takes its own plays with it and nothing else; the run goes on without it and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import platform
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

from yarl import URL

import agentx
from agentx.errors import BadInput
from agentx.replayer.client import Clock
from agentx.replayer.found import Found
from agentx.replayer.messages import (
    Begin,
    Broken,
    Counted,
    Go,
    Idle,
    Link,
    Offset,
    Over,
    Pass,
    PipeLink,
    Ready,
    Stop,
    Stopped,
    Warm,
)
from agentx.replayer.moves import Rules
from agentx.replayer.progress import Progress
from agentx.replayer.sampling import Sampler
from agentx.replayer.schedule import NUDGE
from agentx.replayer.targets import Endpoint
from agentx.replayer.worker import Job

GRACE = 10.0  # s that a worker has to write its books when its coordinator has gone on
LEAD = 0.05  # s from a word to all workers to the moment that it names
START = 0.5  # s of this before second 0: they set aside what they have in memory first


class Lost(NamedTuple):
    """A worker that went away before its end, at second `at` of the run."""

    worker: int
    at: float


@dataclass(slots=True)
class Coordinator:
    """Leads the workers behind `links` through one run. `progress` hears what they count."""

    links: Sequence[Link]
    rules: Rules
    lost: list[Lost] = field(default_factory=list)
    over: dict[int, Over] = field(default_factory=dict)
    began: float = 0.0
    stopped: str | None = None
    interrupted: bool = False
    error: str | None = None
    warmed: Callable[[], None] = lambda: None
    _clock: Clock = lambda: 0.0
    _progress: Progress | None = None
    _warm: dict[int, float] = field(default_factory=dict)
    _idle: dict[int, Idle] = field(default_factory=dict)

    _timer: asyncio.TimerHandle | None = None

    async def ready(self) -> list[Ready]:
        """Wait until all can begin. Raises BadInput when one cannot."""
        found = []
        for worker, link in enumerate(self.links):
            message = await link.hear()
            if isinstance(message, Broken):
                raise BadInput(message.error)
            if not isinstance(message, Ready):
                raise BadInput(f"worker {worker} ended before it began", hint="its last words are above")
            found.append(message)
        return found

    async def run(self, clock: Clock, starts: Sequence[float], progress: Progress) -> None:
        """Let all play; `starts` is second 0 of `clock` on the clock of each. Returns when all are over or lost."""
        self._clock, self._progress = clock, progress
        for link, start in zip(self.links, starts, strict=True):
            link.tell(Go(start))
        listeners = [asyncio.ensure_future(self._listen(worker)) for worker in range(len(self.links))]
        try:
            await asyncio.gather(*listeners)
        finally:
            for task in listeners:
                task.cancel()
            if self._timer is not None:
                self._timer.cancel()

    def failed(self, job: asyncio.Future[None]) -> None:
        """What was done beside the run has ended: with an error, the run has to end, too."""
        if not job.cancelled() and (error := job.exception()) is not None:
            self.error = self.error or str(error)
            self.stop(str(error))

    def stop(self, why: str, *, interrupted: bool = False) -> None:
        """Tell all to send nothing more, to cut what is in flight, and to write their books."""
        self.stopped = self.stopped or why
        self.interrupted = self.interrupted or interrupted
        for link in self.links:
            link.tell(Stop(why, interrupted))

    @property
    def outcome(self) -> str:
        if self.interrupted:
            return "interrupted"
        if self.stopped:
            return "failed"
        return "partial" if self.lost else "done"

    def told(self) -> Found:
        """What became of the trace's sessions, by who read furthest."""
        return max((over.found for over in self.over.values()), key=lambda one: one.read.sessions, default=Found())

    def facts(self, measured: float | None) -> dict[str, Any]:
        """For the end of the results; `measured`: seconds of the plan's window."""
        empty = max((over.empty for over in self.over.values()), default=0)
        facts: dict[str, Any] = {**self.told().facts(), "dropped_sessions": len(self.told().dropped) + empty}
        if self.lost:
            facts["lost"] = [list(each) for each in self.lost]
        if self.stopped:
            facts["reason"] = self.stopped
        elif measured is not None:
            facts["window"] = [self.began, self.began + measured]
        return facts

    async def _listen(self, worker: int) -> None:
        while worker not in self.over:
            message = await self.links[worker].hear()
            if message is None:
                self.lost.append(Lost(worker, self._clock()))
                if len(self.lost) == len(self.links):
                    self.stopped = self.stopped or "all workers were lost"
                self._agree()
                return
            self._heard(worker, message)

    def _heard(self, worker: int, message: object) -> None:
        if isinstance(message, Over):
            self.over[worker] = message
            self._idle[worker] = Idle(self._clock(), math.inf)
        elif isinstance(message, Warm):
            self._warm[worker] = message.nearest
        elif isinstance(message, Idle):
            self._idle[worker] = message
        elif isinstance(message, Counted) and self._progress is not None:
            self._progress.hear(worker, message)
        elif isinstance(message, Stopped) and not self.stopped:
            self.stop(message.why)
        elif isinstance(message, Broken):
            self.error = self.error or message.error
            self.stop(message.error)
        self._agree()

    def _agree(self) -> None:
        """What follows from what all that are left have said."""
        left = set(range(len(self.links))) - {each.worker for each in self.lost}
        playing = left - self.over.keys()
        if self._warm and playing <= self._warm.keys():
            first, self.began = min(self._warm.values()), self._clock() + LEAD
            self._warm.clear()
            self._tell_all(Begin(self.began, first))
            self.warmed()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (cap := self.rules.system_idle_cap) is not None and playing and left <= self._idle.keys():
            self._watch_idleness([self._idle[worker] for worker in left], cap)

    def _watch_idleness(self, states: Sequence[Idle], cap: float) -> None:
        """When nothing is in flight anywhere: let the rest of the idleness have passed, in its time."""
        since = [state.since for state in states if state.since is not None]
        if len(since) < len(states):
            return
        to, first = max(since) + cap, min(state.until for state in states)
        if first == math.inf or first <= to:
            return
        loop = asyncio.get_running_loop()
        message = Pass(first - to + NUDGE, to)
        self._timer = loop.call_at(loop.time() + max(0.0, to - self._clock()), self._pass, message)

    def _pass(self, message: Pass) -> None:
        by, to = message
        self._tell_all(message)
        for worker, state in self._idle.items():  # what they would say now
            self._idle[worker] = state._replace(until=max(to, state.until - by))

    def _tell_all(self, message: object) -> None:
        for worker, link in enumerate(self.links):
            if worker not in self.over:
                link.tell(message)


def check_nodes(told: Sequence[Ready], endpoint: Endpoint) -> None:
    """Raises BadInput where a worker is of another agentx, or cannot reach a server that only this machine can."""
    local = next((base for base in endpoint.bases if URL(base).host in ("127.0.0.1", "localhost", "::1")), None)
    for worker, ready in enumerate(told):
        if ready.version != agentx.__version__:
            raise BadInput(
                f"worker {worker} on {ready.node} has agentx {ready.version}, here it is {agentx.__version__}"
            )
        if local is not None and ready.node != platform.node():
            raise BadInput(
                f"{local} is this machine alone, and worker {worker} is on {ready.node}",
                hint="name the target by an address that all nodes reach",
            )


def about(told: Sequence[Ready], offsets: Sequence[Offset]) -> list[dict[str, Any]]:
    """What run.json keeps of the workers; `clock` is by how many seconds that machine's is ahead, give or take."""
    return [
        {"pid": ready.pid, "node": ready.node, "clock": offset.seconds, "clock_uncertainty": offset.uncertainty}
        for ready, offset in zip(told, offsets, strict=True)
    ]


async def drifted(crew: Coordinator, before: Sequence[Offset]) -> float:
    """By how many seconds the clocks of the workers' machines went apart from this one's, the worst of them.

    What the two measurements cannot tell from nothing is none.
    """
    gone = {each.worker for each in crew.lost}
    worst = 0.0
    for worker, (link, was) in enumerate(zip(crew.links, before, strict=True)):
        if worker not in gone:
            now = await link.offset()
            apart = abs(now.seconds - was.seconds) - now.uncertainty - was.uncertainty
            worst = max(worst, apart)
    return worst


async def lead(crew: Coordinator, clock: Clock, starts: Sequence[float], sampler: Sampler, progress: Progress) -> None:
    """One run: the counters before it, all that is played, the counters behind it."""
    await sampler.take()
    watching = asyncio.ensure_future(sampler.watch())
    watching.add_done_callback(crew.failed)
    crew.warmed = sampler.soon
    try:
        await crew.run(clock, starts, progress)
    finally:
        watching.cancel()
        progress.close()
    await sampler.last(settled=not crew.interrupted)


@contextlib.asynccontextmanager
async def processes(jobs: Sequence[Job]) -> AsyncIterator[list[Link]]:
    """A process for each job, and a link to it. All are ended when this is left."""
    root = str(Path(agentx.__file__).parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    children: list[subprocess.Popen[bytes]] = []
    links: list[PipeLink] = []
    try:
        for job in jobs:
            here, there = Pipe()
            with there:
                children.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "agentx.replayer.worker", str(there.fileno())],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": path},
                        start_new_session=True,  # Ctrl-C is for the coordinator
                        pass_fds=(there.fileno(),),
                    )
                )
            links.append(PipeLink(here))
            links[-1].tell(job)
        yield list(links)
    finally:
        for link in links:
            link.close()  # a worker that still plays ends now, and writes its books
        for child in children:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
