"""Anthropic's messages: what a stream and a whole reply tell; what they do not tell stays unknown."""

from __future__ import annotations

import json

import pytest

from agentx.wire.anthropic import messages_parts, parse_messages, parse_messages_stream

START = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90}}}
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
THINK = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm "}}
END = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 20}}
STOP = {"type": "message_stop"}


def read(*events, **more):
    return parse_messages_stream([json.dumps(event).encode() for event in events], **more)


def test_usage_is_added_up_once():
    reply = read(START, {"type": "ping"}, THINK, DELTA, END, STOP, text=True)
    assert (reply.prompt_tokens, reply.cached.total, reply.completion_tokens) == (100, 90, 20)
    assert (reply.text, reply.finish_reason, reply.done, reply.error) == ("hm hi", "max_tokens", True, None)
    assert reply.carries == (False, False, True, True, False, False)
    assert reply.token_counts == (None, None, None, None, 20, None)


STREAMS = [
    # events -> prompt tokens, cached, tokens, done, error
    ([{"type": "message_start", "message": {"usage": {"input_tokens": 7}}}, DELTA, END, STOP], (7, 0, 20, True, None)),
    ([START, DELTA], (100, 90, None, False, None)),  # cut in the middle
    (  # the first event counts one token already, the last one all of them
        [
            {
                "type": "message_start",
                "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}},
            },
            DELTA,
            END,
            STOP,
        ],
        (100, 90, 20, True, None),
    ),
    ([{"type": "message_start", "message": {"usage": {"input_tokens": 0}}}], (None, None, None, False, None)),
    (
        [{"type": "error", "error": {"type": "overloaded_error", "message": "full"}}, STOP],
        (None, None, None, True, "full"),
    ),
]


@pytest.mark.parametrize(("events", "told"), STREAMS)
def test_what_a_stream_tells(events, told):
    reply = read(*events)
    cached = reply.cached and reply.cached.total
    message = reply.error and reply.error.message
    assert (reply.prompt_tokens, cached, reply.completion_tokens, reply.done, message) == told


def test_a_whole_reply():
    usage = {"input_tokens": 5, "output_tokens": 3}
    body = {"type": "message", "content": [{"type": "text", "text": "hey"}], "stop_reason": "end_turn", "usage": usage}
    reply = parse_messages(json.dumps(body).encode())
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens, reply.done) == ("hey", 5, 3, True)
    refused = parse_messages(b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}')
    assert (refused.error.message, refused.done) == ("no", False)
    assert parse_messages(b"<html>").error.message.startswith("not a JSON object")


def test_what_stands_around_a_prompt():
    head, tail = messages_parts(model="m", max_tokens=7)
    body = json.loads(head + b'"system":"s","messages":[{"role":"user","content":"u"}' + tail)
    assert body == {
        "model": "m", "system": "s", "messages": [{"role": "user", "content": "u"}], "max_tokens": 7,
        "temperature": 0, "stream": True,
    }  # fmt: skip
