"""A cache as a server works on it, at the times of a run: prompts in chunks, replies that grow, requests that wait.

The rules are the embedded engine's (docs/fidelity.md), the times are the run's: who is admitted when is not decided
here. S2 a request is matched, and holds what it found, when its batch begins. S3 a batch computes at most a chunk, so
that a long prompt takes several batches, one such prompt at a time; as it uses up the batches, who is admitted
meanwhile is in its last one. E1 a batch evicts for what it computes, a reply for what it grows, speculation somewhat
ahead. I1 each chunk is inserted at the end of its batch, I2 the reply when the request is over. S2 the first of those
that wait is looked up when it comes and whenever a request is over, also behind those that a batch admits: that keeps
its prefix fresh.

What nobody tells is not here: when all that wait are refreshed (every 32 passes of the scheduler), and retractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentx.core import Attempt
from agentx.engine.nodes import ID_BYTES, Lease
from agentx.engine.radix import RadixCache
from agentx.reporter.losses_moments import JITTER, Moments

ANY = 1 << 60
TOGETHER = 0.005  # s: who is admitted within that is of one batch


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a server's batches: `chunk` and `inputs` are tokens, `ahead` those that a reply has room for beyond its own
    (speculation), `running` requests."""

    chunk: int = ANY
    inputs: int = 16_384
    ahead: int = 0
    running: int = ANY


@dataclass(slots=True, eq=False)
class Served:
    """A request of the run. Of its prompt the cache had `prefix` tokens; [0, `reach`) there are when its batch ends."""

    attempt: Attempt
    moments: Moments
    make: Callable[[], bytes]
    namespace: bytes
    reply: Callable[[int], bytes]  # ids of so many tokens
    ids: bytes = b""
    lease: Lease | None = None
    prefix: int = 0
    reach: int = 0

    @property
    def length(self) -> int:
        """Tokens of its prompt."""
        return len(self.ids) // ID_BYTES

    def needs(self, cache: RadixCache, end: int) -> int:
        """Tokens to be allocated so that it has room for `end`."""
        return 0 if self.lease is None else max(0, cache.ceil(end) - cache.ceil(self.lease.allocated))


