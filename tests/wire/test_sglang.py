"""/generate: ids in by runs, cumulative events out, and the server's own figures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.core import Cached
from agentx.wire.reply import ServerError
from agentx.wire.sglang import generate_request, has_token, parse_generate, parse_generate_stream


def event(ids: list[int], text: str | None = None, finish: object = None, **meta: Any) -> bytes:
    told = {"id": "r", "finish_reason": finish, "prompt_tokens": 9, "completion_tokens": len(ids), **meta}
    body = {"text": "x" * len(ids) if text is None else text, "output_ids": ids, "meta_info": told}
    return json.dumps(body, separators=(",", ":")).encode()


DONE = b"[DONE]"
STREAM = [
    event([5], cached_tokens=6, cached_tokens_details={"device": 4, "host": 2}),
    event([5, 6, 7], cached_tokens=6, cached_tokens_details={"device": 4, "host": 2}),
    event(
        [5, 6, 7, 8],
        finish={"type": "length", "length": 4},
        cached_tokens=6,
        cached_tokens_details={"device": 4, "host": 2},
        queue_time=0.25,
        first_token_latency=0.5,
        spec_verify_ct=2,
    ),
    DONE,
]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([b"1,2", b"3"], [1, 2, 3]),
        ([b"", b"1", b"", b"2", b""], [1, 2]),  # empty segments leave no comma
        ([], []),
    ],
)
def test_a_request_joins_runs_of_ids(runs: list[bytes], expected: list[int]) -> None:
    parts = generate_request(runs, max_new_tokens=4, min_new_tokens=4, ignore_eos=True, extra={"rid": "a"})
    assert json.loads(b"".join(parts)) == {
        "input_ids": expected,
        "sampling_params": {"max_new_tokens": 4, "temperature": 0, "min_new_tokens": 4, "ignore_eos": True},
        "stream": True,
        "rid": "a",
    }


def test_lengths_that_are_not_forced_are_not_sent() -> None:
    body = json.loads(
        b"".join(generate_request([b"1"], max_new_tokens=4, min_new_tokens=None, ignore_eos=False, stream=False))
    )
    assert body["sampling_params"] == {"max_new_tokens": 4, "temperature": 0}
    assert body["stream"] is False


def test_a_cumulative_stream() -> None:
    reply = parse_generate_stream(STREAM, text=True)
    assert reply.token_counts == (1, 3, 4, None)
    assert reply.carries == (True, True, True, False)
    assert (reply.output_ids, reply.text) == ((5, 6, 7, 8), "xxxx")
    assert (reply.prompt_tokens, reply.completion_tokens) == (9, 4)
    assert reply.cached == Cached(total=6, device=4, host=2)
    assert (reply.queue_seconds, reply.server_first_token_seconds) == (0.25, 0.5)
    assert reply.spec == {"spec_verify_ct": 2}
    assert (reply.finish_reason, reply.error, reply.done) == ("length", None, True)
    assert parse_generate_stream(STREAM).text is None


def test_an_incremental_stream_is_put_together() -> None:
    def part(ids: list[int], text: str, so_far: int) -> bytes:
        body = json.loads(event(ids, text))
        body["meta_info"]["completion_tokens"] = so_far
        return json.dumps(body).encode()

    reply = parse_generate_stream([part([5], "a", 1), part([6, 7], "bc", 3), DONE], text=True)
    assert (reply.output_ids, reply.text, reply.token_counts) == ((5, 6, 7), "abc", (1, 3, None))


def test_an_event_that_repeats_the_count_carries_nothing() -> None:
    reply = parse_generate_stream([event([5]), event([5], finish={"type": "stop", "matched": 2}), DONE])
    assert reply.carries == (True, False, False)
    assert (reply.finish_reason, reply.matched_stop) == ("stop", 2)


def test_tokens_without_text_are_tokens() -> None:
    # A simulated token may decode to nothing for a hundred steps.
    assert has_token(event([100], text=""))
    assert not has_token(event([], text=""))
    assert not has_token(b'{"error":{"message":"x"}}')
    assert not has_token(DONE)


def test_an_error_in_the_stream_keeps_what_came_before() -> None:
    reply = parse_generate_stream([event([5]), b'{"error":{"message":"The request queue is full.","code":503}}', DONE])
    assert reply.error == ServerError(503, "The request queue is full.")
    assert (reply.completion_tokens, reply.done) == (1, True)


def test_an_abort_is_an_error() -> None:
    finish = {"type": "abort", "message": "out of memory", "status_code": 500}
    assert parse_generate_stream([event([5], finish=finish)]).error == ServerError(500, "out of memory")


@pytest.mark.parametrize("data", [b"", b"nope", b"[]", b'{"text":"a","output_ids":[1', b"\xff"])
def test_garbage_is_an_error_not_a_crash(data: bytes) -> None:
    assert parse_generate_stream([data]).error is not None
    assert parse_generate(data).error is not None


def test_nothing_at_all() -> None:
    reply = parse_generate_stream([])
    assert (reply.done, reply.completion_tokens, reply.output_ids, reply.error) == (False, None, None, None)


def test_not_streamed() -> None:
    reply = parse_generate(STREAM[2])
    assert (reply.output_ids, reply.text, reply.token_counts, reply.done) == ((5, 6, 7, 8), "xxxx", (4,), True)
    assert parse_generate(b'{"error":{"message":"too long"}}').error == ServerError(None, "too long")


def test_a_miss_is_told_by_the_total_alone() -> None:
    # SGLang leaves the split out when nothing was cached.
    reply = parse_generate(event([5], cached_tokens=0, cached_tokens_details=None))
    assert reply.cached == Cached(total=0, device=0, host=0, storage=0)
    assert parse_generate(event([5])).cached is None
