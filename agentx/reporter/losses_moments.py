"""When a server did what with the requests of a run, as far as a client can know it.

A request is admitted when a batch begins, which is when the one before it ends, and that shows in what clients get.
What a server tells of its queue leaves out the time before it (HTTP, tokenizer), so `sent` and the queue together lie
before that beginning, by what is nearly the same for all requests: the least that is seen (but for a tenth of the
requests) is added to all. Where the queue is not told, the last thing that clients got of a batch before the request's
own first token ended the batch before its own, if it came after the request was sent: no reply grows while prompts are
computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentx.chunks import UNTOLD, Chunks
from agentx.core import Attempt
from agentx.reporter.turns import reply_tokens

JITTER = 0.002  # s: what one batch made reaches its clients within that
SELDOM = 0.1  # of the requests: what seems to be their time before the queue is chance

Seconds = NDArray[np.float64]
Tokens = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Seconds of the run: sent, in the queue, admitted, at its first token, over. The last two are None for a request
    of which nothing was heard. At `grown[i]` its reply had `tokens[i]` tokens, the first one included."""

    sent: float
    queued: float
    admitted: float
    first: float | None
    over: float | None
    grown: Seconds
    tokens: Tokens

    def reply(self, at: float) -> int:
        """Tokens of the reply that came before `at`."""
        place = int(self.grown.searchsorted(at))
        return int(self.tokens[place - 1]) if place else 0


def moments_of(attempts: Sequence[Attempt]) -> list[Moments]:
    """Of the requests to one server."""
    arrived = [_arrived(attempt) for attempt in attempts]
    firsts = [attempt.first for attempt in attempts if attempt.first is not None]
    ends = np.sort(np.concatenate([np.array(firsts), *(times[1:] for times, _ in arrived)]))
    begins = [_began(attempt, ends) for attempt in attempts]
    delay = _delay(attempts, begins)
    return [
        _moments(attempt, began, delay, *each) for attempt, began, each in zip(attempts, begins, arrived, strict=True)
    ]


def _moments(attempt: Attempt, began: float | None, delay: float, grown: Seconds, tokens: Tokens) -> Moments:
    sent, first = attempt.sent, attempt.first if attempt.first is not None else attempt.end
    if attempt.queue_seconds is not None:
        queued, admitted = sent + delay, sent + delay + attempt.queue_seconds
    else:
        queued, admitted = sent, sent if began is None else began + JITTER
    admitted = max(sent, round(admitted, 6))  # who is of one batch differs by the last bits of a sum
    if first is None:
        return Moments(sent, min(queued, admitted), admitted, None, None, grown, tokens)
    admitted = min(admitted, max(sent, first - JITTER))
    first = max(first, math.nextafter(admitted, math.inf))
    return Moments(sent, min(queued, admitted), admitted, first, max(first, attempt.end or first), grown, tokens)


def _began(attempt: Attempt, ends: Seconds) -> float | None:
    """The last end of a batch between a request's send and the batch that made its first token; None: there is none."""
    if attempt.first is None:
        return None
    place = int(ends.searchsorted(attempt.first - 2 * JITTER))
    end = float(ends[place - 1]) if place else -math.inf
    return end if end >= attempt.sent else None


def _delay(attempts: Sequence[Attempt], begins: Sequence[float | None]) -> float:
    """Seconds between a request's send and its time in the queue, with room for jitter; 0 where nothing tells it."""
    seen = sorted(
        began - attempt.sent - attempt.queue_seconds
        for attempt, began in zip(attempts, begins, strict=True)
        if began is not None and attempt.queue_seconds is not None and began > attempt.sent + attempt.queue_seconds
    )
    return seen[int(len(seen) * SELDOM)] + JITTER if seen else 0.0


def _arrived(attempt: Attempt) -> tuple[Seconds, Tokens]:
    """When the chunks of a reply came, and how many tokens it then had; evenly where chunks do not tell."""
    micros, counts = np.frombuffer(Chunks.of(attempt.chunks).flat, np.int64).reshape(-1, 2).T
    if (counts == UNTOLD).any():
        each = max(1.0, (reply_tokens(attempt) or 0) / len(counts))
        return attempt.sent + micros / 1e6, np.floor(each * np.arange(1, len(counts) + 1))
    return attempt.sent + micros / 1e6, np.cumsum(counts, dtype=np.float64)
