"""Replies of `/v1/messages`: blocks that begin and end, usage that says what the cache gave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.engine.http_calls import Call
from agentx.engine.http_messages_reply import MessagesReply, messages_error
from agentx.engine.http_parts import scripted
from agentx.engine.http_replies import Progress
from agentx.wire.sse import SseParser


def progress(reason: str | None = None, ids: bytes = b"", **more: Any) -> Progress:
    call = Call("msg_1", "m", b" abc" * 9, 9, 0, False, "", stream=True, parsed=True, tools=True, **more)
    return Progress(call, 10.0, 1000.0, cached_device=4, cached_host=2, reason=reason, ids=bytearray(ids))


def events(raw: bytes) -> list[dict[str, Any]]:
    parser = SseParser()
    found = []
    for event in parser.feed(raw):
        found.append(json.loads(event.data))
        assert event.event == found[-1]["type"]  # clients go by the name
    assert not parser.close()
    return found


def streamed(state: Progress, ids: bytes, reason: str) -> list[dict[str, Any]]:
    reply, raw = MessagesReply(state), b""
    assert reply.start() == b""
    for at in range(0, len(ids) - 4, 4):
        state.ids += ids[at : at + 4]
        raw += reply.tokens(ids[at : at + 4])
    state.ids += ids[-4:]
    state.reason = reason
    return events(raw + reply.end(ids[-4:]))


def test_a_stream_of_text() -> None:
    start, block, ping, *deltas, stop, delta, last = streamed(progress(), b" Abc Def", "length")
    assert start["message"] == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
        "usage": {"input_tokens": 3, "output_tokens": 0, "cache_read_input_tokens": 6},
    }
    assert block == {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    assert ping == {"type": "ping"}
    assert [event["delta"]["text"] for event in deltas] == [" Abc", " Def"]
    assert stop == {"type": "content_block_stop", "index": 0}
    assert delta == {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}}
    assert last == {"type": "message_stop"}


SCRIPT = scripted("I go", reasoning="hm", calls=[("get", {"a": 1}), ("put", {})])


def test_a_stream_of_every_kind() -> None:
    found = streamed(progress(script=SCRIPT), SCRIPT.ids, "stop")
    blocks: list[dict[str, Any]] = []
    for event in found:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(event["content_block"] | {"open": True, "json": ""})
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            assert block["open"]
            key = {"thinking_delta": "thinking", "text_delta": "text", "input_json_delta": "json"}[delta["type"]]
            block[key] += delta["partial_json" if key == "json" else key]
        elif event["type"] == "content_block_stop":
            blocks[event["index"]]["open"] = False
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert not any(block["open"] for block in blocks)
    assert (blocks[0]["thinking"], blocks[1]["text"]) == ("hm", "I go")
    assert [(block["name"], block["input"], json.loads(block["json"])) for block in blocks[2:]] == [
        ("get", {}, {"a": 1}),
        ("put", {}, {}),
    ]
    assert blocks[2]["id"] != blocks[3]["id"]
    assert found[-2]["delta"] == {"stop_reason": "tool_use"}
    assert sum(event["type"] == "ping" for event in found) == 1


def test_whole_says_what_the_stream_says() -> None:
    body = json.loads(MessagesReply(progress("stop", SCRIPT.ids, script=SCRIPT)).whole())
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.get("input") for block in body["content"][2:]] == [{"a": 1}, {}]
    assert (body["stop_reason"], body["usage"]["output_tokens"]) == ("tool_use", len(SCRIPT.ids) // 4)


@pytest.mark.parametrize(
    ("reason", "stop_reason"), [("stop", "end_turn"), ("length", "max_tokens"), ("abort", "end_turn")]
)
def test_stop_reasons(reason: str, stop_reason: str) -> None:
    body = json.loads(MessagesReply(progress(reason, b" Abc")).whole())
    assert body["stop_reason"] == stop_reason
    assert body["content"] == [{"type": "text", "text": " Abc"}]


def test_arguments_that_a_limit_cut_are_none() -> None:
    cut = SCRIPT.ids[: SCRIPT.ids.index(b'":1') // 4 * 4]
    body = json.loads(MessagesReply(progress("length", cut, script=SCRIPT)).whole())
    assert body["content"][-1]["input"] == {}


def test_a_miss_has_no_cache_read() -> None:
    state = progress("stop", b" Abc")
    state.cached_device = state.cached_host = 0
    assert json.loads(MessagesReply(state).whole())["usage"] == {"input_tokens": 9, "output_tokens": 1}


def test_a_refusal_at_once_and_one_underway() -> None:
    start, error, stop = events(MessagesReply(progress()).refused(503, "The request queue is full."))
    assert start["message"]["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert error["error"] == {"type": "overloaded_error", "message": "The request queue is full."}
    assert stop == {"type": "message_stop"}
    reply = MessagesReply(progress())
    kinds = [event["type"] for event in events(reply.tokens(b" Abc") + reply.refused(500, "out of memory"))]
    assert kinds[-3:] == ["content_block_stop", "error", "message_stop"]


def test_an_error_body() -> None:
    assert json.loads(messages_error(400, "no", "BadRequestError")) == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "no"},
    }
