"""The run again through two caches of the embedded engine: one without limits, one with the server's own pool.

Tokens are stand-ins: four bytes by the identity of a token, so that prompts share exactly what they shared when they
were sent, the chat template included. A prompt can be found from its first token on, its reply from the end on. What a
prompt finds is asked of the unlimited cache when the request is sent, and of the limited one when it left the queue
(where the server tells how long it waited; else when it was sent).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache as made_once
from functools import partial

import numpy as np

from agentx.content import Salting
from agentx.core import Attempt, Piece, Session
from agentx.engine.host import HostedCache
from agentx.engine.nodes import Lease
from agentx.engine.radix import RadixCache
from agentx.reporter.losses_graves import Grave, Graves
from agentx.reporter.turns import reply_tokens
from agentx.reuse_template import Frames, Span, Template, marker_span
from agentx.wire.history import introduced
from agentx.wire.messages import Shape, arranged
from agentx.wire.tooltext import definitions

UNLIMITED = 1 << 60
_STRIDE = np.uint32(2654435761)  # odd, so that positions of a stream stay apart


@dataclass(frozen=True, slots=True)
class Pool:
    """What is known of the server's cache: tokens of the device, of the host tier (0: none), and its rules."""

    tokens: int
    page: int = 1
    policy: str = "lru"
    host: int = 0
    write: str = "write_through"
    bigram: bool = False

    def cache(self, graves: Graves) -> RadixCache:
        if not self.host:
            return RadixCache(self.tokens, self.page, self.policy, bigram=self.bigram, subscriber=graves.heard)
        return HostedCache(
            self.tokens,
            self.page,
            self.policy,
            host_capacity=self.host,
            write=self.write,
            bigram=self.bigram,
            subscriber=graves.heard,
        )


@dataclass(slots=True)
class Found:
    """Leading prompt tokens of an attempt that were computed when it was sent; that the limited cache still held on one
    of its tiers; and that it gave, after loading back. `lost`: what became of those computed and not held, as far as it
    is known."""

    computed: int = 0
    held: int | None = None
    given: int | None = None
    lost: tuple[Grave, ...] = ()


Make = Callable[[], bytes]  # a prompt's ids: made when it is sent, forgotten when it is over
Request = tuple[Attempt, Make, bytes]  # and its namespace


@dataclass(slots=True)
class _Request:
    attempt: Attempt
    make: Make
    namespace: bytes
    ids: bytes = b""
    found: Found = field(default_factory=Found)
    lease: Lease | None = None

    @property
    def length(self) -> int:
        return len(self.ids) // 4

    def moments(self) -> Iterator[tuple[float, int]]:
        """(when, which step): sent, admitted, first token, over. What ends at a moment is there for what begins."""
        attempt = self.attempt
        yield attempt.sent, 2
        first = attempt.first if attempt.first is not None else attempt.end
        admitted = attempt.sent + (attempt.queue_seconds or 0.0)
        if first is None:
            yield admitted, 3
            return
        admitted = min(admitted, max(attempt.sent, first))
        first = max(first, math.nextafter(admitted, math.inf))
        yield admitted, 3
        yield first, 0
        yield max(first, attempt.end or first), 1


class StandIns:
    """Prompts of a run as bytes, four for each token."""

    def __init__(self, template: Template, shape: Shape = "plain") -> None:
        self._template, self._shape = template, shape
        self._bases: dict[object, int] = {}

    def prompt(self, session: Session, turn: int, salts: Salting) -> bytes:
        """The ids of a turn as it is sent with recorded history."""

        def cut(piece: Piece) -> list[Span]:
            salted = ((run, "" if run.stream.kind == "literal" else salts(run.layer)) for run in runs(piece))
            return [Span((run.stream, salt), run.start, run.stop) for run, salt in salted]

        runs, frames = session.piece_runs, Frames(self._template, session, cut)
        spans, before, number = list[Span](), None, 0
        pieces = introduced(session, turn)
        for (_, piece), here in zip(pieces, arranged(session, pieces, self._shape), strict=True):
            spans += frames.around(here, before, piece, number).spans
            number += len(definitions(session, piece, number)) if here.definition else 0
            before = here
        if self._template.start:
            spans.append(marker_span("assistant", self._template.start))
        return b"".join(self.stretch(span.key, span.start, span.stop) for span in spans)

    def stretch(self, key: object, start: int, stop: int) -> bytes:
        """Tokens `start ... stop - 1` of whatever `key` names."""
        base = self._bases.get(key)
        if base is None:
            digest = hashlib.blake2b(repr(key).encode(), digest_size=4).digest()
            base = self._bases[key] = int.from_bytes(digest, "little")
        ids = np.arange(start, stop, dtype=np.uint32) * _STRIDE + np.uint32(base)
        data: bytes = ids.astype("<u4").tobytes()
        return data


