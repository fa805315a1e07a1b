from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.reporter.turns import (
    arrivals,
    chunk_gaps,
    mean_in_flight,
    reply_tokens,
    tokens_have_own_times,
    tpot,
    turn_times,
)


@pytest.mark.parametrize(
    ("chunks", "told", "want", "estimated"),
    [
        # one token each second: (3 - 1) / (3 - 1)
        ([(1, 1), (2, 1), (3, 1)], 3, 1.0, False),
        # speculation: 2 tokens, then 4: (2 - 1) / (6 - 2)
        ([(1, 2), (2, 4)], 6, 0.25, False),
        # two chunks in the first read have one time and are one first chunk: (2 - 1) / (4 - 2)
        ([(1, 1), (1, 1), (2, 2)], 4, 0.5, False),
        # no counts in the chunks, 6 by usage: 2 each, so (3 - 1) / (6 - 2), estimated
        ([(1, None), (2, None), (3, None)], 6, 0.5, True),
        # no usage, but each chunk has its count
        ([(1, 1), (3, 2)], None, 1.0, False),
        # all in one chunk: n/a, however many tokens
        ([(1, 64)], 64, None, False),
        # one token: n/a
        ([(1, 1)], 1, None, False),
        # all tokens in the first chunk, an empty one later: n/a, never a division by zero
        ([(1, 2), (2, 0)], 2, None, False),
        # neither usage nor counts: unknown, whatever was asked for
        ([(1, None), (2, None)], None, None, False),
        # usage says 5, the chunks account for 3: the rest is put on the last one, estimated; (2 - 1) / (5 - 1)
        ([(1, 1), (2, 2)], 5, 0.25, True),
        # a role chunk without a count beside chunks that account for all: nothing is left for it; (3 - 1) / (2 - 0)
        ([(1, None), (3, 2)], 2, 1.0, False),
    ],
)
def test_tpot(attempt, chunks, told, want, estimated):
    found, marked = tpot(attempt(chunks=chunks, told=told, osl=512))
    assert found == (None if want is None else pytest.approx(want))
    assert marked == estimated


def test_a_reply_without_chunks_has_no_more_than_its_end(attempt):
    times = turn_times(attempt(chunks=[], told=8, end=4.0, sent=1.0))
    assert (times.ttft, times.tpot, times.latency, times.per_token) == (None, None, 3.0, 3.0 / 8)
    assert arrivals(times.attempt).tokens == ((4.0, 8.0),)


def test_times_are_kept_from_sent_and_from_due(attempt):
    # due at 10, sent at 12, first token at 13, last at 14
    times = turn_times(attempt(sent=12.0, due=10.0))
    assert (times.ttft, times.ttft_from_due) == (1.0, 3.0)
    assert (times.latency, times.latency_from_due) == (2.0, 4.0)


@pytest.mark.parametrize(
    ("chunks", "told", "want"),
    [
        ([(1, 1), (2, 1)], 7, 7),  # the server's usage stands above the chunks
        ([(1, 1), (2, 3)], None, 4),  # without it, the sum of the chunks
        ([(1, 1), (2, None)], None, None),  # one chunk untold: unknown
        ([], None, None),  # nothing at all: unknown, not 0
        ([], 0, 0),  # told to be none
    ],
)
def test_reply_tokens(attempt, chunks, told, want):
    assert reply_tokens(attempt(chunks=chunks, told=told, osl=100)) == want


def test_no_tokens_have_no_time_per_token(attempt):
    assert turn_times(attempt(chunks=[], told=0, end=1.0)).per_token is None


def test_gaps_are_between_different_arrivals(attempt):
    # 1.0, 1.0 (same read), 1.5, then an empty chunk at 9 that brought no token
    one = attempt(chunks=[(1, 1), (1, 1), (1.5, 1), (9, 0)], told=3)
    assert chunk_gaps(one) == [pytest.approx(0.5)]


@pytest.mark.parametrize(
    ("chunks", "told", "want"),
    [
        ([(1, 1), (2, 1)], 2, True),  # each token came alone
        ([(1, 1), (2, 2)], 3, False),  # two tokens in a chunk
        ([(1, 1), (1, 1)], 2, False),  # two chunks in one read
        ([(1, None), (2, None)], 2, False),  # not told, although it may be so
        ([(1, 1), (2, 1)], 3, False),  # a token that no chunk accounts for
        ([], 0, False),  # nothing came
    ],
)
def test_inter_token_times_need_a_time_for_each_token(attempt, chunks, told, want):
    assert tokens_have_own_times(attempt(chunks=chunks, told=told)) is want


def test_the_last_token_is_not_after_the_last(attempt):
    # 1.0000006 s is rounded up to 1.000001 s
    one = attempt(chunks=[(1.0000006, 4)], told=4)
    assert arrivals(one).tokens == ((1.0000006, 4.0),)


@given(
    st.lists(st.tuples(st.integers(1, 10**7), st.none() | st.integers(0, 9)), min_size=1, max_size=20),
    st.none() | st.integers(0, 200),
)
def test_arrivals_hold_every_token(attempt, flat, told):
    chunks = sorted(((micros / 1e6, tokens) for micros, tokens in flat), key=lambda chunk: chunk[0])
    one = attempt(chunks=chunks, told=told)
    came, known = arrivals(one), sum(tokens or 0 for _, tokens in chunks)
    if came is None:
        assert reply_tokens(one) is None
    else:
        assert sum(count for _, count in came.tokens) == pytest.approx(max(known, reply_tokens(one) or 0))
        assert all(count >= 0 for _, count in came.tokens)


def test_requests_in_flight_are_those_under_way_at_a_time(attempt):
    made = [attempt(sent=0.0), attempt(sent=1.0), attempt(sent=8.0), attempt(sent=20.0)]  # 2 s each
    assert mean_in_flight(made, 0.0, 9.0) == pytest.approx(5 / 9)  # the third for one second of it
    assert mean_in_flight([attempt(chunks=(), told=None)], 0.0, 1.0) == 0.0  # it had no end
