"""OpenTelemetry exports: three shapes of content, two spans of one call, content that is hidden or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from logs import Json, at, lines, take, written

from agentx.core import GapParts, Tool
from agentx.errors import BadInput
from agentx.recorder.imports.instants import of_iso


def otlp(*spans: Json) -> Json:
    """Spans of an SDK as a collector writes them."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [_otlp(span) for span in spans]}]}]}


def _otlp(span: Json) -> Json:
    attributes = [{"key": key, "value": _value(value)} for key, value in span["attributes"].items()]
    events = [{"name": e["name"], "timeUnixNano": str(of_iso(e["timestamp"]))} for e in span.get("events", [])]
    return {"name": span["name"], "traceId": span["context"]["trace_id"], "spanId": span["context"]["span_id"],
            "startTimeUnixNano": str(of_iso(span["start_time"])), "endTimeUnixNano": str(of_iso(span["end_time"])),
            "attributes": attributes, "events": events}  # fmt: skip


def _value(value: Any) -> Json:
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": value}


def span(name: str, begin: float, end: float, events: Any = (), trace: str = "t1", **attributes: Any) -> Json:
    plain = {key.replace("__", "."): value for key, value in attributes.items()}
    return {"name": name, "context": {"trace_id": trace, "span_id": f"{begin}"}, "start_time": at(begin),
            "end_time": at(end), "attributes": plain,
            "events": [{"name": each, "timestamp": at(when)} for each, when in events]}  # fmt: skip


USE = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "x"}}


def genai(
    begin: float, end: float, messages: list[Json], reply: list[Json], prompt: int, out: int, **more: Any
) -> Json:
    return span("chat m", begin, end, gen_ai__operation__name="chat", gen_ai__request__model="m",
                gen_ai__conversation__id="talk", gen_ai__input__messages=json.dumps(messages),
                gen_ai__output__messages=json.dumps([{"role": "assistant", "parts": reply}]),
                gen_ai__usage__input_tokens=prompt, gen_ai__usage__output_tokens=out, **more)  # fmt: skip


def part(words: str) -> Json:
    return {"type": "text", "content": words}


