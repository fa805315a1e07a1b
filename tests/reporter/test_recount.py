"""The figures once more, by an independent slow path from the raw records: numpy, no code of the reporter's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.reporter.metrics import measure

chunks = st.lists(st.tuples(st.integers(1, 5_000_000), st.integers(1, 9)), min_size=1, max_size=8)
replies = st.tuples(
    st.sampled_from("abc"),
    st.integers(0, 90),  # sent
    st.integers(0, 3),  # late by
    chunks,
    st.booleans(),  # answered
    st.integers(1, 500),  # prompt tokens
    st.none() | st.integers(0, 100),  # percent cached
)


@st.composite
def runs(draw):
    """Plain rows: (session, sent, due, [(seconds, tokens)], ok, prompt, cached)."""
    rows = []
    for session, sent, late, flat, ok, prompt, percent in draw(st.lists(replies, max_size=12)):
        stream = [(micros / 1e6, tokens) for micros, tokens in sorted(flat)]
        cached = None if percent is None else prompt * percent // 100
        rows.append((session, float(sent), float(sent - late), stream, ok, prompt, cached))
    return rows


@settings(max_examples=150)
@given(rows=runs())
def test_recount(attempt, run, rows):
    made = [
        attempt(
            session, turn, sent=sent, due=due, chunks=stream, told=sum(n for _, n in stream), prompt=prompt,
            cached=cached, failed=None if ok else "http",
        )
        for turn, (session, sent, due, stream, ok, prompt, cached) in enumerate(rows)
    ]  # fmt: skip
    found, done = measure(run(made)), [row for row in rows if row[4]]
    same(found.latency.ttft, [row[3][0][0] for row in done])
    same(found.latency.ttft_from_due, [row[1] - row[2] + row[3][0][0] for row in done])
    same(found.latency.latency, [row[3][-1][0] for row in done])
    same(found.latency.lag, [row[1] - row[2] for row in rows])
    same(found.latency.tpot, [pace for row in done if (pace := tpot(row[3])) is not None])
    same(found.interactivity.end_to_end and found.latency.latency, [row[3][-1][0] for row in done])

    flow = found.throughput.completed
    assert (flow.output.tokens or 0) == sum(tokens for row in done for _, tokens in row[3])
    told = [row for row in done if row[6] is not None]
    assert (found.reuse.by_request.told, found.reuse.by_request.of) == (len(told), len(done))
    assert found.reuse.by_request.cached == (sum(row[6] for row in told) if told else None)
    if done:
        seconds = max(row[1] + row[3][-1][0] for row in done) - min(row[1] for row in done)
        assert flow.per_second(flow.output) == pytest.approx(flow.output.tokens / seconds)
        # the window goes from the first send to the last end: all that came lies in it
        everything = sum(tokens for row in rows for _, tokens in row[3])
        assert found.throughput.emitted.output.tokens == everything
    assert found.attempts == found.completed + sum(one.count for one in found.failures)


def tpot(stream):
    """Seconds per token after the moment of the first."""
    times, counts = np.array([at for at, _ in stream]), np.array([tokens for _, tokens in stream])
    later = counts[times > times[0] + 1.5e-6].sum()
    return (times[-1] - times[0]) / later if later and times[-1] > times[0] else None


def same(spread, values):
    if not values:
        assert spread is None
        return
    assert spread.n == len(values)
    assert spread.percentiles == pytest.approx(np.percentile(values, (5, 25, 50, 75, 90, 95, 99)), rel=1e-6, abs=1e-9)
    assert spread.mean == pytest.approx(np.mean(values), rel=1e-6, abs=1e-9)
