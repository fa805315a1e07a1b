from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.reporter.turns import arrivals, chunk_gaps, mean_in_flight, reply_tokens, turn_times


def came(one):
    """(when, tokens) of each chunk; None where nothing tells how many there were."""
    (part,) = arrivals([one])
    return list(zip(part.at.tolist(), part.counts.tolist(), strict=True)) if part.known[0] else None


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
    (found,) = turn_times([attempt(chunks=chunks, told=told, osl=512)])
    assert found.tpot == (None if want is None else pytest.approx(want))
    assert found.tpot_estimated == estimated


def test_a_reply_without_chunks_has_no_more_than_its_end(attempt):
    (times,) = turn_times([attempt(chunks=[], told=8, end=4.0, sent=1.0)])
    assert (times.ttft, times.tpot, times.latency, times.per_token) == (None, None, 3.0, 3.0 / 8)
    assert came(times.attempt) == [(4.0, 8.0)]


def test_times_are_kept_from_sent_and_from_due(attempt):
    # due at 10, sent at 12, first token at 13, last at 14
    (times,) = turn_times([attempt(sent=12.0, due=10.0)])
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
    assert turn_times([attempt(chunks=[], told=0, end=1.0)])[0].per_token is None


def test_gaps_are_between_different_arrivals(attempt):
    # 1.0, 1.0 (same read), 1.5, then an empty chunk at 9 that brought no token
    one = attempt(chunks=[(1, 1), (1, 1), (1.5, 1), (9, 0)], told=3)
    every, alone = chunk_gaps([one])
    assert (every.values.tolist(), every.sessions) == ([pytest.approx(0.5)], 1)
    assert (alone.values.tolist(), alone.sessions) == ([], 0)


@pytest.mark.parametrize(
    ("chunks", "told", "want"),
    [
        ([(1, 1), (2, 1)], 2, True),  # each token came alone
        ([(2, 1), (1, 1), (9, 0)], 2, True),  # in whatever order, and an empty chunk is no token
        ([(1, 1), (2, 2)], 3, False),  # two tokens in a chunk
        ([(1, 1), (1, 1)], 2, False),  # two chunks in one read
        ([(1, None), (2, None)], 2, False),  # not told, although it may be so
        ([(1, 1), (2, 1)], 3, False),  # a token that no chunk accounts for
        ([], 0, False),  # nothing came
    ],
)
def test_inter_token_times_need_a_time_for_each_token(attempt, chunks, told, want):
    beside = attempt(session="b", chunks=[(1, 2), (4, 2)], told=4)
    every, alone = chunk_gaps([beside, attempt(chunks=chunks, told=told), beside])
    assert alone.values.tolist() == ([pytest.approx(1.0)] if want else [])
    assert len(every.values) == 2 + (len({at for at, tokens in chunks if tokens != 0}) == 2)


def test_the_last_token_is_not_after_the_last(attempt):
    # 1.0000006 s is rounded up to 1.000001 s
    one = attempt(chunks=[(1.0000006, 4)], told=4)
    assert came(one) == [(1.0000006, 4.0)]


@given(
    st.lists(st.tuples(st.integers(1, 10**7), st.none() | st.integers(0, 9)), min_size=1, max_size=20),
    st.none() | st.integers(0, 200),
)
def test_arrivals_hold_every_token(attempt, flat, told):
    chunks = sorted(((micros / 1e6, tokens) for micros, tokens in flat), key=lambda chunk: chunk[0])
    one = attempt(chunks=chunks, told=told)
    found, known = came(one), sum(tokens or 0 for _, tokens in chunks)
    if found is None:
        assert reply_tokens(one) is None
    else:
        assert sum(count for _, count in found) == pytest.approx(max(known, reply_tokens(one) or 0))
        assert all(count >= 0 for _, count in found)


def test_attempts_beside_each_other_do_not_mix(attempt):
    # more than are looked at at a time; a half of them tells nothing, and one in three has no chunks
    made = [
        attempt(
            session=f"s{number % 7}",
            chunks=[] if number % 3 == 0 else [(1, None if number % 2 else 1), (2, 2), (2 + number % 5, 1)],
            told=None if number % 4 == 3 else 8,
            end=9.0,
        )
        for number in range(2_500)
    ]
    assert turn_times(made) == [turn_times([one])[0] for one in made]
    parts = [gaps for one in made for gaps in (chunk_gaps([one])[0],)]
    every = chunk_gaps(made)[0]
    assert every.values.tolist() == [gap for gaps in parts for gap in gaps.values.tolist()]
    assert every.sessions == len({one.session for one, gaps in zip(made, parts, strict=True) if len(gaps.values)})


def test_requests_in_flight_are_those_under_way_at_a_time(attempt):
    made = [attempt(sent=0.0), attempt(sent=1.0), attempt(sent=8.0), attempt(sent=20.0)]  # 2 s each
    assert mean_in_flight(made, 0.0, 9.0) == pytest.approx(5 / 9)  # the third for one second of it
    assert mean_in_flight([attempt(chunks=(), told=None)], 0.0, 1.0) == 0.0  # it had no end
