"""Which waiting requests go into the next prefill batch, and how much of each (S3 of docs/fidelity.md).

A request is admitted while what it computes, the reply it may make and a page fit into the free and evictable tokens,
less what was promised to requests before it. A running request is promised a share of its reply: the new-token ratio,
which starts high, decays with every decode step and is set anew by a retraction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from agentx.engine.jobs import Job
from agentx.engine.nodes import ID_BYTES
from agentx.engine.radix import RadixCache

CLIP_NEW_TOKENS = 4096  # of a reply, for admission (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION)
RATIO_START = 0.7  # SGLANG_INIT_NEW_TOKEN_RATIO at schedule conservativeness 1
RATIO_LEAST = RATIO_START * 0.14  # SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR
RATIO_DECAY = (RATIO_START - RATIO_LEAST) / 600  # per decode step (SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS)
RETRACT_STEPS = 20  # decode steps that a retraction makes room for (SGLANG_RETRACT_DECODE_STEPS)


class Verdict(Enum):
    CONTINUE = "another request may fit"
    NO_TOKEN = "the pool is promised away"
    OTHER = "the batch is as long as it may be"


class Shape(NamedTuple):
    """What of one request is computed now: tokens [prefix, prefix + extend); `reply` is what is promised to it."""

    prefix: int
    extend: int
    reply: int


@dataclass(slots=True)
class Admission:
    """The making of one prefill batch. `jobs[i]` computes `spans[i]`; `loaded` tokens come back from the host."""

    cache: RadixCache
    inputs: int
    chunk: int
    promised: float = 0.0  # tokens, replies included
    taken: int = 0  # tokens that this batch allocates
    jobs: list[Job] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    chunked: Job | None = None
    loaded: int = 0

    def promise_replies(self, running: Iterable[Job], ratio: float) -> None:
        for job in running:
            left = min(job.max_new - job.out, CLIP_NEW_TOKENS)
            self.promised += left * (1.0 if job.request.ignore_eos else ratio)

    @property
    def remaining(self) -> float:
        return self.cache.free + self.cache.evictable - self.promised

    def verdict(self) -> Verdict:
        if self.remaining <= 0 or self.cache.free + self.cache.evictable <= self.taken:
            return Verdict.NO_TOKEN
        return Verdict.OTHER if self.inputs <= 0 or self.chunk <= 0 else Verdict.CONTINUE

    def proceed(self, job: Job) -> bool:
        """Add the next chunk of a request that is being prefilled. False when not even a page is left for it."""
        whole = job.length - job.computed
        limit = min(self.chunk, int(self.remaining))
        if limit <= 0:  # it must go on to give its pages back
            limit = min(self.chunk, self.cache.free + self.cache.evictable - self.cache.page)
        if limit <= 0:
            return False
        extend = min(whole, limit)
        last = extend == whole
        self._take(job, Shape(job.computed, extend, min(job.max_new, CLIP_NEW_TOKENS) if last else 0))
        self.chunked = None if last else job
        return True

    def admit(self, job: Job) -> Verdict:
        """Match a waiting request against the cache (S2) and add it, or say why not."""
        cache = self.cache
        ids = job.ids()
        match = cache.match(ids, job.length - 1, job.namespace)
        reply = min(max(job.max_new - job.out, 0), CLIP_NEW_TOKENS)
        needed = job.length - match.device + reply + cache.page
        cache.lock(match.device_node)  # its own prefix is no room for it
        try:
            shape = self._shape(job, match.device + match.host, needed)
            if isinstance(shape, Verdict):
                return shape
            lease, loaded = cache.open(ids, job.namespace, match)
            if match.host and not loaded:  # nothing was loaded: recomputing it may not fit
                shape = self._shape(job, match.device, needed)
                if isinstance(shape, Verdict):
                    cache.release(lease)
                    return shape
        finally:
            cache.unlock(match.device_node)
        lease.prompt = len(job.request.prompt) // ID_BYTES
        job.lease, job.computed = lease, shape.prefix
        job.hit = (match.device, loaded)
        self.loaded += loaded
        if shape.prefix + shape.extend < job.length:
            self.chunked = job
        self._take(job, shape)
        return self.verdict()

    def _shape(self, job: Job, prefix: int, needed: int) -> Shape | Verdict:
        if needed >= self.remaining:
            return Verdict.NO_TOKEN
        extend = job.length - prefix
        if self.cache.ceil(extend) <= self.chunk:
            return Shape(prefix, extend, min(job.max_new, CLIP_NEW_TOKENS))
        page = self.cache.page
        end = (prefix + self.chunk // page * page) // page * page
        return Shape(prefix, end - prefix, 0) if end > prefix else Verdict.OTHER

    def _take(self, job: Job, shape: Shape) -> None:
        paged = self.cache.ceil(shape.extend)
        self.taken += paged + self.cache.page
        self.promised += paged + self.cache.page + shape.reply
        self.inputs -= paged
        self.chunk -= paged
        self.jobs.append(job)
        self.spans.append((shape.prefix, shape.prefix + shape.extend))
