"""What becomes of bytes and times: records by tables, without sockets."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Cached, Chunk, Output, Prompt, Session, Turn
from agentx.replayer.exchange import Exchange, attempt_of, longest, shorten, thin
from agentx.replayer.moves import Key
from agentx.replayer.schedule import Send
from agentx.replayer.wires import Wire
from agentx.wire.openai import has_token

SEND = Send(Key(0, 0), Session("s", (Turn(0, 0, Prompt(()), 50, Output(4)),)), 0, 2, 1.0, 0.0)


def event(value: object) -> bytes:
    return (
        b"data: " + (value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()) + b"\n\n"
    )


def token(count: int | None, text: str = " Abc", key: str = "content") -> bytes:
    usage = {} if count is None else {"usage": {"prompt_tokens": 50, "completion_tokens": count}}
    return event({"choices": [{"delta": {key: text}, "finish_reason": None}], **usage})


ROLE = event({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
FINISH = event({"choices": [{"delta": {}, "finish_reason": "length"}]})
USAGE = event(
    {
        "choices": [],
        "usage": {"prompt_tokens": 50, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 48}},
    }
)
DONE = event(b"[DONE]")
END = FINISH + USAGE + DONE


def record(*reads: tuple[float, bytes], status: int | None = 200, wire: str = "chat", failure: str | None = None):
    exchange = Exchange(sent=2.0, first_byte=2.5, end=9.0, status=status, cumulative=wire == "generate")
    for at, data in reads:
        exchange.receive(at, data)
    if failure:
        exchange.fail(failure)
    return attempt_of(SEND, exchange, Wire(wire, "m"))[0]


def test_a_plain_reply():
    attempt = record((3.0, ROLE + token(1)), (4.0, token(3)), (5.0, token(4) + END))
    assert (attempt.session, attempt.lane, attempt.isl, attempt.osl, attempt.due, attempt.sent) == (
        "s",
        2,
        50,
        4,
        1.0,
        2.0,
    )
    assert (attempt.first_byte, attempt.first, attempt.last, attempt.end) == (2.5, 3.0, 5.0, 9.0)
    assert attempt.chunks == (Chunk(1_000_000, 1), Chunk(2_000_000, 2), Chunk(3_000_000, 1))
    assert (attempt.prompt_tokens, attempt.completion_tokens, attempt.cached) == (50, 4, Cached(48))
    assert (attempt.finish, attempt.failure) == ("length", None)


FIRSTS = [
    # reads, first, last, chunks (micros after sent, tokens)
    # The role alone is not a token, however early it comes.
    ([(3.0, ROLE), (4.0, token(1)), (5.0, END)], 4.0, 4.0, [(2_000_000, 1)]),
    # Reasoning is.
    ([(3.0, token(1, key="reasoning_content")), (4.0, token(2) + END)], 3.0, 4.0, [(1_000_000, 1), (2_000_000, 1)]),
    # A whole reply in one read has one time.
    ([(3.0, ROLE + token(1) + token(2) + token(4) + END)], 3.0, 3.0, [(1_000_000, 4)]),
    # An event that is split over two reads comes when it is whole.
    ([(3.0, token(1)[:40]), (4.0, token(1)[40:] + END)], 4.0, 4.0, [(2_000_000, 1)]),
    # Without counts on chunks their tokens are unknown.
    ([(3.0, token(None)), (4.0, token(None) + END)], 3.0, 4.0, [(1_000_000, None), (2_000_000, None)]),
    # Once a count is missing, later ones cannot be told apart from it.
    (
        [(3.0, token(None)), (4.0, token(3)), (5.0, token(4) + END)], 3.0, 5.0,
        [(1_000_000, None), (2_000_000, None), (3_000_000, 1)],
    ),
    # Tokens that decode to nothing are counted where text comes again.
    ([(3.0, token(1)), (4.0, token(2, "")), (5.0, token(4) + END)], 3.0, 5.0, [(1_000_000, 1), (3_000_000, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("reads", "first", "last", "chunks"), FIRSTS)
def test_first_last_and_chunks(reads, first, last, chunks):
    attempt = record(*reads)
    assert attempt.ok
    assert (attempt.first, attempt.last) == (first, last)
    assert [tuple(chunk) for chunk in attempt.chunks] == chunks


TOO_LONG = b'{"object":"error","message":"The input (9 tokens) is longer than the model\'s context length"}'
QUEUE_FULL = {"error": {"message": "The request queue is full.", "code": 503}}
FAILURES = [
    # what came, kind, a part of the message
    ([], {"status": None, "failure": "refused"}, "refused", ""),
    ([(3.0, b'{"error":{"message":"no"}}')], {"status": 500}, "http", "500: no"),
    ([(3.0, b"<html>gateway</html>")], {"status": 502}, "http", "502: <html>"),
    ([(3.0, TOO_LONG)], {"status": 400}, "overflow", "longer"),
    ([(3.0, event(QUEUE_FULL) + DONE)], {}, "stream", "503: The request queue"),
    ([(3.0, b'{"error":{"message":"no such model"}}')], {}, "protocol", "no such model"),
    ([(3.0, token(1))], {}, "closed", "without a finish reason"),
    ([(3.0, token(1))], {"failure": "closed"}, "closed", ""),
    ([(3.0, token(1))], {"failure": "stall"}, "stall", ""),
    ([(3.0, ROLE + FINISH + DONE)], {}, "empty", "no token"),
    ([], {}, "closed", ""),
    ([(3.0, event({"choices": [{"delta": {}, "finish_reason": "abort"}]}) + DONE)], {}, "stream", "aborted"),
]  # fmt: skip


@pytest.mark.parametrize(("reads", "how", "kind", "says"), FAILURES)
def test_failures(reads, how, kind, says):
    attempt = record(*reads, **how)
    assert attempt.failure is not None
    assert attempt.failure.kind == kind
    assert says in attempt.failure.message


def test_a_connection_that_is_lost_behind_a_whole_reply_does_not_matter():
    assert record((3.0, token(1) + FINISH + DONE), failure="closed").ok


def test_tokens_that_the_usage_counts_are_tokens_though_none_was_text():
    attempt = record((3.0, token(2, "") + END))
    assert attempt.ok
    assert (attempt.first, attempt.chunks, attempt.completion_tokens) == (None, (), 4)


def test_what_is_not_told_is_unknown():
    attempt = record((3.0, token(None) + FINISH + DONE))
    assert (attempt.prompt_tokens, attempt.completion_tokens, attempt.cached) == (None, None, None)


def test_a_reply_that_is_not_streamed():
    body = {
        "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    }
    attempt = record((3.0, json.dumps(body).encode()))
    assert (attempt.ok, attempt.finish, attempt.completion_tokens, attempt.prompt_tokens) == (True, "stop", 1, 5)


def generated(count: int, finish: object = None, size: int = 0) -> bytes:
    meta = {"id": "r", "finish_reason": finish, "prompt_tokens": 50, "completion_tokens": count, "cached_tokens": 9}
    return event({"text": " Abc" * count + "x" * size, "output_ids": list(range(count)), "meta_info": meta})


@pytest.mark.parametrize("size", [0, 5000])  # short events, and those that are shortened
def test_generate(size):
    end = generated(4, {"type": "length", "length": 4}, size)
    attempt = record((3.0, generated(1, size=size)), (4.0, generated(3, size=size)), (5.0, end + DONE), wire="generate")
    assert attempt.chunks == (Chunk(1_000_000, 1), Chunk(2_000_000, 2), Chunk(3_000_000, 1))
    assert (attempt.completion_tokens, attempt.cached, attempt.finish) == (4, Cached(9), "length")


def test_shortening_keeps_the_figures():
    data = generated(7, size=5000)[6:-2]
    assert len(shorten(data)) < 300
    assert json.loads(shorten(data))["meta_info"] == json.loads(data)["meta_info"]
    assert shorten(b'{"text":"short"}') == b'{"text":"short"}'


def test_thinning_leaves_the_last_token_and_what_follows():
    def thinned(data: bytes) -> bytes:
        return thin(data, has_token)

    assert thinned(ROLE + token(1) + token(2) + END) == token(2) + END
    assert thinned(b'half":1}\n\n' + token(1) + token(2)) == b'half":1}\n\n' + token(2)
    assert thinned(token(1) + token(2) + token(3)[:-1]) == token(2) + token(3)[:-1]  # not whole yet
    for left_alone in (b"", ROLE, token(1), END, token(1)[:30], b": ping\n\n", token(1) + token(2, "") + END):
        assert thinned(left_alone) == left_alone


@given(st.lists(st.integers(1, 3), min_size=1, max_size=8), st.lists(st.integers(0, 1 << 12), max_size=5))
def test_chunks_add_up_however_the_stream_is_cut(steps, cuts):
    counts = [sum(steps[: at + 1]) for at in range(len(steps))]
    whole = ROLE + b"".join(map(token, counts)) + FINISH + DONE
    places = [0, *sorted(cut % len(whole) for cut in cuts), len(whole)]
    reads = [(3.0 + at, whole[start:stop]) for at, (start, stop) in enumerate(pairwise(places))]
    attempt = record(*reads)
    assert attempt.ok
    assert sum(chunk.tokens for chunk in attempt.chunks) == counts[-1]
    ends = [3.0 + next(at for at, stop in enumerate(places[1:]) if stop >= end) for end in token_ends(counts)]
    assert (attempt.first, attempt.last) == (ends[0], ends[-1])
    assert [2.0 + chunk.micros / 1e6 for chunk in attempt.chunks] == sorted(set(ends))


def token_ends(counts: list[int]) -> list[int]:
    """Where the events of the tokens end; the blank line is what completes them."""
    ends, at = [], len(ROLE)
    for count in counts:
        at += len(token(count))
        ends.append(at)
    return ends


def test_a_body_longer_than_any_reply_has_failed():
    exchange = Exchange(asked=4)
    room = longest(4, cumulative=False)
    assert exchange.receive(1.0, b"x" * room)
    assert not exchange.receive(2.0, b"x")
    assert (exchange.failure.kind, exchange.heard) == ("endless", 2.0)
    assert Exchange().receive(1.0, b"x" * (room + 1))  # where nothing says how many were asked for


@pytest.mark.parametrize("tokens", [1, 1000, 100_000])
def test_no_honest_reply_is_too_long(tokens):
    """An event of a stream has some 400 bytes; a cumulative one repeats words of 4 bytes and ids of 8 digits."""
    assert longest(tokens, cumulative=False) > 400 * tokens
    assert longest(tokens, cumulative=True) > (400 + (4 + 9) * tokens / 2) * tokens
