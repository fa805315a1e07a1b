"""When requests were admitted, from what their own records and those of others tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentx.core import Attempt, Chunk
from agentx.reporter.losses_moments import JITTER, moments_of

# one reply that grows every 0.1 s from 1.0 to 2.0 s, stands still while prompts are computed, and goes on at 3.0 s
GROWING = [(1.0 + step / 10, 1) for step in range(11)] + [(3.0, 1), (3.1, 1)]

QUEUES = [  # sent, time in the queue that the server told, first token -> admitted
    (1.55, 0.40, 3.0, 2.0 + JITTER),  # told 1.95: the batch began 0.05 s later, and that is before the queue
    (1.95, 0.00, 3.0, 2.0 + JITTER),
    (1.55, None, 3.0, 2.0 + JITTER),  # not told: when the replies stopped growing
    (2.40, None, 3.0, 2.40),  # nothing ended between its send and its first token
    (0.20, None, 0.5, 0.20),  # nobody else was there
    (0.00, 9.00, 3.0, 3.0 - JITTER),  # a queue that is longer than the wait
]


@pytest.mark.parametrize(("sent", "queue", "first", "admitted"), QUEUES)
def test_a_request_is_admitted_when_the_batch_before_its_own_ends(attempt, sent, queue, first, admitted) -> None:
    others = [attempt("a", 0, chunks=GROWING), attempt("b", 0, sent=sent, chunks=[(first - sent, 1)])]
    others[1] = replace(others[1], queue_seconds=queue)
    found = moments_of(others)[1]
    assert found.admitted == pytest.approx(admitted)
    assert found.sent <= found.queued <= found.admitted < found.first <= found.over


def test_what_is_before_the_queue_is_added_where_no_batch_tells_it(attempt) -> None:
    # ten were admitted 0.05 s after what they told; one came when the server was idle
    waited = [attempt("b", turn, sent=1.95, chunks=[(1.05, 1)]) for turn in range(10)]
    idle = attempt("c", 0, sent=8.0, chunks=[(0.5, 1)])
    made = [replace(one, queue_seconds=0.0) for one in (*waited, idle)]
    found = moments_of([attempt("a", 0, chunks=GROWING), *made])[-1]
    assert found.queued == found.admitted == pytest.approx(8.05 + JITTER)


COUNTS = [  # tokens of its chunks, tokens of the reply -> tokens before 0.25, 0.5 and 9 s
    ((1, 2, 3), 6, (1, 3, 6)),
    ((None, None, None), 6, (2, 4, 6)),  # not told by chunk: evenly
    ((None, None, None), None, (1, 2, 3)),  # not told at all: one each
    ((), 6, (0, 0, 0)),  # no stream: it is there at its end
]


@pytest.mark.parametrize(("counts", "tokens", "grown"), COUNTS)
def test_a_reply_has_the_tokens_that_came_before(counts, tokens, grown) -> None:
    chunks = tuple(Chunk(micros, count) for micros, count in zip((200_000, 400_000, 600_000), counts, strict=False))
    one = Attempt("a", 0, 0, 0, 0, 0.0, 0.0, 10, 6, chunks=chunks, completion_tokens=tokens, first=0.2, end=0.7)
    (found,) = moments_of([one])
    assert tuple(found.reply(at) for at in (0.25, 0.5, 9.0)) == grown


def test_what_was_never_heard_of_again_has_no_end(attempt) -> None:
    lost = replace(attempt("a", 0), first=None, last=None, end=None, chunks=(), queue_seconds=0.5)
    (found,) = moments_of([lost])
    assert (found.admitted, found.first, found.over) == (0.5, None, None)
    assert moments_of([]) == []