@dataclass(slots=True)
class Serving:
    """One server's cache, and the requests in it. Times must not go backwards."""

    cache: RadixCache
    limits: Limits
    _waiting: list[Served] = field(default_factory=list)
    _running: list[Served] = field(default_factory=list)  # their replies grow
    _batch: list[Served] = field(default_factory=list)  # those that it gives their first token
    _chunked: Served | None = None  # in the batch too, but not done with it
    _taking: list[Served] = field(default_factory=list)  # of the batch, without their room yet
    _began: float = 0.0
    _chunk: int = 0  # tokens that the batch can still take
    _inputs: int = 0
    _full: bool = False  # the first that waits did not fit

    def arrived(self, one: Served, at: float) -> None:
        self._waiting.append(one)
        if not self._batch and self._chunked is None and not self._full:
            self._grow(at)
            self._look(at)

    def admit(self, one: Served, at: float) -> tuple[int, int]:
        """Leading tokens that the cache held on any tier, and those that it gave."""
        self._grow(at)
        self._waiting.remove(one)
        self._full = False
        if self._chunk <= 0 or at > self._began + TOGETHER or not (self._batch or self._chunked):
            self._begin(at)
        return self._open(one)

    def computed(self, one: Served, at: float) -> None:
        """It has its first token."""
        cache = self.cache
        if one is self._chunked:
            self._begin_last(one, at)
        self._take()
        if one.lease is None:  # there was no room when it was admitted: it waited
            self._chunk = self._inputs = ANY
            self._open(one)
            self._take()
        if one.lease is not None:
            cache.checkpoint(one.lease, one.length)
            self._running.append(one)
        if one in self._batch:
            self._batch.remove(one)
        if not self._batch:
            self._end(at)
        cache.settle()

    def over(self, one: Served, at: float, reply: bytes) -> None:
        """It has ended. `reply`: the ids of what stays of its reply."""
        self._take()
        self._grow(at)
        for group in (self._waiting, self._running, self._batch):
            if one in group:
                group.remove(one)
        if one is self._chunked:
            self._chunked = None
        self._release(one, reply)
        self._full = False
        if self._chunked is None:
            self._look(at)

    # -- batches of prompts

    def _begin(self, at: float) -> None:
        """The next batch, with the last chunk of the prompt that is being computed."""
        self._take()
        one, self._chunked = self._chunked, None
        if one is not None:
            self._chunks(one)
        self._began, self._chunk, self._inputs = at, self.limits.chunk, self.limits.inputs
        if one is not None:
            self._span(one, one.reach)

    def _begin_last(self, one: Served, at: float) -> None:
        """The batch that gives `one` its first token at `at`; batches take as long as they have tokens."""
        chunk, whole = self.limits.chunk, one.length - one.prefix
        rest = (one.length - one.reach - 1) % chunk + 1
        self._begin(at - (at - self._began) * rest / whole)

    def _open(self, one: Served) -> tuple[int, int]:
        match = self.cache.match(one.ids, one.length - 1, one.namespace)
        one.lease, loaded = self.cache.open(one.ids, one.namespace, match)
        one.prefix = match.device + loaded
        self._span(one, one.prefix)
        return match.device + match.host, one.prefix

    def _span(self, one: Served, prefix: int) -> None:
        """What the batch computes of a prompt."""
        ceil, page = self.cache.ceil, self.cache.page
        if ceil(one.length - prefix) <= self._chunk:
            one.reach = one.length
            self._batch.append(one)
        else:
            one.reach = (prefix + self._chunk // page * page) // page * page
            self._chunked = one
        self._chunk -= ceil(one.reach - prefix)
        self._inputs -= ceil(one.reach - prefix)
        self._taking.append(one)

    def _chunks(self, one: Served) -> None:
        """Batches of nothing but this prompt, until what is left of it fits into one."""
        while one.lease is not None:
            self.cache.checkpoint(one.lease, one.reach)
            self.cache.settle()
            if one.length - one.reach <= self.limits.chunk:
                return
            one.reach += self.limits.chunk // self.cache.page * self.cache.page
            self._allocate([one])

    def _take(self) -> None:
        """Nobody else is admitted with the batch: those in it get their room."""
        if self._taking:
            if self._chunk > 0 and self._inputs > 0:
                self._look(self._began)
            self._allocate(self._taking)
            self._taking = []

    def _allocate(self, some: Sequence[Served]) -> None:
        """Who finds no room is not in the cache any more."""
        cache, page = self.cache, self.cache.page
        cache.make_room(sum(one.needs(cache, one.reach) + (page if page > 1 else 0) for one in some))
        for one in some:
            if one.lease is not None and one.needs(cache, one.reach) <= cache.free:
                cache.extend(one.lease, max(one.reach, one.lease.allocated))
            elif one.lease is not None:
                cache.release(one.lease)
                one.lease = None

    def _end(self, at: float) -> None:
        """The batch has ended; the next one begins."""
        self._chunk = 0
        if self._chunked is not None and self._chunked.lease is not None:
            self.cache.checkpoint(self._chunked.lease, self._chunked.reach)
        elif not self._full:
            self._look(at)

    # -- replies

    def _grow(self, at: float) -> None:
        """Room for what the replies have grown before `at`, and for the next step."""
        cache, page = self.cache, self.cache.page
        ends = [(one, self._reached(one, at)) for one in self._running]
        needed = sum(one.needs(cache, end) for one, end in ends)
        if not needed:
            return
        cache.make_room(needed + (page * len(ends) if page > 1 else 0))
        for one, end in ends:
            if one.lease is not None and 0 < one.needs(cache, end) <= cache.free:
                cache.extend(one.lease, end)

    def _reached(self, one: Served, at: float) -> int:
        """The last token of a reply is computed when the next one is made."""
        tokens = one.moments.reply(at - 1.5 * JITTER)  # the step that has just ended was the last that took room
        return one.length + tokens - 1 + max(1, self.limits.ahead) if tokens else 0

    def _release(self, one: Served, reply: bytes) -> None:
        cache, lease = self.cache, one.lease
        if lease is None:
            return
        one.lease, end = None, one.length + len(reply) // ID_BYTES
        needed = max(0, cache.ceil(end) - cache.ceil(lease.allocated))
        if reply and cache.make_room(needed):
            lease.ids += reply
            cache.extend(lease, max(end, lease.allocated))
            cache.checkpoint(lease, end)
        cache.release(lease)
        cache.settle()

    # -- the queue

    def _look(self, at: float) -> None:
        """The first that waits is matched and does not fit, unless it is admitted right now."""
        if len(self._running) + len(self._batch) + (self._chunked is not None) >= self.limits.running:
            return
        waits = [one for one in self._waiting if one.moments.queued <= at]
        if waits:
            first = min(waits, key=lambda one: one.moments.admitted)
            self.cache.match(first.ids, first.length - 1, first.namespace)
            self._full = True
