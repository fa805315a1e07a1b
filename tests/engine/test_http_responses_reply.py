"""Replies of `/v1/responses`: numbered events, items that begin, grow and end, and the whole at the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.engine.http_calls import Call
from agentx.engine.http_parts import Scripted, scripted
from agentx.engine.http_replies import Progress
from agentx.engine.http_responses_reply import ResponsesReply, responses_error
from agentx.wire.sse import SseParser

SCRIPT = scripted("I go", reasoning="hm", calls=[("get", {"a": 1}), ("put", {})])


def progress(reason: str | None = None, ids: bytes = b"", script: Scripted | None = None) -> Progress:
    call = Call(
        "resp_1", "m", b" abc" * 9, 9, 0, False, "", stream=True, parsed=True, tools=True, script=script,
        told={"instructions": "be brief"},
    )  # fmt: skip
    return Progress(call, 10.0, 1000.0, cached_device=4, cached_host=2, reason=reason, ids=bytearray(ids))


def events(raw: bytes) -> list[dict[str, Any]]:
    parser = SseParser()
    found = []
    for event in parser.feed(raw):
        found.append(json.loads(event.data))
        assert event.event == found[-1]["type"]
    assert not parser.close()
    return found


def streamed(ids: bytes, reason: str, script: Scripted | None = None) -> list[dict[str, Any]]:
    state = progress(script=script)
    reply = ResponsesReply(state)
    raw = reply.start()
    for at in range(0, len(ids), 4):
        state.ids += ids[at : at + 4]
        raw += reply.tokens(ids[at : at + 4])
    state.reason = reason
    found = events(raw + reply.end(b""))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def test_a_stream_of_text() -> None:
    found = streamed(b" Abc Def", "length")
    assert [event["type"].removeprefix("response.") for event in found] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "incomplete",
    ]  # fmt: skip
    assert found[0]["response"] == {**found[0]["response"], "id": "resp_1", "output": [], "status": "in_progress"}
    assert found[0]["response"]["instructions"] == "be brief"
    assert [event["delta"] for event in found[4:6]] == [" Abc", " Def"]
    assert found[6]["text"] == " Abc Def"
    assert len({event["item_id"] for event in found[3:8]}) == 1
    response = found[-1]["response"]
    assert response["output"] == [found[8]["item"]]
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert response["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 11,
    }


def test_a_stream_of_every_kind() -> None:
    found = streamed(SCRIPT.ids, "stop", SCRIPT)
    added = [event for event in found if event["type"] == "response.output_item.added"]
    done = [event for event in found if event["type"] == "response.output_item.done"]
    kinds = ["reasoning", "message", "function_call", "function_call"]
    assert [event["item"]["type"] for event in added] == [event["item"]["type"] for event in done] == kinds
    assert [event["output_index"] for event in added] == [event["output_index"] for event in done] == [0, 1, 2, 3]
    assert [event["item"]["id"] for event in added] == [event["item"]["id"] for event in done]
    for event, begun in zip(done, added, strict=True):
        deltas = [other["delta"] for other in found if "delta" in other and other["item_id"] == event["item"]["id"]]
        item = event["item"]
        whole = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
        assert "".join(deltas) == whole
        assert begun["item"]["status"] == "in_progress"
    assert [(event["item"]["name"], event["item"]["arguments"]) for event in done[2:]] == [
        ("get", '{"a":1}'),
        ("put", "{}"),
    ]
    response = found[-1]["response"]
    assert (found[-1]["type"], response["status"]) == ("response.completed", "completed")
    assert response["output"] == [event["item"] for event in done]
    assert response["usage"]["output_tokens_details"] == {"reasoning_tokens": SCRIPT.reasoning_tokens}


def test_whole_says_what_the_stream_says() -> None:
    body = json.loads(ResponsesReply(progress("stop", SCRIPT.ids, SCRIPT)).whole())
    assert body == streamed(SCRIPT.ids, "stop", SCRIPT)[-1]["response"]


@pytest.mark.parametrize(
    ("reason", "status", "error"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", None),
        ("abort", "failed", {"code": "server_error", "message": "Aborted"}),
    ],
)
def test_status(reason: str, status: str, error: object) -> None:
    body = json.loads(ResponsesReply(progress(reason, b" Abc")).whole())
    assert (body["status"], body["error"]) == (status, error)
    assert streamed(b" Abc", reason)[-1]["type"] == f"response.{status}"


def test_a_refusal_at_once_and_one_underway() -> None:
    found = events(ResponsesReply(progress()).refused(503, "The request queue is full."))
    assert [event["type"] for event in found] == ["response.created", "response.in_progress", "response.failed"]
    assert found[-1]["response"]["error"] == {"code": "server_error", "message": "The request queue is full."}
    assert found[-1]["response"]["usage"] is None
    reply = ResponsesReply(progress())
    reply.start()
    kinds = [event["type"] for event in events(reply.tokens(b" Abc") + reply.refused(500, "out of memory"))]
    assert kinds[-2:] == ["response.output_item.done", "response.failed"]


def test_an_error_body() -> None:
    assert json.loads(responses_error(400, "no", "BadRequestError")) == {
        "error": {"message": "no", "type": "invalid_request_error", "param": None, "code": 400}
    }
    assert json.loads(responses_error(503, "full", "503"))["error"]["type"] == "server_error"
