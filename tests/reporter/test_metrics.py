"""Figures by hand; then all of them once more by an independent slow path: numpy on raw rows, no code of ours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.reporter.metrics import measure


def test_failures_by_kind(attempt, run):
    made = [
        attempt("a", failed="http", status=500),
        attempt("b", failed="http", status=503),
        attempt("c", failed="http", status=500),
        attempt("d", failed="refused", status=None),
        attempt("e"),
    ]
    found = measure(run(made))
    assert [(one.kind, one.count, one.statuses) for one in found.failures] == [
        ("http", 3, {500: 2, 503: 1}),
        ("refused", 1, {}),
    ]
    assert found.failures[0].example == "http happened"
    assert (found.attempts, found.completed, found.latency.ttft.n, found.latency.lag.n) == (5, 1, 1, 5)


def test_replies_by_what_was_asked(attempt, run):
    # asked 4 each: 4 came; 1 came, 3 are missing; 6 came; nobody told
    replies = [([(1, 4)], 4), ([(1, 1)], 1), ([(1, 6)], 6), ([(1, None)], None)]
    found = measure(
        run([attempt("a", turn, osl=4, chunks=chunks, told=told) for turn, (chunks, told) in enumerate(replies)])
    ).lengths
    assert (found.shorter, found.longer, found.missing, found.untold) == (1, 1, 3, 1)
    assert found.osl.n == 3


def test_only_measured_attempts_count(attempt, run):
    found = measure(run([attempt("a", phase="warmup"), attempt("b"), attempt("c", phase="warmup")]))
    assert (found.attempts, found.sessions, found.other_phases) == (1, 1, {"warmup": 2})
    assert found.latency.ttft.n == 1


def test_all_failed(attempt, run):
    found = measure(run([attempt("a", turn, failed="http", chunks=[], told=None, status=500) for turn in range(3)]))
    latency = found.latency
    assert (found.completed, latency.ttft, latency.tpot, latency.latency, latency.inter_chunk) == (
        0,
        None,
        None,
        None,
        None,
    )
    assert (found.interactivity.streaming, found.interactivity.end_to_end) == (None, None)
    assert found.throughput.completed.output.tokens is None
    assert found.jobs.latency is None


def test_replies_of_one_token(attempt, run):
    found = measure(run([attempt("a", turn, chunks=[(1, 1)], told=1, osl=1) for turn in range(2)]))
    assert (found.latency.tpot, found.latency.tpot_missing, found.interactivity.streaming) == (None, 2, None)
    assert found.interactivity.end_to_end.mean == 1.0  # one token, one second
    assert found.throughput.completed.output.tokens == 2


def test_nothing_was_sent(run):
    found = measure(run())
    assert (found.attempts, found.sessions, found.books.balanced) == (0, 0, True)
    assert found.latency.lag is None


def test_inter_token_only_of_turns_whose_tokens_came_alone(attempt, run):
    alone = attempt("a", chunks=[(1, 1), (1.5, 1)], told=2)
    bursts = attempt("b", chunks=[(1, 2), (3, 2)], told=4)
    found = measure(run([alone, bursts])).latency
    assert (found.inter_token.n, found.inter_token.mean) == (1, pytest.approx(0.5))
    assert (found.inter_chunk.n, found.inter_chunk.mean) == (2, pytest.approx(1.25))


def test_interactivity_is_the_reciprocal_of_tpot(attempt, run):
    # 0.1 and 0.3 s per token: the median turn has 0.2
    found = measure(run([attempt("a", chunks=[(1, 1), (1.1, 1)]), attempt("b", chunks=[(1, 1), (1.3, 1)])]))
    assert found.latency.tpot.at(50) == pytest.approx(0.2)
    assert found.interactivity.streaming.at(50) == pytest.approx(5.0)
    assert found.interactivity.streaming.at(95) < found.interactivity.streaming.at(50)


def test_client_and_server_are_held_together(attempt, run):
    found = measure(run([attempt("a", server_ttft=0.75, queue_seconds=0.25), attempt("b")])).latency
    assert (found.client_server_ttft.n, found.client_server_ttft.mean) == (1, pytest.approx(0.25))
    assert (found.queue.n, found.server_ttft.mean) == (1, 0.75)


def test_doubtful_zeros_are_not_counted_as_computed_input(attempt, run):
    found = measure(run([attempt("a", cached=0), attempt("b", cached=0)]))
    assert found.reuse.by_request.doubtful
    assert found.throughput.completed.input_cached.tokens is None
    assert found.throughput.completed.input_computed.tokens is None


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
