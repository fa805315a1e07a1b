from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Cached
from agentx.reporter.throughput import cached_tokens, throughput, window_of


def flows(run):
    measured = [one for one in run.attempts if one.phase == "measure"]
    return throughput(run, measured, window_of(run, measured))


def test_a_drained_run_emits_what_it_completes(attempt, run):
    # a: sent 0, tokens at 1 and 2; b: sent 2, tokens at 3 and 4. Four tokens in 4 s, 160 computed and 40 cached
    found = flows(run([attempt("a", cached=0), attempt("b", sent=2.0, cached=40)]))
    for flow in (found.emitted, found.completed):
        assert flow.seconds == 4.0
        assert (flow.output.tokens, flow.input_computed.tokens, flow.input_cached.tokens) == (4, 160, 40)
        assert flow.per_second(flow.output) == 1.0
        assert flow.per_second(flow.input_cached) == 10.0
    assert (found.drained, found.estimated, found.failed_output) == (0, 0, 0)


def test_only_tokens_inside_the_window_are_emitted(attempt, run):
    # the window is 10 ... 20. a is of the warm-up: tokens at 9.5 and 10.5. b: 19 and 21, so it drains.
    early = attempt("a", phase="warmup", sent=8.5, chunks=[(1, 1), (2, 1)])
    late = attempt("b", sent=18.0, chunks=[(1, 1), (3, 5)], told=6, cached=60)
    found = flows(run([early, late], end={"outcome": "done", "window": [10.0, 20.0]}))
    assert found.window.source == "plan"
    assert found.emitted.output.tokens == 2  # one of a, one of b
    assert found.emitted.per_second(found.emitted.output) == 0.2
    assert found.emitted.input_cached.tokens == 60  # b's prompt was read at 19; a's before the window
    assert found.completed.output.tokens == 6  # b alone, all of it
    assert found.completed.seconds == 3.0  # sent at 18, ended at 21
    assert found.drained == 1


def test_a_request_that_was_cut_after_the_window_did_not_drain(attempt, run):
    made = run([attempt("a"), attempt("b", failed="cut")], end={"outcome": "done", "window": [0.0, 1.5]})
    assert flows(made).drained == 1


def test_what_some_did_not_tell_makes_a_lower_bound(attempt, run):
    found = flows(run([attempt("a", cached=10), attempt("b", cached=None)])).completed
    assert (found.input_cached.tokens, found.input_cached.told, found.input_cached.of) == (10, 1, 2)
    assert not found.input_cached.whole
    assert (found.input_computed.tokens, found.output.whole) == (90, True)


def test_what_nobody_told_is_unknown(attempt, run):
    found = flows(run([attempt(chunks=[(1, None), (2, None)], told=None, prompt=None)])).emitted
    for amount in (found.output, found.input_computed, found.input_cached):
        assert amount.tokens is None
        assert found.per_second(amount) is None


def test_failed_responses_have_no_part_in_completed(attempt, run):
    # the stream broke after 3 tokens: they were emitted, and are shown apart
    broken = attempt("a", chunks=[(1, 1), (2, 2)], told=None, failed="closed", cached=None)
    found = flows(run([broken, attempt("b")]))
    assert (found.emitted.output.tokens, found.failed_output) == (5, 3)
    assert (found.completed.output.tokens, found.completed.responses) == (2, 1)


@pytest.mark.parametrize(
    ("target", "servers", "gpus"),
    [
        ({"gpus": 8}, 1, 8),
        ({"urls": ["http://a", "http://b"], "gpus": 16}, 2, 16),
        ({}, 1, None),  # unknown, not one
        ({"gpus": 0}, 1, None),
        ({"gpus": None, "urls": []}, 1, None),
    ],
)
def test_servers_and_gpus_come_from_the_target(run, target, servers, gpus):
    found = flows(run(settings={"target": target}))
    assert (found.servers, found.gpus) == (servers, gpus)


def test_no_attempts_have_no_window(run):
    found = flows(run())
    assert found.window is None
    assert found.emitted.seconds is None
    assert found.completed.output.tokens is None


def test_a_window_without_length_has_no_rate(attempt, run):
    found = flows(run([attempt(chunks=[], told=1, end=0.0)]))
    assert found.window.seconds == 0
    assert found.completed.output.tokens == 1
    assert found.completed.per_second(found.completed.output) is None


@pytest.mark.parametrize(
    ("cached", "want"),
    [
        (None, None),
        (Cached(), None),  # a reply that has the field, without a value
        (Cached(total=7, device=5), 7),
        (Cached(device=5, host=2), 7),  # no total: the sum of the tiers
        (Cached(total=0), 0),
    ],
)
def test_cached_tokens(attempt, cached, want):
    assert cached_tokens(attempt(cached=cached)) == want


@given(
    st.lists(
        st.tuples(st.floats(0, 50), st.lists(st.tuples(st.integers(1, 9 * 10**6), st.integers(0, 8)), min_size=1)),
        min_size=1,
        max_size=8,
    ),
    st.tuples(st.floats(0, 60), st.floats(0.1, 60)),
)
def test_rate_times_window_is_the_tokens_that_came_in_it(attempt, run, replies, window):
    start, length = window
    attempts, inside = [], 0
    for turn, (sent, flat) in enumerate(replies):
        chunks = sorted((micros / 1e6, tokens) for micros, tokens in flat)
        attempts.append(attempt("a", turn, sent=sent, chunks=chunks, told=sum(tokens for _, tokens in chunks)))
        inside += sum(c.tokens for c in attempts[-1].chunks if start <= sent + c.micros / 1e6 <= start + length)
    found = flows(run(attempts, end={"outcome": "done", "window": [start, start + length]})).emitted
    rate = found.per_second(found.output) or 0.0
    assert rate * ((start + length) - start) == pytest.approx(inside)
