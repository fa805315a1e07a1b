from __future__ import annotations

import pytest

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
