"""HAR files: bodies in the clear or as base64, requests without an answer, other traffic."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from logs import Json, at, take, written

from agentx.errors import BadInput

USAGE = {"input_tokens": 7, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30, "output_tokens": 3}


def entry(when: float, body: Any, reply: str | None, **more: Any) -> Json:
    content: Json = {"mimeType": "application/json", **({"text": reply} if reply is not None else {})}
    return {
        "startedDateTime": at(when),
        "time": 1500,
        "request": {"method": "POST", "url": "https://api.example/v1/messages?beta=true",
                    "headers": [{"name": "x-api-key", "value": "sk-secret-value-1"},
                                {"name": "X-Claude-Code-Session-Id", "value": "s"}],
                    "postData": {"text": json.dumps(body)}},
        "response": {"status": 200, "content": {**content, **more.pop("content", {})},
                     "headers": [{"name": "content-encoding", "value": "gzip"}]},
        **more,
    }  # fmt: skip


def message(words: str) -> str:
    content = [{"type": "text", "text": words}]
    return json.dumps({"id": "msg", "type": "message", "content": content, "usage": USAGE})


def stream(words: str) -> str:
    events = [
        {"type": "message_start", "message": {"id": "msg", "usage": {**USAGE, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


BODY = {"model": "m", "system": "be brief", "messages": [{"role": "user", "content": "hello"}]}


def har(*entries: Any) -> Json:
    return {"log": {"version": "1.2", "entries": list(entries)}}


@pytest.mark.parametrize("reply", [message("hi"), stream("hi")])
def test_a_call_with_its_usage_counted_once(tmp_path: Path, reply: str) -> None:
    """R17, R28 of the peers: input 7, cached 100, written 30; output 3 beside a start of 1 is 137 in and 3 out."""
    taken = take("har", written(tmp_path / "a.har", har(entry(0, BODY, reply))))
    (turn,) = taken.turns
    assert taken.lengths() == [(137, 3)]
    assert turn.observed is not None
    assert (turn.observed.cached, turn.observed.ttft, turn.observed.end) == (100, None, 1.5)
    assert taken.header.provenance["fidelity"]["timing"] == "start-end"
    assert b"sk-secret" not in taken.data


def test_base64_is_decoded(tmp_path: Path) -> None:
    text = base64.b64encode(message("hi").encode()).decode()
    taken = take("har", written(tmp_path / "a.har", har(entry(0, BODY, text, content={"encoding": "base64"}))))
    assert taken.lengths() == [(137, 3)]


def test_failures_are_attempts_and_other_traffic_is_dropped(tmp_path: Path) -> None:
    busy = entry(0, BODY, "busy")
    busy["response"]["status"] = 529
    silent = entry(60, {**BODY, "messages": [{"role": "user", "content": "other"}]}, None)
    silent["response"] = {"status": 0}
    get = entry(30, BODY, "{}")
    get["request"]["method"] = "GET"
    taken = take("har", written(tmp_path / "a.har", har(busy, entry(3, BODY, message("hi")), silent, get, "entry")))
    (turn,) = taken.turns
    assert turn.extra["attempts"] == {"count": 2, "failed": [529]}
    rows = taken.books.rows
    assert (rows.read, rows.used, rows.merged, rows.dropped.total()) == (5, 1, 1, 3)


def test_a_body_that_is_not_there_is_no_empty_body(tmp_path: Path) -> None:
    bare = entry(0, BODY, message("hi"))
    del bare["request"]["postData"]
    with pytest.raises(BadInput, match=r"0 model calls.*the request's body is not in the file"):
        take("har", written(tmp_path / "a.har", har(bare)))


@pytest.mark.parametrize("value", [{"log": {}}, {}, [1], {"log": {"entries": 3}}])
def test_what_is_no_har(tmp_path: Path, value: Any) -> None:
    with pytest.raises(BadInput, match=r"not a HAR file: it has no log\.entries"):
        take("har", written(tmp_path / "a.har", value))


def test_garbage_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.har").write_bytes(b"\xff\xfe{")
    with pytest.raises(BadInput, match="not a JSON document"):
        take("har", tmp_path / "a.har")
