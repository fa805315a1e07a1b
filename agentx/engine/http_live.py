"""The engine in real time: one asyncio task steps it, requests wait on queues of what happened to them. No sockets.

Everything runs on one event loop, so nothing here is locked. A tick of the task costs no more than the events that
came due; however late it is called, the engine's own clock runs on without gaps.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from agentx.engine.engine import Admitted, Engine, EngineSettings, Event, Finished, Request, Retracted, Tokens
from agentx.engine.http_calls import Call, Rejected
from agentx.engine.http_metrics import RequestMetrics
from agentx.engine.http_replies import Progress, log_line
from agentx.engine.kv_publisher import KvPublisher

Log = Callable[[bytes], None]


class Update(NamedTuple):
    """One step of one request: its new ids, and the end if it was the last."""

    ids: bytes
    end: Finished | None = None


class Job:
    """One request in the engine. `progress` is as far as the updates that were taken."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._updates: asyncio.Queue[Update] = asyncio.Queue()

    def put(self, update: Update) -> None:
        self._updates.put_nowait(update)

    async def next(self) -> Update:
        """The next step. Its ids are in `progress` from now on."""
        update = await self._updates.get()
        self.progress.ids += update.ids
        if update.end is not None:
            self.progress.reason = update.end.reason
        return update


class LiveEngine:
    """An engine and the requests in it. `log` takes one line per request that ended, `publisher` tells what the cache
    does."""

    def __init__(
        self, settings: EngineSettings, *, model: str, log: Log | None = None, publisher: KvPublisher | None = None
    ) -> None:
        self.settings, self.model = settings, model
        self.engine = Engine(settings, None if publisher is None else publisher.blocks.heard)
        self._publisher = publisher
        self.metrics = RequestMetrics(model)
        self._log = log
        self._jobs: dict[str, Job] = {}
        self._bell = asyncio.Event()

    def submit(self, call: Call) -> Job:
        """Give a call to the engine. Raises Rejected for an id that is in use, Refused for what the engine refuses."""
        if call.rid in self._jobs:
            raise Rejected(f"Duplicate request ID detected: {call.rid}")
        now = time.monotonic()
        reply = b"" if call.script is None else call.script.ids
        request = Request(call.rid, call.prompt, call.max_new, call.min_new, call.ignore_eos, call.namespace, reply)
        self.engine.submit(request, now)
        job = self._jobs[call.rid] = Job(Progress(call, now, time.time()))
        self._bell.set()
        return job

    def leave(self, job: Job) -> None:
        """The client has gone: end its request if it has not ended. The log gets its line with the next step."""
        rid = job.progress.call.rid
        if self._jobs.get(rid) is job:
            self.metrics.aborted()
            self.engine.abort(rid, time.monotonic())
            self._bell.set()

    def flush(self) -> bool:
        """Empty the cache. False, and nothing done, while requests are in the engine."""
        flushed = self.engine.flush()
        if flushed and self._publisher is not None:
            self._publisher.blocks.cleared()
            self._publisher.send()
        return flushed

    def abort(self, rid: str | None) -> None:
        """End a request, or (None) all of them, as its owner asks: the reply ends with reason `abort`. An unknown id
        is ignored. SGLang counts one abort, however many requests it ends."""
        rids = [*self._jobs] if rid is None else [rid] if rid in self._jobs else []
        if rid is None or rids:
            self.metrics.aborted()
        for each in rids:
            self.engine.abort(each, time.monotonic())
        self._bell.set()

    @property
    def waiting_tokens(self) -> int:
        """Prompt tokens of the requests that were never admitted so far."""
        prompts = (job.progress for job in self._jobs.values() if job.progress.cached_device is None)
        return sum(progress.call.prompt_tokens for progress in prompts)

    def close(self) -> None:
        """End every request that is still in the engine, so that the log has its line. `run` must have ended."""
        for rid in self._jobs:
            self.engine.abort(rid, time.monotonic())
        self._deliver(self.engine.step(math.inf)[0])  # an aborted request may stay to the end of its batch

    async def run(self) -> None:
        """Step the engine for ever. Raises what the log raises: a request that was not recorded must not pass."""
        loop = asyncio.get_running_loop()
        while True:
            self._bell.clear()
            events, wake = self.engine.step(time.monotonic())
            self._deliver(events)
            if self._publisher is not None:
                self._publisher.send()
            if wake is None:
                await self._bell.wait()
                continue
            timer = loop.call_later(max(0.0, wake - time.monotonic()), self._bell.set)
            await self._bell.wait()
            timer.cancel()

    def _deliver(self, events: list[Event]) -> None:
        """Hand events to their jobs; the tokens of a last step go with its end, as one update."""
        last_ids: dict[str, Tokens] = {}
        for event in events:
            job = self._jobs[event.rid]
            held = last_ids.pop(event.rid, None)
            if isinstance(event, Finished):
                self._finish(job, event, held.ids if held is not None else b"")
                continue
            if held is not None:
                job.put(Update(held.ids))
            if isinstance(event, Tokens):
                if job.progress.first is None:
                    job.progress.first = time.monotonic()
                last_ids[event.rid] = event
            elif isinstance(event, Admitted):
                job.progress.cached_device, job.progress.cached_host = event.cached_device, event.cached_host
                job.progress.queued = event.queued_seconds
            elif isinstance(event, Retracted):
                job.progress.retractions += 1
        for rid, held in last_ids.items():
            self._jobs[rid].put(Update(held.ids))

    def _finish(self, job: Job, event: Finished, ids: bytes) -> None:
        """Books first, then the reply: who reads the log or the metrics after a reply finds it there."""
        del self._jobs[event.rid]
        progress = job.progress
        progress.end = time.monotonic()
        progress.verify_steps, progress.histogram = event.verify_steps, event.histogram
        if event.reason != "abort":
            self.metrics.finished(progress, event.completion_tokens)
        if self._log is not None:
            self._log(log_line(progress, event))
        job.put(Update(ids, event))
