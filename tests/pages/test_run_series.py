"""What charts are drawn from: tokens by tier, rates and requests in flight through time, and lanes."""

from __future__ import annotations

import pytest

from agentx.core import Cached
from agentx.pages.run_series import COLUMNS, FAILED, LANES, PAUSE, PREFILL, QUEUE, REPLY, lanes_of, some, through


def test_tokens_by_tier_sum_to_the_prompts(attempt) -> None:
    attempts = [
        attempt("a", 0, sent=0.0, chunks=[(1.0, 1), (2.0, 1)], prompt=100, cached=Cached(None, 60, 20)),
        attempt("b", 0, sent=5.0, chunks=[(1.0, 1), (5.0, 1)], prompt=50, cached=30),
        attempt("c", 0, sent=6.0, chunks=[(1.0, 1)], prompt=70, cached=None),  # not told: left out
    ]
    seen = through(attempts)
    assert seen is not None
    sums = [sum(column[tier] for column in seen.reused if column) for tier in range(5)]
    assert sums == [60, 20, 0, 30, 40]  # device, host, storage, unknown tier, computed
    assert sum(rate * seen.width for rate in seen.rate) == pytest.approx(6)  # two tokens a reply
    flown = sum(flying * seen.width for flying in seen.flying)
    assert flown == pytest.approx(2.0 + 5.0 + 1.0)  # seconds in flight
    assert len(seen.rate) == COLUMNS
    assert through([]) is None


def test_lanes(run, attempt) -> None:
    """A pause, a queue, a prefill, a reply; a failed turn; a subagent on a lane of its own."""
    attempts = [
        attempt("s", 0, sent=0.0, chunks=[(1.0, 1), (3.0, 1)], queue_seconds=0.4),
        attempt("s", 1, sent=5.0, due=4.5, chunks=[(1.0, 1), (2.0, 1)]),
        attempt("s", 2, sent=9.0, chunks=[], failed="http", thread=1, end=9.5),
    ]
    rows, left = lanes_of(run(attempts), {("s", 1): "tool"})
    assert [name for name, _ in rows] == ["s", "s / 1"]
    assert [(bar.kind, bar.start, bar.end) for bar in rows[0][1]] == [
        (QUEUE, 0.0, 0.4), (PREFILL, 0.4, 1.0), (REPLY, 1.0, 3.0),
        (PAUSE, 3.0, 4.5), (PREFILL, 5.0, 6.0), (REPLY, 6.0, 7.0),
    ]  # fmt: skip
    assert rows[0][1][3].told == "tool: 1.5 s"
    assert [bar.kind for bar in rows[1][1]] == [FAILED]
    assert left == 0


def test_of_many_some_are_drawn(run, attempt) -> None:
    many = [attempt(f"s{at:03d}", 0, lane=at) for at in range(LANES + 7)]
    rows, left = lanes_of(run(many), {})
    assert (len(rows), left) == (LANES, 7)
    assert len(some(many, 10)) <= 10
    assert some(many[:3], 10) == many[:3]
