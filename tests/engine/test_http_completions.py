"""`/v1/completions`: one prompt of text or ids, 16 tokens unless told, the reason on the last chunk of text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.core import Cached
from agentx.engine.http_calls import Call, Rejected
from agentx.engine.http_completions import CompletionReply, completion_call
from agentx.engine.http_parts import scripted
from agentx.engine.http_replies import Progress
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import ids_to_list
from agentx.wire.openai import parse_chat, parse_chat_stream
from agentx.wire.sse import SseParser

SETTINGS = EngineSettings(context=100)


def call(**body: Any) -> Call:
    return completion_call(json.dumps({"prompt": " abc def", **body}).encode(), SETTINGS)


def progress(**more: Any) -> Progress:
    told = {"include_usage": True, "continuous_usage": True, "cached_details": True}
    asked = Call("cmpl", "m", b" abc" * 9, 9, 0, True, "", stream=True, **{**told, **more})
    return Progress(asked, 10.0, 1000.0, cached_device=4, cached_host=2)


def data(raw: bytes) -> list[bytes]:
    parser = SseParser()
    events = [event.data for event in parser.feed(raw)]
    assert not parser.close()
    return events


@pytest.mark.parametrize(
    ("prompt", "ids", "last"),
    [
        (" abc def", b" abc def", " abc def"),  # nothing around it
        ("abcde", b"abcde   ", "abcde"),
        (ids_to_list(b" abc def"), b" abc def", " abc def"),
        ([" abc"], b" abc", " abc"),  # a list of one is one
        ([ids_to_list(b" abc")], b" abc", " abc"),
    ],
)
def test_prompts(prompt: object, ids: bytes, last: str) -> None:
    made = call(prompt=prompt)
    assert (made.prompt, made.last, made.max_new, made.parsed) == (ids, last, 16, False)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"prompt": ""}, "Prompt cannot be empty"),
        ({"prompt": []}, "Prompt cannot be empty"),
        ({"prompt": [""]}, "Prompt cannot be empty"),
        ({"prompt": [[]]}, "Prompt cannot be empty"),
        ({"prompt": ["a", "b"]}, "one prompt per request, got 2"),
        ({"prompt": [[1], [2]]}, "one prompt per request, got 2"),
        ({"prompt": [-1]}, "whole numbers"),
        ({"prompt": 7}, "prompt"),
        ({"n": 2}, "n must be 1, got 2"),
        ({"best_of": 3}, "got 3"),
        ({"echo": True}, "does not model echo"),
        ({"suffix": "x"}, "does not model suffix"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 99}, "a total of 101 tokens: 2 tokens from the input messages and 99 tokens"),
        ({"min_tokens": 17}, "min_new_tokens"),
    ],
)
def test_refusals(body: dict[str, Any], says: str) -> None:
    with pytest.raises(Rejected, match=says):
        call(**body)


def test_a_stream() -> None:
    state = progress()
    reply, raw = CompletionReply(state), b""
    state.ids += b" Abc"
    raw += reply.tokens(b" Abc")
    state.ids += b" Def"
    state.reason = "length"
    events = data(raw + reply.end(b" Def"))
    first, second, tiers, usage = map(json.loads, events[:-1])
    assert first["choices"] == [
        {"index": 0, "text": " Abc", "logprobs": None, "finish_reason": None, "matched_stop": None}
    ]
    assert (first["id"], first["object"], first["model"]) == ("cmpl", "text_completion", "m")
    assert first["usage"]["prompt_tokens_details"] is None  # as SGLang has it on chunks
    assert (second["choices"][0]["text"], second["choices"][0]["finish_reason"]) == (" Def", "length")
    assert tiers["sglext"] == {"cached_tokens_details": {"device": 4, "host": 2}}
    assert (usage["choices"], usage["usage"]["prompt_tokens_details"]) == ([], {"cached_tokens": 6})
    read = parse_chat_stream(events)
    assert read.token_counts == (1, 2, None, 2, None)
    assert (read.cached, read.finish_reason, read.done) == (Cached(6, 4, 2), "length", True)


def test_a_stream_that_was_not_asked_for_usage() -> None:
    state = progress(include_usage=False, continuous_usage=False, cached_details=False)
    state.ids += b" Abc"
    state.reason = "length"
    chunk, done = data(CompletionReply(state).end(b" Abc"))
    assert json.loads(chunk)["usage"] is None
    assert done == b"[DONE]"


def test_a_refused_stream_says_so() -> None:
    refused, usage, done = data(CompletionReply(progress()).refused(503, "The request queue is full."))
    assert json.loads(refused)["error"]["code"] == 503
    assert json.loads(usage)["choices"] == []
    assert done == b"[DONE]"


def test_whole_and_by_script() -> None:
    script = scripted("é", reasoning="hm", show_reasoning=False)  # nothing is parsed: what the model wrote is the text
    state = progress(script=script)
    state.ids += script.ids
    state.reason = "stop"
    body = CompletionReply(state).whole()
    assert json.loads(body)["choices"][0]["text"] == "<think>hm</think>é"
    assert parse_chat(body).cached == Cached(6, 4, 2)
    stream = CompletionReply(state)
    parts = [stream.tokens(script.ids[at : at + 4]) for at in range(0, len(script.ids), 4)]
    texts = [json.loads(event)["choices"][0]["text"] for event in data(b"".join(parts))]
    assert "".join(texts) == "<think>hm</think>é"