def loop() -> list[Json]:
    first = [{"role": "user", "parts": [part("find it")]}]
    answer = {"type": "tool_call_response", "id": "c1", "response": "found"}
    later = [*first, {"role": "assistant", "parts": [USE]}, {"role": "tool", "parts": [answer]}]
    return [
        genai(0, 2, first, [USE], 50, 10, gen_ai__usage__cache_read__input_tokens=20,
              gen_ai__response__time_to_first_chunk=0.5),
        span("execute_tool search", 2, 4.5, gen_ai__operation__name="execute_tool", gen_ai__tool__call__id="c1"),
        genai(5, 7, later, [part("there")], 70, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("shape", ["otlp", "lines", "list", "spans"])
def test_a_tool_loop_in_every_shape_of_file(tmp_path: Path, shape: str) -> None:
    spans = loop()
    made = {"otlp": otlp(*spans), "list": spans, "spans": {"trace_id": "t1", "spans": spans}}
    path = tmp_path / "a.json"
    taken = take("otel", lines(path, *spans) if shape == "lines" else written(path, made[shape]))
    first, second = taken.turns
    assert taken.lengths() == [(50, 10), (70, 4)]
    assert (second.prompt.base, second.gap.kind, second.gap.seconds) == (0, "tool", 3.0)
    assert second.tools == (Tool("search", 2.5),)
    assert second.gap.parts == GapParts(2.5)
    assert first.observed is not None
    assert (first.observed.ttft, first.observed.cached) == (0.5, 20)
    assert taken.books.rows.dropped == {"span of no model call": 1}
    assert taken.sessions[0].extra["known_by"] == "session-id"


def test_two_spans_of_one_call_are_one(tmp_path: Path) -> None:
    """The one nearest the wire has the usage (3 tokens, not 4) and a resend count; the other has the messages."""
    wire = span("anthropic.messages.create", 0.1, 2, gen_ai__operation__name="chat", gen_ai__response__id="msg_1",
                http__request__resend_count=1, gen_ai__response__time_to_first_chunk=0.9,
                gen_ai__usage__input_tokens=137, gen_ai__usage__output_tokens=3,
                gen_ai__usage__cache_read__input_tokens=100)  # fmt: skip
    outer = genai(0, 2.1, [{"role": "user", "parts": [part("hello")]}], [part("hi")], 137, 4)
    outer["attributes"]["gen_ai.response.id"] = "msg_1"
    for order in ([wire, outer], [outer, wire]):
        taken = take("otel", lines(tmp_path / "a.jsonl", *order))
        assert taken.lengths() == [(137, 3)]
        assert taken.books.rows.merged == 1
        observed = taken.turns[0].observed
        assert observed is not None
        assert (observed.ttft, observed.cached, observed.end) == (None, 100, 1.9)  # retries are in that time
        assert taken.books.notes["time to the first token that includes failed attempts: left out"] == 1


def openinference(**more: Any) -> Json:
    flat = {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "session.id": "s",
        "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "be brief",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": "hello there",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "Bash",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
        "llm.tools.0.tool.json_schema": '{"name": "Bash"}',
        "llm.token_count.prompt": 137, "llm.token_count.completion": 3,
        "llm.token_count.prompt_details.cache_read": 100, **more,
    }  # fmt: skip
    made = span("ChatCompletion", 0, 2, events=[("First Token Stream Event", 0.75)])
    return {**made, "attributes": {key: value for key, value in flat.items() if value is not None}}


def test_openinferences_flat_names(tmp_path: Path) -> None:
    taken = take("otel", lines(tmp_path / "a.jsonl", openinference()))
    session = taken.sessions[0]
    assert [session.segment(p.segment).layer for p in session.pieces(0)] == ["tools", "system", "user"]
    observed = session.turns[0].observed
    assert observed is not None
    assert (taken.lengths(), observed.ttft, observed.cached) == ([(137, 3)], 0.75, 100)


def test_hidden_content_leaves_lengths(tmp_path: Path) -> None:
    hidden = {
        key: "__REDACTED__" for key in openinference()["attributes"] if key.startswith(("llm.input_m", "llm.out"))
    }
    taken = take("otel", lines(tmp_path / "a.jsonl", openinference(**hidden)))
    assert taken.lengths() == [(137, 3)]
    assert taken.books.notes["call without its messages (content is opt-in): only its lengths are known"] == 1


def test_content_that_was_cut_is_not_taken_for_whole(tmp_path: Path) -> None:
    """Exporters cut attributes without a sign: what is no JSON any more counts as not told."""
    made = genai(0, 2, [{"role": "user", "parts": [part("x" * 300)]}], [part("hi")], 90, 2)
    made["attributes"]["gen_ai.input.messages"] = made["attributes"]["gen_ai.input.messages"][:128]
    taken = take("otel", lines(tmp_path / "a.jsonl", made))
    assert taken.books.notes["call without its messages (content is opt-in): only its lengths are known"] == 1


def test_spans_of_one_trace_are_a_session_where_none_is_named(tmp_path: Path) -> None:
    first, tool, second = loop()
    for each in (first, second):
        del each["attributes"]["gen_ai.conversation.id"]
    alone = {**genai(20, 21, [{"role": "user", "parts": [part("other")]}], [part("ok")], 9, 1), "context":
             {"trace_id": "t2", "span_id": "z"}}  # fmt: skip
    del alone["attributes"]["gen_ai.conversation.id"]
    taken = take("otel", lines(tmp_path / "a.jsonl", first, tool, second, alone))
    assert [len(session.turns) for session in taken.sessions] == [2, 1]
    assert taken.books.notes["session by its trace id (inferred)"] == 2


@pytest.mark.parametrize(
    "value", [otlp(), {"resourceSpans": []}, otlp(span("GET /", 0, 1, http__method="GET")), [], {}]
)
def test_an_export_without_a_call_says_so(tmp_path: Path, value: Any) -> None:
    """R34: nothing was instrumented; that is no empty trace."""
    with pytest.raises(BadInput, match="0 model calls"):
        take("otel", written(tmp_path / "a.json", value))


def test_claude_codes_own_spans_have_lengths(tmp_path: Path) -> None:
    made = span("claude_code.llm_request", 0, 3, model="m", input_tokens=3, cache_read_tokens=90,
                cache_creation_tokens=7, output_tokens=5, ttft_ms=800, request_id="r")  # fmt: skip
    taken = take("otel", lines(tmp_path / "a.jsonl", made))
    observed = taken.turns[0].observed
    assert observed is not None
    assert (taken.lengths(), observed.cached, observed.ttft) == ([(100, 5)], 90, 0.8)