class Shadow:
    """Plays a run's attempts through both caches, in the order of their own times.

    With `pool_alone` there is no unlimited one: what was computed, and lost, is not asked.
    """

    def __init__(self, page: int, pool: Pool | None, *, pool_alone: bool = False) -> None:
        self._all = None if pool_alone else RadixCache(UNLIMITED, page)
        self._graves = Graves()
        self._limited = None if pool is None else pool.cache(self._graves)

    def play(self, requests: Sequence[Request], stand_ins: StandIns) -> list[Found]:
        """(attempt, its ids, namespace) of each request that the server took -> what each found."""
        made = [_Request(*request) for request in requests]
        steps = (self._computed, self._over, self._sent, self._admitted)
        events = ((at, step, number) for number, one in enumerate(made) for at, step in one.moments())
        for at, step, number in sorted(events):
            self._graves.working(at, number)
            steps[step](made[number], number, stand_ins)
        return [one.found for one in made]

    def _sent(self, one: _Request, number: int, stand_ins: StandIns) -> None:
        one.ids = one.make()
        if self._all is not None:
            one.found.computed = self._all.match(one.ids, one.length - 1, one.namespace).device

    def _admitted(self, one: _Request, number: int, stand_ins: StandIns) -> None:
        cache = self._limited
        if cache is None:
            return
        match = cache.match(one.ids, one.length - 1, one.namespace)
        held = match.device + match.host
        one.found.held = held
        if self._all is not None:
            one.found.lost = tuple(self._graves.of(one.ids, held, one.found.computed))
        one.lease, one.found.given = _opened(cache, one)

    def _computed(self, one: _Request, number: int, stand_ins: StandIns) -> None:
        if self._all is not None:
            everything, _ = _opened(self._all, one)
            if everything is not None:
                self._all.checkpoint(everything, one.length)
                self._all.release(everything)
        cache = self._limited
        if cache is None:
            return
        if one.lease is None:  # there was no room when it was admitted: it waited
            one.lease, _ = _opened(cache, one)
        if one.lease is not None:
            cache.checkpoint(one.lease, one.length)
            cache.settle()

    def _over(self, one: _Request, number: int, stand_ins: StandIns) -> None:
        cache, lease, length = self._limited, one.lease, one.length
        one.ids, one.lease = b"", None
        if cache is None or lease is None:
            return
        reply = max(0, (reply_tokens(one.attempt) or 0) - 1)  # the last token is never computed
        if one.attempt.ok and reply and cache.make_room(cache.ceil(length + reply) - cache.ceil(length)):
            lease.ids += stand_ins.stretch(("reply", number), 0, reply)
            cache.extend(lease, length + reply)
            cache.checkpoint(lease, length + reply)
        cache.release(lease)
        cache.settle()


def _opened(cache: RadixCache, one: _Request) -> tuple[Lease | None, int]:
    """A lease with room for the whole prompt (None when the running ones leave none), and what the cache gave of it."""
    match = cache.match(one.ids, one.length - 1, one.namespace)
    lease, loaded = cache.open(one.ids, one.namespace, match)
    if not cache.make_room(cache.ceil(one.length) - cache.ceil(lease.allocated)):
        cache.release(lease)
        return None, match.device + loaded
    cache.extend(lease, one.length)
    return lease, match.device + loaded


def requests_of(
    sent: Sequence[Attempt],
    sessions: Mapping[str, Session],
    stand_ins: StandIns,
    salts: Mapping[tuple[str, int], tuple[Salting, bytes]],
    *,
    keep: bool = False,
) -> list[Request]:
    """`salts`: of each play, its salting and its namespace. With `keep` a prompt is made once for several plays."""
    made: list[Request] = []
    for attempt in sent:
        salting, namespace = salts[attempt.session, attempt.play]
        make = partial(stand_ins.prompt, sessions[attempt.session], attempt.turn, salting)
        made.append((attempt, made_once(make) if keep else make, namespace))
    return made
