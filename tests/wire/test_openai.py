"""Chat payloads: what is sent is the JSON that was meant, and what servers answer is read as they meant it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Cached
from agentx.wire.openai import chat_request, has_token, json_text, parse_chat, parse_chat_stream
from agentx.wire.reply import ServerError


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def chunk(delta: dict[str, Any], usage: object = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "matched_stop": None}
    body = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return compact({**body, "usage": usage, **more})


def usage(prompt: int, completion: int, cached: int | None = None) -> dict[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": details,
        "reasoning_tokens": 0,
    }


ROLE = chunk({"role": "assistant", "content": "", "reasoning_content": None})
DONE = b"[DONE]"


def test_a_request_is_the_json_that_was_meant() -> None:
    parts = chat_request(
        [("system", [b" abc", b" def"]), ("user", [json_text('say "hi"\n\u2028\U0001f600')])],
        model='m"1',
        max_tokens=7,
        min_tokens=7,
        ignore_eos=True,
        extra={"cache_salt": "x", "temperature": 1},
    )
    assert json.loads(b"".join(parts)) == {
        "model": 'm"1',
        "messages": [
            {"role": "system", "content": " abc def"},
            {"role": "user", "content": 'say "hi"\n\u2028\U0001f600'},
        ],
        "max_tokens": 7,
        "min_tokens": 7,
        "ignore_eos": True,
        "temperature": 1,  # extra overrides
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_cached_tokens_details": True,
        "return_spec_tokens_details": True,
        "cache_salt": "x",
    }


def test_options_that_are_not_wanted_are_not_sent() -> None:
    parts = chat_request(
        [("user", [])],
        model="m",
        max_tokens=1,
        min_tokens=None,
        ignore_eos=False,
        stream=False,
        cached_details=False,
    )
    body = json.loads(b"".join(parts))
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": ""}],
        "max_tokens": 1,
        "temperature": 0,
        "stream": False,
    }
    plain = chat_request(
        [], model="m", max_tokens=1, min_tokens=None, ignore_eos=False, continuous_usage=False, cached_details=False
    )
    assert json.loads(b"".join(plain))["stream_options"] == {"include_usage": True}


def test_content_goes_in_as_the_same_objects() -> None:
    piece = b" abc" * 1000
    parts = chat_request([("user", [piece, piece])], model="m", max_tokens=1, min_tokens=None, ignore_eos=False)
    assert sum(part is piece for part in parts) == 2


@given(st.text(max_size=30))
def test_json_text_is_the_inside_of_a_string(text: str) -> None:
    assert json.loads(b'"' + json_text(text) + b'"') == text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (ROLE, False),  # the role comes before any token
        (chunk({"content": " a"}), True),
        (chunk({"content": None, "reasoning_content": "hm"}), True),
        (chunk({"content": "", "reasoning": "hm"}), True),  # vLLM's newer name
        (chunk({"content": ""}), False),
        (chunk({}, finish="length"), False),
        (chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]}), True),
        (chunk({"content": None, "tool_calls": []}), False),
        (chunk({"content": None, "tool_calls": None}), False),
        (chunk({"refusal": "no"}), True),
        (b'{"choices": [{"delta": {"content": "spaced"}}]}', True),
        (b'{"choices": [{"delta": {"role": "assistant", "content": ""}}]}', False),
        (chunk({"content": ""}, role='"content":"x"'), False),  # quotes inside a string are escaped
        (compact({"choices": [], "usage": usage(1, 1)}), False),
        (b'{"error": {"message": "no"}}', False),
        (DONE, False),
        (b"", False),
    ],
)
def test_has_token(data: bytes, expected: bool) -> None:
    assert has_token(data) is expected


SGLANG = [
    ROLE,
    chunk({"content": " Abc", "reasoning_content": None}, usage(9, 1)),
    chunk({"content": " Def Ghi", "reasoning_content": None}, usage(9, 3)),
    chunk({}, finish="length"),
    compact({"choices": [], "sglext": {"cached_tokens_details": {"device": 4, "host": 2}}}),
    compact({"choices": [], "usage": usage(9, 3, 6)}),
    DONE,
]


@pytest.mark.parametrize("text", [False, True])
def test_sglangs_stream(text: bool) -> None:
    reply = parse_chat_stream(SGLANG, text=text)
    assert reply.token_counts == (None, 1, 3, None, None, 3, None)
    assert reply.carries == (False, True, True, False, False, False, False)
    assert (reply.prompt_tokens, reply.completion_tokens) == (9, 3)
    assert reply.cached == Cached(total=6, device=4, host=2, storage=None)
    assert (reply.finish_reason, reply.error, reply.done) == ("length", None, True)
    assert reply.text == (" Abc Def Ghi" if text else None)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_spaced_json_reads_the_same(size: int) -> None:
    spaced = [data if data == DONE else json.dumps(json.loads(data), indent=size).encode() for data in SGLANG]
    assert parse_chat_stream(spaced) == parse_chat_stream(SGLANG)


def test_no_usage_is_unknown_and_never_zero() -> None:
    events = [ROLE, chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, finish="stop"), DONE]
    reply = parse_chat_stream(events)
    assert reply.token_counts == (None,) * 5
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached) == (None, None, None)
    assert (reply.finish_reason, reply.done) == ("stop", True)


def test_openai_and_vllm_report_a_total_only() -> None:
    reply = parse_chat_stream([chunk({"content": "a"}), compact({"choices": [], "usage": usage(9, 1, 6)}), DONE])
    assert reply.cached == Cached(total=6)


def test_a_miss_is_zero_in_every_tier() -> None:
    reply = parse_chat_stream([compact({"choices": [], "usage": usage(9, 1, 0)})])
    assert reply.cached == Cached(total=0, device=0, host=0, storage=0)


def test_an_error_inside_a_200_stream() -> None:
    error = {"object": "error", "message": "The request queue is full.", "type": "SERVICE_UNAVAILABLE", "code": 503}
    reply = parse_chat_stream([compact({"error": error}), DONE])
    assert reply.error == ServerError(503, "The request queue is full.")
    assert reply.done
    assert reply.completion_tokens is None


def test_the_zeros_after_a_refusal_are_no_usage() -> None:
    # SGLang ends a stream that it refused with the usage of a prompt that it never saw.
    error = compact({"error": {"message": "The request queue is full.", "code": 503}})
    reply = parse_chat_stream([error, compact({"choices": [], "usage": usage(0, 0, 0)}), DONE])
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached) == (None, None, None)
    assert reply.token_counts == (None, None, None)


def test_a_reply_in_one_event_with_its_finish() -> None:
    reply = parse_chat_stream([chunk({"role": "assistant", "content": "all"}, usage(5, 2), finish="stop"), DONE])
    assert (reply.token_counts, reply.carries) == ((2, None), (True, False))
    assert (reply.finish_reason, reply.prompt_tokens) == ("stop", 5)


def test_a_cut_stream_is_not_done_and_keeps_what_it_told() -> None:
    reply = parse_chat_stream(SGLANG[:3])
    assert not reply.done
    assert reply.completion_tokens == 3
    assert reply.finish_reason is None


def test_abort_is_an_error() -> None:
    assert parse_chat_stream([chunk({"content": "a"}), chunk({}, finish="abort"), DONE]).error is not None


def test_a_surrogate_pair_cut_in_two_is_one_character() -> None:
    halves = [rb'{"choices":[{"delta":{"content":"\ud83d"}}]}', rb'{"choices":[{"delta":{"content":"\ude00"}}]}']
    assert parse_chat_stream(halves, text=True).text == "\U0001f600"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[1]",
        b"null",
        b'{"choices":[{"delta":{"content":"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"choices": 3, "usage": "x"',
    ],
)
def test_garbage_is_an_error_not_a_crash(data: bytes) -> None:
    assert parse_chat_stream([data], text=True).error is not None
    assert parse_chat(data).error is not None


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":{},"usage":[1]}',
        b'{"choices":[null],"usage":null,"sglext":7}',
        b'{"choices":[{"delta":null}]}',
        b'{"choices":[{"delta":{"content":7}}],"usage":{"prompt_tokens":-1,"completion_tokens":true}}',
        b'{"usage":{"prompt_tokens_details":{"cached_tokens":"6"}}}',
        b"{}",
    ],
)
def test_odd_shapes_are_unknown(data: bytes) -> None:
    reply = parse_chat_stream([data], text=True)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached, reply.error) == (None, None, None, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**13) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "usage",
                    "error",
                    "sglext",
                    "content",
                    "completion_tokens",
                    "finish_reason",
                    "detail",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON.map(compact), max_size=4))
def test_any_json_is_read_without_a_crash(events: list[bytes]) -> None:
    reply = parse_chat_stream(events, text=True)
    assert len(reply.token_counts) == len(reply.carries) == len(events)


def test_not_streamed() -> None:
    body = {
        "id": "r",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": " Abc"}, "finish_reason": "length"}],
        "usage": usage(9, 1, 6),
        "sglext": {"cached_tokens_details": {"device": 6, "host": 0}},
    }
    reply = parse_chat(compact(body))
    assert (reply.token_counts, reply.carries, reply.text) == ((1,), (True,), " Abc")
    assert reply.cached == Cached(total=6, device=6, host=0)
    assert (reply.finish_reason, reply.done, reply.error) == ("length", True, None)


def test_a_200_with_an_error_body() -> None:
    reply = parse_chat(b'{"error":{"message":"overloaded","type":"server_error","code":null}}')
    assert reply.error == ServerError(None, "overloaded")
    assert not reply.done
