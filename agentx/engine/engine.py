"""The embedded engine: SGLang 0.5.23's cache and scheduler rules under a timing model, without a clock and sockets.

`step(now)` does what is due at `now` and says when something happens next: a server sleeps until then, a simulation
jumps. Batches follow each other without a gap however late `step` is called, so that both see the same engine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from agentx.engine.host import HostedCache
from agentx.engine.jobs import Job
from agentx.engine.messages import (
    Admitted,
    Counters,
    Event,
    Finished,
    Refused,
    Request,
    Retracted,
    Tally,
    Tokens,
)
from agentx.engine.nodes import ID_BYTES, CacheEvent
from agentx.engine.radix import RadixCache
from agentx.engine.scheduler import Batch, Scheduler
from agentx.engine.settings import EngineSettings, load_engine

__all__ = [
    "Admitted",
    "CacheEvent",
    "Counters",
    "Engine",
    "EngineSettings",
    "Event",
    "Finished",
    "Refused",
    "Request",
    "Retracted",
    "Tokens",
    "load_engine",
]


def cache_of(settings: EngineSettings, subscriber: Callable[[CacheEvent], None] | None = None) -> RadixCache:
    """The prefix cache that the settings describe, with a host tier when they give it tokens."""
    cache = settings.cache
    if not cache.host.tokens:
        return RadixCache(cache.pool, cache.page, cache.policy, bigram=cache.bigram, subscriber=subscriber)
    return HostedCache(
        cache.pool,
        cache.page,
        cache.policy,
        host_capacity=cache.host.tokens,
        write=cache.host.write,
        load_back_threshold=cache.host.load_back_threshold,
        bigram=cache.bigram,
        subscriber=subscriber,
    )


class Engine:
    """One engine. Times that callers give must not go backwards."""

    def __init__(self, settings: EngineSettings, subscriber: Callable[[CacheEvent], None] | None = None) -> None:
        self.settings = settings
        self._tally = Tally()
        self._cache = cache_of(settings, subscriber)
        self._scheduler = Scheduler(settings, self._cache, self._tally)
        self._jobs: dict[str, Job] = {}
        self._events: list[Event] = []  # those of aborts, for the next step
        self._batch: Batch | None = None
        self._clock = 0.0

    def submit(self, request: Request, now: float) -> None:
        """Take a request. Raises Refused with SGLang's status and message."""
        if request.rid in self._jobs:
            raise Refused(400, f"Duplicate request ID detected: {request.rid}")
        max_new = self._validated(request)
        limit = self.settings.scheduler.queue
        if limit is not None and len(self._scheduler.waiting) + 1 > limit:
            raise Refused(503, "The request queue is full.")
        speculation = self.settings.speculation
        forced = speculation.algorithm is not None and speculation.acceptance.tokens == "fixed"
        ready = now + self.settings.timing.request
        job = Job(request, max_new, ready, forced=forced, bound=speculation.bound)
        self._jobs[request.rid] = job
        self._scheduler.waiting.append(job)

    def abort(self, rid: str, now: float) -> None:
        """End a request; its Finished event comes with the next step. An unknown id is ignored."""
        job = self._jobs.get(rid)
        if job is None or job.aborted:
            return
        job.aborted = True
        if self._batch is None or job not in self._batch.jobs:  # else at the end of its batch
            self._scheduler.drop(job, now, self._events)
            del self._jobs[rid]

    def step(self, now: float) -> tuple[list[Event], float | None]:
        """What has happened up to `now`, in order, and when the next thing will (None: nothing to do)."""
        events, self._events = self._events, []
        while True:
            if self._batch is not None:
                if self._batch.end > now:
                    break
                self._clock = self._batch.end
                self._scheduler.complete(self._batch, events)
                self._batch = None
            start = self._next_start()
            if start is None or start > now:
                break
            self._clock = start
            self._batch = self._scheduler.plan(start, events)
            if self._batch is None and self._next_start() == start:
                raise RuntimeError("the engine has work but can not start it")
        for event in events:
            if isinstance(event, Finished):
                self._jobs.pop(event.rid, None)
        return events, self._batch.end if self._batch is not None else self._next_start()

    def flush(self) -> bool:
        """Empty the cache, both tiers. False, and nothing done, while requests are in the engine."""
        if self._jobs or self._batch is not None:
            return False
        self._cache.clear()
        return True

    def counters(self) -> Counters:
        cache, scheduler = self._cache, self._scheduler
        return Counters(
            totals=dataclasses.replace(self._tally),
            evicted=cache.evicted,
            running=len(scheduler.running),
            queued=len(scheduler.waiting),
            pool=cache.capacity,
            available=cache.free,
            evictable=cache.evictable,
            used=cache.capacity - cache.free - cache.evictable,
            decode_context=sum(job.computed for job in scheduler.running),
            new_token_ratio=scheduler.ratio,
            accept_length=scheduler.accept_length,
            backed_up=cache.backed_up,
            loaded_back=cache.loaded_back,
            dropped_unbacked=cache.dropped_unbacked,
            dropped_host_pressure=cache.dropped_host_pressure,
            host_total=cache.host_capacity,
            host_used=cache.host_capacity - cache.host_free,
        )

    def check_integrity(self) -> None:
        """Recount the cache. Raises RuntimeError when the books do not balance."""
        leases = [job.lease for job in self._jobs.values() if job.lease is not None]
        self._cache.check_integrity(sum(self._cache.ceil(lease.allocated) - lease.protected for lease in leases))

    def _next_start(self) -> float | None:
        """When the next batch can begin, the one that runs aside."""
        scheduler = self._scheduler
        if scheduler.running or scheduler.chunked is not None:
            return self._clock
        return max(self._clock, scheduler.waiting[0].ready) if scheduler.waiting else None

    def _validated(self, request: Request) -> int:
        """The most tokens that the request can have as a reply. Raises Refused."""
        tokens, context = len(request.prompt) // ID_BYTES, self.settings.context
        if tokens >= context:
            raise Refused(
                400, f"The input ({tokens} tokens) is longer than the model's context length ({context} tokens)."
            )
        if tokens + request.max_new > context:
            raise Refused(
                400,
                f"Requested token count exceeds the model's maximum context length of {context} tokens. You requested "
                f"a total of {tokens + request.max_new} tokens: {tokens} tokens from the input messages and "
                f"{request.max_new} tokens for the completion. Please reduce the number of tokens in the input "
                "messages or the completion to fit within the limit.",
            )
        pool, page = self._cache.capacity, self._cache.page
        longest = min(self.settings.longest_prompt, pool - page)
        if tokens >= longest:
            raise Refused(
                400,
                f"Input length ({tokens} tokens) exceeds the maximum allowed length ({longest} tokens). "
                "Use a shorter input or enable --allow-auto-truncate.",
            )
        room = min(self.settings.longest_request - tokens - 1, pool - self._cache.ceil(tokens) - page - 1)
        return max(0, min(request.max_new, room))
