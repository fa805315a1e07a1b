"""Replies of every wire, streamed and not: content as a later prompt holds it, usage, the first token's time."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from capturing import sse
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.canonical import assistant, response_item
from agentx.recorder.capture_reader import Chunk, Exchange
from agentx.recorder.replies import Reply, Usage, read_reply

SSE = (("content-type", "text/event-stream"),)


def exchange(
    reply: bytes, headers: tuple[tuple[str, str], ...] = (), status: int | None = 200, size: int = 0
) -> Exchange:
    size = size or max(len(reply), 1)
    sizes = [min(size, len(reply) - at) for at in range(0, len(reply), size)]
    chunks = tuple(Chunk(1000 * (number + 1), each) for number, each in enumerate(sizes))
    return Exchange(
        1,
        1,
        0,
        "POST",
        "/",
        (),
        "chat",
        (),
        (),
        None,
        0,
        0,
        b"{}",
        500,
        status,
        headers,
        reply,
        chunks,
        9000,
        "done",
        "",
        "",
    )


def test_a_chat_stream_with_tool_calls_and_usage_at_its_end() -> None:
    """R16: a last event with no choices; indices with a gap; arguments in pieces."""
    events = [
        {"id": "c1", "choices": [], "prompt_filter_results": []},  # Azure's first
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"content": "Look"}}]},
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 2, "id": "t", "function": {"name": "f", "arguments": '{"a"'}}]}}
            ]
        },
        {"choices": [{"delta": {"tool_calls": [{"index": 2, "function": {"arguments": ': "b"}'}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        },
    ]
    body = b"".join(sse(event) for event in events) + b"data: [DONE]\n\n"
    reply = read_reply("chat", exchange(body, SSE))
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"a": "b"}'}}
    assert [item.key for item in reply.items] == [i.key for i in assistant({"content": "Look", "tool_calls": [call]})]
    assert reply.usage == Usage(9, 4, 1, 8)
    assert (reply.whole, reply.id, reply.calls[0].texts) == (True, "c1", ("b",))


def test_the_first_token_is_not_the_role() -> None:
    """Whatever the reads were cut like, the time is that of the read that completed the first token's event."""
    start = sse({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    token = sse({"choices": [{"delta": {"content": "a"}}]})
    for size in (1, 7, len(start)):
        at = (len(start + token) - 1) // size + 1
        assert read_reply("chat", exchange(start + token, SSE, size=size)).first_token == 1000 * at


def test_an_anthropic_stream_is_the_message_that_the_next_prompt_holds() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo"}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"b"}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]
    reply = read_reply("messages", exchange(sse(*events, named=True), SSE))
    later = [
        {"type": "thinking", "thinking": "hm", "signature": "other"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}},
    ]
    assert [item.key for item in reply.items] == [item.key for item in assistant({"content": later})]
    assert (reply.usage, reply.whole, reply.calls[0].name) == (Usage(5, 30, None, None), True, "f")
    plain = {"type": "message", "id": "m", "content": later, "usage": {"input_tokens": 5, "output_tokens": 30}}
    again = read_reply("messages", exchange(json.dumps(plain).encode()))
    assert [item.key for item in again.items] == [item.key for item in reply.items]


def test_a_responses_stream() -> None:
    output = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {
            "type": "function_call",
            "id": "x",
            "call_id": "1",
            "name": "f",
            "arguments": '{"a": "b"}',
            "status": "completed",
        },
    ]
    usage = {"input_tokens": 12, "output_tokens": 6, "output_tokens_details": {"reasoning_tokens": 2}}
    events = [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.output_item.done", "item": output[0]},
        {"type": "response.completed", "response": {"id": "r1", "output": output, "usage": usage}},
    ]
    reply = read_reply("responses", exchange(sse(*events, named=True), SSE))
    later = [item.key for entry in output for item in response_item({**entry, "id": None}, str(entry["type"]))]
    assert [item.key for item in reply.items] == later
    assert (reply.usage, reply.id, reply.whole) == (Usage(12, 6, 2, None), "r1", True)
    assert (reply.calls[0].id, reply.calls[0].texts) == ("1", ("b",))


