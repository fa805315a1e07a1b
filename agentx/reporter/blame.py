"""What the time to the first token of the slowest turns was made of.

A turn waits while the server reads other prompts. So the time from its send to its first token is cut where other
requests got theirs: each stretch stood behind the request that ended it (or behind those that ended it together, by the
tokens that were computed for each), and what is left is its own. Where the server tells how long a request queued, its
own time begins when it left the queue, and what no other request's first token ends before that is *waiting*: for room,
or for a batch to end. Prompts of which little was computed ended no wait. Why a prompt had to be computed is told by
what the server's KV events say of it, else the shadow cache: what was evicted, when, and for whom.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from agentx.core import Attempt
from agentx.reporter.losses import Losses, TurnLoss
from agentx.reporter.throughput import MEASURED, cached_tokens
from agentx.results import RunResults

SLOW = 0.95  # turns above this quantile of the time to the first token are slow
_AT = itemgetter(0)
MOST = 200  # slow turns that are taken apart
LITTLE, PART = 512, 0.05  # computed tokens, and share of those of the stretch, under which a prompt ends no wait


class Lost(NamedTuple):
    """Tokens of a prompt that had been in the cache: why they were gone, the last time some went, and for whom (None:
    it is not known). `measured`: by KV events; for whom is inferred then."""

    tokens: int
    cause: str
    at: float
    by: Attempt | None
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """`seconds` of a wait. `kind`: behind (another request's prompt), waiting, own. `computed`: prompt tokens that the
    server did not have; None where it did not tell."""

    kind: str
    seconds: float
    attempt: Attempt | None = None
    computed: int | None = None
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True)
class SlowTurn:
    """`parts` sum to `ttft`, seconds from its send; `lag` is what lies before that. `queue_told`: by the server."""

    attempt: Attempt
    ttft: float
    lag: float
    queue_told: bool
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Blame:
    """The slow turns, slowest first: those of `over` seconds and more. `slow` of them in all. `source`: how what was
    lost is known, as in `Losses`."""

    over: float | None = None
    slow: int = 0
    turns: tuple[SlowTurn, ...] = ()
    source: str | None = None


@dataclass(slots=True)
class _Run:
    """The requests that got a first token, by when; and what each lost."""

    firsts: Sequence[tuple[float, Attempt]]
    losses: dict[int, TurnLoss] = field(default_factory=dict)
    sent: Sequence[Attempt] = ()
    measured: bool = False


def blame(run: RunResults, losses: Losses, over: float | None = None) -> Blame:
    """The turns whose time to the first token is `over` seconds (the plan's objective) or more; without, the slowest
    twentieth. Empty where no turn got a token."""
    timed = sorted(
        (
            (one.first - one.sent, one)
            for one in run.attempts
            if one.phase == MEASURED and one.ok and one.first is not None
        ),
        key=lambda pair: -pair[0],
    )
    if not timed:
        return Blame()
    if over is None:
        over = timed[int(len(timed) * (1 - SLOW))][0]
    slow = [pair for pair in timed if pair[0] >= over]
    firsts = sorted(
        ((one.first, one) for one in run.attempts if one.first is not None), key=lambda pair: (pair[0], pair[1].sent)
    )
    known = _Run(firsts, {id(turn.attempt): turn for turn in losses.turns}, losses.sent, losses.measured)
    return Blame(over, len(slow), tuple(_slow_turn(one, ttft, known) for ttft, one in slow[:MOST]), losses.source)


def _slow_turn(one: Attempt, ttft: float, run: _Run) -> SlowTurn:
    first = one.sent + ttft
    told = one.queue_seconds is not None
    own = min(first, one.sent + (one.queue_seconds or 0.0)) if told else first
    parts, at = [], one.sent
    for until, others in groupby(_before(one, own, first, run), key=itemgetter(0)):
        together = [other for _, other in others]  # one batch: each has its share by what was computed
        whole = sum(computed(other) or 0 for other in together)
        for other in together:
            share = (computed(other) or 0) / whole if whole else 1 / len(together)
            parts.append(Part("behind", (until - at) * share, other, computed(other), _lost(other, run)))
        at = until
    if told and own > at:
        parts.append(Part("waiting", own - at))
        at = own
    parts.append(Part("own", first - at, one, computed(one), _lost(one, run)))
    return SlowTurn(one, ttft, one.lag, told, tuple(parts))


def _before(one: Attempt, own: float, first: float, run: _Run) -> Iterator[tuple[float, Attempt]]:
    """The requests that got their first token while this one waited, in order, those of little computing left out."""
    begin, end = bisect_right(run.firsts, one.sent, key=_AT), bisect_right(run.firsts, own, key=_AT)
    others = [(at, other) for at, other in run.firsts[begin:end] if at < first and other is not one]
    sizes = [computed(other) for _, other in others]
    whole = sum(size or 0 for size in sizes) + (computed(one) or 0)
    for (at, other), size in zip(others, sizes, strict=True):
        if size is None or size >= max(LITTLE, PART * whole):
            yield at, other


def computed(one: Attempt) -> int | None:
    """Prompt tokens that the server did not have."""
    cached = cached_tokens(one)
    return None if one.prompt_tokens is None or cached is None else one.prompt_tokens - cached


def _lost(one: Attempt, run: _Run) -> tuple[Lost, ...]:
    """What was gone, by cause and by whose room it made; the most tokens first."""
    loss = run.losses.get(id(one))
    found: dict[tuple[str, str | None, int], Lost] = {}
    for grave in () if loss is None else loss.graves:
        by = None if grave.by is None else run.sent[grave.by]
        key = (grave.cause, None, 0) if by is None else (grave.cause, by.session, by.play)
        before = found.get(key)
        tokens, at = (
            (grave.tokens, grave.at) if before is None else (before.tokens + grave.tokens, max(before.at, grave.at))
        )
        found[key] = Lost(tokens, grave.cause, at, by, run.measured)
    return tuple(sorted(found.values(), key=lambda lost: -lost.tokens))
