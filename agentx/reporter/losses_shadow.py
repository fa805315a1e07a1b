"""The run again through two caches of the embedded engine: one without limits, one with the server's own pool.

Tokens are stand-ins: four bytes by the identity of a token, so that prompts share exactly what they shared when they
were sent, the chat template included. The unlimited cache is asked what it has of a prompt when that is sent; it has
what others had the first token of. The limited one is used as the server used its own, at the times that the run tells:
`losses_moments.py` has those, `losses_serving.py` what a server does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache as made_once
from functools import partial
from itertools import chain, count

import numpy as np

from agentx.content import Salting
from agentx.core import Attempt, Piece, Session
from agentx.engine.host import HostedCache
from agentx.engine.radix import RadixCache
from agentx.reporter.losses_graves import Grave, Graves
from agentx.reporter.losses_moments import moments_of
from agentx.reporter.losses_serving import Limits, Served, Serving
from agentx.reporter.turns import reply_tokens
from agentx.reuse_template import Frames, Span, Template, marker_span
from agentx.run_replies import owned
from agentx.wire.history import introduced
from agentx.wire.messages import Shape, arranged
from agentx.wire.tooltext import definitions

UNLIMITED = 1 << 60
NO_LIMITS = Limits()
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
    limits: Limits = NO_LIMITS

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
        self._limited = None if pool is None else Serving(pool.cache(self._graves), pool.limits)

    def play(self, requests: Sequence[Request], stand_ins: StandIns) -> list[Found]:
        """(attempt, its ids, namespace) of each request that the server took -> what each found."""
        moments = moments_of([attempt for attempt, _, _ in requests])
        made = [
            Served(attempt, each, make, name, partial(stand_ins.stretch, ("reply", number), 0))
            for number, ((attempt, make, name), each) in enumerate(zip(requests, moments, strict=True))
        ]
        found = [Found() for _ in made]
        steps = (self._computed, self._over, self._sent, self._arrived, self._admitted)
        for at, step, _, number in sorted(chain.from_iterable(map(_moves, made, count()))):
            self._graves.working(at, number)
            steps[step](made[number], found[number], at)
        return found

    def _sent(self, one: Served, found: Found, at: float) -> None:
        one.ids = one.make()
        if self._all is not None:
            found.computed = self._all.match(one.ids, one.length - 1, one.namespace).device

    def _arrived(self, one: Served, found: Found, at: float) -> None:
        if self._limited is not None:
            self._limited.arrived(one, at)

    def _admitted(self, one: Served, found: Found, at: float) -> None:
        if self._limited is None:
            return
        found.held, found.given = self._limited.admit(one, at)
        if self._all is not None:
            found.lost = tuple(self._graves.of(one.ids, found.held, found.computed))

    def _computed(self, one: Served, found: Found, at: float) -> None:
        if self._all is not None:
            match = self._all.match(one.ids, one.length - 1, one.namespace)
            lease, _ = self._all.open(one.ids, one.namespace, match)
            self._all.extend(lease, one.length)
            self._all.checkpoint(lease, one.length)
            self._all.release(lease)
        if self._limited is not None:
            self._limited.computed(one, at)

    def _over(self, one: Served, found: Found, at: float) -> None:
        if self._limited is not None:
            tokens = reply_tokens(one.attempt) if one.attempt.ok else None
            kept = owned(tokens, one.attempt.extra.get("spec")) if tokens else 0
            self._limited.over(one, at, one.reply(kept))
        one.ids = b""


def _moves(one: Served, number: int) -> Iterator[tuple[float, int, tuple[float, float], int]]:
    """(when, which step, in which order, whose). What ends at a moment is there for what begins."""
    each = one.moments
    order = round(each.admitted, 3), each.sent  # first come, first served
    yield each.sent, 2, order, number
    yield each.queued, 3, order, number
    yield each.admitted, 4, order, number
    if each.first is not None and each.over is not None:
        yield each.first, 0, order, number
        yield each.over, 1, order, number


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
