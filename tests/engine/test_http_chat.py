"""Reasoning and tool calls of a chat reply, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

from agentx.engine.http_calls import Call
from agentx.engine.http_chat import ChatReply
from agentx.engine.http_parts import scripted
from agentx.engine.http_replies import Progress
from agentx.wire.openai import parse_chat, parse_chat_stream
from agentx.wire.sse import SseParser

SCRIPT = scripted("I go", reasoning="hm", calls=[("get", {"a": 1}), ("put", {})])


def progress(reason: str | None = None, ids: bytes = b"") -> Progress:
    call = Call("r", "m", b" abc" * 9, 9, 0, False, "", True, True, True, parsed=True, tools=True, script=SCRIPT)
    return Progress(call, 10.0, 1000.0, cached_device=4, cached_host=2, reason=reason, ids=bytearray(ids))


def test_a_stream_of_every_kind() -> None:
    state = progress()
    reply, raw = ChatReply(state), b""
    for at in range(0, len(SCRIPT.ids), 4):
        state.ids += SCRIPT.ids[at : at + 4]
        raw += reply.tokens(SCRIPT.ids[at : at + 4])
    state.reason = "stop"
    parser = SseParser()
    data = [event.data for event in parser.feed(raw + reply.end(b""))]
    deltas = [json.loads(event)["choices"][0]["delta"] for event in data[:-3]]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "hm"
    assert "".join(delta.get("content") or "" for delta in deltas) == "I go"
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        for piece in delta.get("tool_calls") or []:
            assert piece["type"] == "function"
            if piece["index"] == len(calls):  # a call begins with its id and name, and with no arguments yet
                assert piece["function"]["arguments"] == ""
                calls.append({"id": piece["id"], "name": piece["function"]["name"], "arguments": ""})
                continue
            assert (piece["id"], piece["function"]["name"]) == (None, None)
            calls[piece["index"]]["arguments"] += piece["function"]["arguments"]
    assert [(call["name"], json.loads(call["arguments"])) for call in calls] == [("get", {"a": 1}), ("put", {})]
    assert json.loads(data[-3])["choices"][0]["finish_reason"] == "tool_calls"
    usage = json.loads(data[-2])["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": SCRIPT.reasoning_tokens}
    read = parse_chat_stream(data, text=True)
    text = 'hmI go{"a":1}{}'  # all that was generated, the calls' arguments too
    assert (read.text, read.finish_reason, read.completion_tokens) == (text, "tool_calls", len(SCRIPT.ids) // 4)
    whole = json.loads(ChatReply(progress("stop", SCRIPT.ids)).whole())["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in whole] == [call["id"] for call in calls]


def test_whole() -> None:
    body = ChatReply(progress("stop", SCRIPT.ids)).whole()
    choice = json.loads(body)["choices"][0]
    assert (choice["finish_reason"], choice["message"]["reasoning_content"]) == ("tool_calls", "hm")
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["get", "put"]
    assert parse_chat(body).finish_reason == "tool_calls"


def test_a_reply_that_a_limit_cut_did_not_end_for_its_calls() -> None:
    choice = json.loads(ChatReply(progress("length", SCRIPT.ids[:-8])).whole())["choices"][0]
    assert choice["finish_reason"] == "length"
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["get"]


def test_a_step_of_markup_shows_nothing_but_the_role() -> None:
    state = progress()
    reply = ChatReply(state)
    first = reply.tokens(SCRIPT.ids[:4])  # <thi
    assert first.count(b"data: ") == 1
    assert b'"role":"assistant"' in first
