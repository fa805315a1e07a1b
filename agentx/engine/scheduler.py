"""Continuous batching without a clock: what the next batch is, and what its end means (S1-S4 of docs/fidelity.md).

Requests wait first come, first served. A prefill batch runs whenever one can be made, and decodes wait meanwhile; a
prompt longer than the chunk is prefilled over several batches, one such prompt at a time. Matching is done at
admission. When a decode step does not fit, requests with the shortest replies are retracted and wait again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from agentx.engine import admission, timing
from agentx.engine.acceptance import Acceptance
from agentx.engine.admission import Admission, Verdict
from agentx.engine.jobs import Job
from agentx.engine.messages import Admitted, Event, Retracted, Tally, Tokens
from agentx.engine.nodes import ID_BYTES, Lease
from agentx.engine.radix import RadixCache
from agentx.engine.settings import EngineSettings

ACCEPT_WINDOW = 40  # decode steps that the acceptance gauge looks at (SGLang's decode log interval)
REFRESH_PASSES, REFRESH_REQUESTS = 32, 128  # S2: how often, and for how many, waiting prefixes are kept fresh
OUT_OF_MEMORY = (
    500,
    "Out of memory even after retracting all other requests in the decode batch. Aborting the last request.",
)


@dataclass(frozen=True, slots=True)
class Batch:
    """One step of the engine, running until `end`. `spans` are empty for a decode step."""

    jobs: list[Job]
    spans: list[tuple[int, int]]
    end: float


class Scheduler:
    """Queues and batches over one cache. `plan(now)` starts a batch, `complete(batch)` is called at its end."""

    def __init__(self, settings: EngineSettings, cache: RadixCache, tally: Tally) -> None:
        self.settings, self.cache, self.tally = settings, cache, tally
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.chunked: Job | None = None
        self.ratio = admission.RATIO_START
        self.acceptance = Acceptance(settings.speculation)
        self._reserve = settings.speculation.reserve
        self._full = False
        self._passes = 0
        self._accepted: deque[int] = deque(maxlen=ACCEPT_WINDOW)

    @property
    def idle(self) -> bool:
        return not (self.waiting or self.running or self.chunked)

    @property
    def accept_length(self) -> float | None:
        """Mean tokens per verification step of late; None without speculation."""
        return sum(self._accepted) / len(self._accepted) if self._accepted and self._reserve else None

    def plan(self, now: float, events: list[Event]) -> Batch | None:
        """The batch that starts at `now`: prefill if any, else decode, else None."""
        batch = self._prefill(now, events)
        if batch is None and self.running:
            batch = self._decode(now, events)
            if batch is None:  # the last one was aborted for want of memory
                batch = self._prefill(now, events)
        if batch is not None:
            self.tally.busy_seconds += batch.end - now
        return batch

    def complete(self, batch: Batch, events: list[Event]) -> None:
        """The tokens that a batch made, at its end."""
        if batch.spans:
            self._complete_prefill(batch, events)
        else:
            self._complete_decode(batch, events)
        self.cache.settle()
        if self.idle:
            self.ratio = admission.RATIO_START

    def drop(self, job: Job, at: float, events: list[Event]) -> None:
        """End an aborted request now. Nothing more of it is inserted (I6)."""
        if job.lease is not None:
            self.cache.release(job.lease)
            job.lease = None
        if job is self.chunked:
            self.chunked = None
        self.waiting = [other for other in self.waiting if other is not job]
        if job in self.running:
            self.running.remove(job)
            self._full = False
        self.tally.aborted += 1
        events.append(job.finished(at))

    # -- prefill

    def _prefill(self, now: float, events: list[Event]) -> Batch | None:
        self._full = self._full and bool(self.running)
        if (self._full or not self.waiting) and self.chunked is None:
            return None
        room = self.settings.scheduler.max_running - len(self.running)
        if room <= 0 and self.chunked is None:
            self._full = True
            return None
        self._refresh_waiting(now)
        adding = Admission(self.cache, self.settings.scheduler.max_prefill, self.settings.scheduler.chunk)
        adding.promise_replies(self.running, self.ratio)
        if self.chunked is not None and not adding.proceed(self.chunked):
            return None
        self._admit_waiting(adding, room, now)
        if not adding.jobs:
            return None
        return self._start_prefill(adding, now, events)

    def _admit_waiting(self, adding: Admission, room: int, now: float) -> None:
        admitted = 0
        for job in self.waiting:
            if job.ready > now or adding.verdict() is Verdict.OTHER:
                break
            if len(adding.jobs) >= room:
                self._full = True
            if self._full:
                break
            verdict = adding.admit(job)
            admitted += job.lease is not None
            if verdict is not Verdict.CONTINUE:
                if verdict is Verdict.NO_TOKEN:
                    self._full = bool(adding.jobs or self.running)
                break
        del self.waiting[:admitted]

    def _start_prefill(self, adding: Admission, now: float, events: list[Event]) -> Batch:
        fresh = [job for job in adding.jobs if job is not self.chunked]
        self.chunked = adding.chunked
        tokens = sum(end - start for start, end in adding.spans)
        hit = 0
        for job in fresh:
            hit += sum(job.hit)
            if job.admitted is None:
                job.admitted = Admitted(job.request.rid, now, *job.hit, now - job.ready)
                events.append(job.admitted)
                self.tally.prefill_device_hit += job.hit[0]
                self.tally.prefill_host_hit += job.hit[1]
        self.tally.prefill_input += sum(
            end - start for job, (start, end) in zip(adding.jobs, adding.spans, strict=True) if not job.retractions
        )
        self.tally.prefill_compute += tokens
        self.tally.prefill_cache += hit
        self.tally.last_prefill_input, self.tally.last_prefill_hit = tokens, hit
        page = self.cache.page
        self.cache.make_room(tokens + (page * len(adding.jobs) if page > 1 else 0))
        for job, (_, end) in zip(adding.jobs, adding.spans, strict=True):
            self.cache.extend(_lease(job), end)
        seconds = timing.prefill_seconds(self.settings.timing, adding.spans, adding.loaded)
        return Batch(adding.jobs, adding.spans, now + seconds)

    def _complete_prefill(self, batch: Batch, events: list[Event]) -> None:
        unfinished: list[Job] = []
        for job, (_, end) in zip(batch.jobs, batch.spans, strict=True):
            if job.aborted:
                self.drop(job, batch.end, events)
                continue
            job.computed = end
            if end < job.length:
                unfinished.append(job)
                continue
            ids = job.advance(1)
            events.append(Tokens(job.request.rid, batch.end, ids))
            if job.done:
                self._finish(job, batch.end, events)
            else:
                self.cache.checkpoint(_lease(job), end)
                self.running.append(job)
        for job in unfinished:
            self.cache.checkpoint(_lease(job), job.computed)

    def _refresh_waiting(self, now: float) -> None:
        """S2: with LRU, waiting requests keep their prefixes fresh, the head's the freshest."""
        if not self.waiting or self.settings.cache.policy != "lru":
            return
        due = self._passes % REFRESH_PASSES == 0
        self._passes += 1
        if due:
            for job in reversed(self.waiting[:REFRESH_REQUESTS]):
                if job.ready <= now:
                    self.cache.match(job.ids(), job.length, job.namespace)

    # -- decode

    def _decode(self, now: float, events: list[Event]) -> Batch | None:
        if self.cache.make_room(self._decode_need(self.running)):
            self.ratio = max(self.ratio - admission.RATIO_DECAY, admission.RATIO_LEAST)
        else:
            self._retract(now, events)
            if not self.running:
                return None
        page = self.cache.page
        ends = [self._decode_end(job) for job in self.running]
        if self._reserve:
            need = sum(end - _lease(job).allocated for job, end in zip(self.running, ends, strict=True))
            self.cache.make_room(need + page * len(self.running) if page > 1 and need else need)
        else:  # as if each needed a page
            self.cache.make_room(page * len(self.running))
        for job, end in zip(self.running, ends, strict=True):
            self.cache.extend(_lease(job), end)
        context = sum(job.computed for job in self.running)
        seconds = timing.decode_seconds(self.settings.timing, len(self.running), context, self._reserve > 0)
        return Batch(list(self.running), [], now + seconds)

    def _decode_end(self, job: Job) -> int:
        """Tokens that a job has pages for during a decode step; speculation allocates ahead, whole pages."""
        if not self._reserve:
            return job.computed + 1
        return max(_lease(job).allocated, self.cache.ceil(job.computed + self._reserve))

    def _decode_need(self, jobs: list[Job]) -> int:
        page = self.cache.page
        if not self._reserve:
            return len(jobs) if page == 1 else page * sum(job.computed % page == 0 for job in jobs)
        return self._growth(jobs, [max(_lease(job).allocated, job.computed + self._reserve) for job in jobs])

    def _growth(self, jobs: list[Job], ends: list[int]) -> int:
        """Tokens, in whole pages, that have to be allocated for `jobs` to reach `ends`."""
        ceil = self.cache.ceil
        return sum(ceil(end) - ceil(_lease(job).allocated) for job, end in zip(jobs, ends, strict=True))

    def _retract(self, now: float, events: list[Event]) -> None:
        """S4: retract the shortest replies (then the longest prompts) until a step fits; the last one is aborted."""
        order = sorted(self.running, key=lambda job: (job.out, -job.prompt_tokens), reverse=True)
        first = True
        while len(order) > 1 and (first or not self.cache.make_room(self._decode_need(order))):
            first = False
            job = order.pop()
            self.cache.release(_lease(job))
            self.cache.make_room(len(order) * admission.RETRACT_STEPS)
            self._requeue(job, now, events)
        self._full = False
        self.running = [job for job in self.running if job.lease is not None]
        if not self.cache.make_room(self._decode_need(order)):
            last = order.pop()
            last.aborted, last.reason = True, OUT_OF_MEMORY
            self.drop(last, now, events)
        made, most = sum(job.out for job in order), sum(job.max_new for job in order)
        self.ratio = min(1.0, (made + admission.RETRACT_STEPS * len(order)) / (most + 1))

    def _requeue(self, job: Job, now: float, events: list[Event]) -> None:
        job.lease, job.computed, job.ready = None, 0, now
        job.retractions += 1
        self.tally.retracted_requests += 1
        self.tally.retracted_input += job.prompt_tokens
        self.tally.retracted_output += job.out
        self.waiting.append(job)
        events.append(Retracted(job.request.rid, now))

    def _complete_decode(self, batch: Batch, events: list[Event]) -> None:
        accepted = self.acceptance.draw()  # one draw for the whole batch
        self._accepted.append(accepted)
        self.tally.decode_steps += 1
        for job in batch.jobs:
            if job.aborted:
                self.drop(job, batch.end, events)
                continue
            job.computed += accepted
            if self._reserve:
                job.accepted[accepted - 1] += 1
            ids = job.advance(accepted)
            self.tally.decode += len(ids) // ID_BYTES
            events.append(Tokens(job.request.rid, batch.end, ids))
            if job.done:
                self.running.remove(job)
                self._finish(job, batch.end, events)

    def _finish(self, job: Job, at: float, events: list[Event]) -> None:
        """Insert prompt and reply as far as they have KV (I2) and give the rest back."""
        lease = _lease(job)
        lease.ids = job.ids()
        self.cache.checkpoint(lease, min(job.computed, job.length))
        self.cache.release(lease)
        job.lease = None
        self._full = False
        end = job.finished(at)
        self.tally.requests += 1
        self.tally.prompt_tokens += end.prompt_tokens
        self.tally.generation_tokens += end.completion_tokens
        self.tally.cached_device += end.cached_device
        self.tally.cached_host += end.cached_host
        self.tally.verify_calls += end.verify_steps
        events.append(end)


def _lease(job: Job) -> Lease:
    if job.lease is None:
        raise RuntimeError(f"request {job.request.rid} holds no cache")
    return job.lease