@pytest.mark.parametrize(
    ("wire", "body", "headers", "error"),
    [
        ("chat", b"<html>502</html>", (), "not JSON"),
        ("chat", b'{"error": {"type": "overloaded_error"}}', (), "overloaded_error"),  # with status 200
        ("chat", b'data: {"error": {"message": "my key is sk-1"}}\n\n', SSE, "error"),  # its words are not kept
        (
            "messages",
            b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
            SSE,
            "overloaded",
        ),
        ("chat", gzip.compress(b"{}", mtime=0)[:-12], (("content-encoding", "gzip"),), None),
        ("chat", b"junk", (("content-encoding", "gzip"),), "damaged"),
    ],
)
def test_what_is_no_whole_reply(
    wire: str, body: bytes, headers: tuple[tuple[str, str], ...], error: str | None
) -> None:
    reply = read_reply(wire, exchange(body, headers))
    assert reply.whole is False
    assert reply.usage == Usage()
    assert error is None or error in (reply.error or "")


@pytest.mark.parametrize("status", [None, 429, 500])
def test_no_answer_and_error_answers(status: int | None) -> None:
    assert read_reply("chat", exchange(b'{"usage": {"prompt_tokens": 5}}', status=status)).usage == Usage()


def test_a_stream_without_its_type_and_a_compressed_one() -> None:
    """R11: sniffed. A compressed stream has content and usage, and no time of its first token."""
    body = sse({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}})
    assert read_reply("chat", exchange(body)).whole
    packed = read_reply("chat", exchange(gzip.compress(body), (*SSE, ("content-encoding", "gzip"))))
    assert (packed.whole, packed.usage.prompt, packed.first_token) == (True, 3, None)


def _generated(text: str, ids: list[int], done: bool = False) -> dict[str, Any]:
    meta = {"prompt_tokens": 4, "completion_tokens": 3, "finish_reason": {"type": "stop"} if done else None}
    return {"text": text, "output_ids": ids, "meta_info": meta}


@pytest.mark.parametrize(
    ("events", "ids"),
    [
        ([[1, 2, 3]], (1, 2, 3)),
        ([[1], [1, 2], [1, 2, 3]], (1, 2, 3)),  # all so far
        ([[1], [2], [3]], (1, 2, 3)),  # those that are new
        ([[1, 2]], ()),  # not as many as there were tokens
        ([["a", "b", "c"]], ()),
    ],
)
def test_the_ids_of_a_generated_reply(events: list[list[Any]], ids: tuple[int, ...]) -> None:
    stream = b"".join(sse(_generated("x", each, number == len(events) - 1)) for number, each in enumerate(events))
    assert read_reply("generate", exchange(stream + b"data: [DONE]\n\n", SSE)).ids == ids
    if len(events) == 1:
        whole = json.dumps(_generated("x", events[0], True)).encode()
        assert read_reply("generate", exchange(whole, (("content-type", "application/json"),))).ids == ids


def test_generate() -> None:
    """SGLang's own: cumulative text, usage in meta_info."""
    meta = {"prompt_tokens": 8, "completion_tokens": 2, "cached_tokens": 3}
    events = [
        {"text": " a", "meta_info": {**meta, "completion_tokens": 1}},
        {"text": " a b", "meta_info": {**meta, "finish_reason": {"type": "length"}}},
    ]
    reply = read_reply("generate", exchange(b"".join(map(sse, events)) + b"data: [DONE]\n\n", SSE))
    assert (reply.usage, reply.whole, reply.size) == (Usage(8, 2, None, 3), True, 4)


@given(st.sampled_from(["chat", "messages", "responses", "generate"]), st.binary(max_size=200), st.booleans())
def test_nothing_that_is_sent_breaks_it(wire: str, body: bytes, stream: bool) -> None:
    assert isinstance(read_reply(wire, exchange(body, SSE if stream else ())), Reply)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "usage",
                    "type",
                    "index",
                    "response",
                    "output",
                    "item",
                    "error",
                    "text",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.sampled_from(["chat", "messages", "responses", "generate"]), st.lists(VALUES, max_size=4), st.booleans())
def test_no_event_breaks_it(wire: str, events: list[Any], stream: bool) -> None:
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    sent = exchange(body if stream else json.dumps(events[:1]).encode(), SSE if stream else ())
    assert isinstance(read_reply(wire, sent), Reply)
