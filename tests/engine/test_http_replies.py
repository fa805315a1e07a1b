"""Shapes that are joined from bytes: JSON whatever the text, read back by the wire's own readers."""

from __future__ import annotations

import json

from agentx.core import Cached
from agentx.engine.http_calls import Call
from agentx.engine.http_chat import ChatReply
from agentx.engine.http_generate import GenerateStream, generate_aborted, generate_reply
from agentx.engine.http_replies import Progress, log_line
from agentx.engine.messages import Finished
from agentx.engine.tokenizer import ids_to_list
from agentx.wire.openai import parse_chat, parse_chat_stream
from agentx.wire.reply import ServerError
from agentx.wire.sglang import parse_generate, parse_generate_stream
from agentx.wire.sse import SseParser

ODD = [b'a"\\\n', b"\0\x01\x1f ", "é€".encode()[:4], b"\xff\xfe\xfd\xfc"]  # quotes, controls, a cut character, noise


def progress(**more: object) -> Progress:
    call = Call('r"1', "m\\", b" abc" * 9, 9, 0, True, "", True, True, True, True)
    values = {"cached_device": 4, "cached_host": 2, "queued": 0.5, "first": 11.0, "end": 13.0, **more}
    return Progress(call, 10.0, 1000.0, **values)  # type: ignore[arg-type]


def data(raw: bytes) -> list[bytes]:
    parser = SseParser()
    events = [event.data for event in parser.feed(raw)]
    assert not parser.close()
    return events


def test_odd_text_streams_as_json() -> None:
    state = progress()
    stream, raw = ChatReply(state), b""
    for ids in ODD:
        state.ids += ids
        raw += stream.tokens(ids)
    state.reason = "stop"
    events = data(raw + stream.end(b""))
    assert all(json.loads(event)["id"] == 'r"1' for event in events[:-1])
    reply = parse_chat_stream(events, text=True)
    assert reply.text == "".join(ids.decode("utf-8", "replace") for ids in ODD)
    assert reply.token_counts == (None, 1, 2, 3, 4, None, None, 4, None)
    assert reply.cached == Cached(total=6, device=4, host=2)


def test_odd_text_accumulates_as_json() -> None:
    state = progress()
    stream, events = GenerateStream(state), []
    for ids in ODD:
        state.ids += ids
        events.append(stream.tokens(ids))
    state.reason = "length"
    events.append(stream.tokens(b""))  # an end without tokens
    reply = parse_generate_stream([*events, b"[DONE]"], text=True)
    assert reply.text == "".join(ids.decode("utf-8", "replace") for ids in ODD)
    assert reply.output_ids == tuple(ids_to_list(b"".join(ODD)))
    assert (reply.queue_seconds, reply.server_first_token_seconds) == (0.5, 1.0)
    assert reply.carries == (True, True, True, True, False, False)


def test_whole_replies_say_the_same() -> None:
    state = progress(reason="length", ids=bytearray(b" Abc Def"))
    for reply in (parse_chat(ChatReply(state).whole()), parse_generate(generate_reply(state))):
        assert (reply.text, reply.completion_tokens, reply.prompt_tokens) == (" Abc Def", 2, 9)
        assert reply.cached == Cached(total=6, device=4, host=2)
        assert reply.finish_reason == "length"


def test_speculation_is_told_as_sglang_does() -> None:
    state = progress(reason="length", ids=bytearray(b" Abc" * 7), verify_steps=3, histogram=(1, 1, 1, 0))
    spec = parse_generate(generate_reply(state)).spec
    assert spec is not None
    assert spec["spec_verify_ct"] == 3
    assert spec["spec_num_correct_drafts"] == 3
    assert spec["spec_correct_drafts_histogram"] == [1, 1, 1]  # it ends with the last that occurred
    assert (spec["spec_num_proposed_drafts"], spec["spec_accept_rate"]) == (9, 3 / 9)


def test_an_abort_by_the_engine_keeps_what_was_made() -> None:
    reply = parse_generate(generate_aborted(progress(ids=bytearray(b" Abc")), 500, "out of memory"))
    assert reply.error == ServerError(500, "out of memory")
    assert reply.completion_tokens == 1


def test_a_log_line_says_null_for_what_never_was() -> None:
    end = Finished("r", 13.0, "abort", 9, 0, 0, 0, 0.0, 0, 0, ())
    line = json.loads(log_line(progress(cached_device=None, cached_host=None, queued=None, first=None), end))
    assert line == {
        "rid": 'r"1',
        "received": 1000.0,
        "prompt_tokens": 9,
        "completion_tokens": 0,
        "cached_tokens": None,
        "queue_seconds": None,
        "first_token_seconds": None,
        "end_seconds": 3.0,
        "finish_reason": "abort",
        "retractions": 0,
    }
