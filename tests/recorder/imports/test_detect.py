"""What a file is, by its own words."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from logs import lines, written

from agentx.errors import BadInput
from agentx.recorder.imports.detect import detect

OBJECTS: list[tuple[str, Any]] = [
    ("weka", {"id": "s", "requests": [], "block_size": 64}),
    ("mooncake", {"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}),
    ("bailian", {"chat_id": 1, "input_length": 5, "output_length": 1}),
    ("har", {"log": {"entries": []}}),
    ("otel", {"resourceSpans": []}),
    ("otel", {"trace_id": "t", "spans": []}),
    ("otel", {"name": "x", "context": {}, "start_time": "2026", "attributes": {}}),
    ("claude-bodies", {"timestamp": "x", "request_file": "a", "response_file": "b"}),
    ("codex-trace", {"schema_version": 1, "seq": 1, "wall_time_unix_ms": 1, "payload": {}}),
    ("codex", {"timestamp": "x", "type": "session_meta", "payload": {}}),
    ("claude-code", {"type": "user", "sessionId": "s", "uuid": "u"}),
    ("sglang-metrics", {"request_parameters": "{}", "id": "r"}),
    ("sglang-log", {"timestamp": "x", "event": "request.received", "rid": "r", "obj": {}}),
    ("litellm", {"litellm_call_id": "i", "messages": []}),
    ("aiperf", {"metadata": {}, "responses": [], "payload": {}}),
    ("dynamo", {"timestamp": 1, "event": {"event_type": "request_end"}}),
    ("dynamo", {"event": "request_end", "agent_context": {}}),
    ("mini-swe-agent", {"messages": [], "info": {}, "trajectory_format": "x"}),
    ("openhands", {"messages": [], "response": {}, "cost": 0}),
    ("mlperf", {"conversation_id": "c", "role": "user"}),
    ("chats", {"id": "a", "conversations": []}),
]


@pytest.mark.parametrize(("name", "value"), OBJECTS)
def test_objects_by_their_keys(tmp_path: Path, name: str, value: Any) -> None:
    assert detect(lines(tmp_path / "one.txt", value)) == name
    assert detect(written(tmp_path / "list.json", [value])) == name
    (tmp_path / "pretty.json").write_text(json.dumps(value, indent=2))
    assert detect(tmp_path / "pretty.json") == name
    (tmp_path / "packed.gz").write_bytes(gzip.compress(json.dumps(value).encode() + b"\n"))
    assert detect(tmp_path / "packed.gz") == name


def test_lines_that_say_little_are_passed_over(tmp_path: Path) -> None:
    first = {"type": "file-history-snapshot", "messageId": "m"}
    assert detect(lines(tmp_path / "a.jsonl", first, {"type": "user", "sessionId": "s"})) == "claude-code"
    prefixed = '[2026-11-30 15:58:29] {"timestamp": "x", "event": "request.received", "rid": "r", "obj": {}}'
    assert detect(lines(tmp_path / "b.log", "[2026-11-30] start", prefixed)) == "sglang-log"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("mitmproxy", b"34:7:request;9:4:path;0:,}4:type;4:http;}"),
        ("sglang-dump", pickle.dumps({"requests": []})),
        ("azure", b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"),
        ("burstgpt", b"Timestamp,Session ID,Elapsed time\n"),
        ("mini-swe-agent", b'[\n {"role": "system", "content": "x"}\n]'),
    ],
)
def test_files_by_their_beginnings(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert detect(tmp_path / "a") == name


def test_folders(tmp_path: Path) -> None:
    written(tmp_path / "bodies" / "u.request.json", {})
    assert detect(tmp_path / "bodies") == "claude-bodies"
    lines(tmp_path / "bundle" / "r" / "trace.jsonl", OBJECTS[8][1])
    written(tmp_path / "bundle" / "r" / "manifest.json", {})
    assert detect(tmp_path / "bundle") == "codex-trace"
    lines(tmp_path / "mixed" / "a.jsonl", OBJECTS[10][1])
    lines(tmp_path / "mixed" / "b.jsonl", OBJECTS[9][1])
    with pytest.raises(BadInput, match="the folder holds several formats: claude-code, codex"):
        detect(tmp_path / "mixed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="the format cannot be told"):
        detect(tmp_path / "empty")


@pytest.mark.parametrize("data", [b"hello", b"{", b"{}", b"[]", b"[1]", b"null", b"\x1f\x8bxx", b"\x80", b"\xff\xfe"])
def test_what_fits_nothing_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(BadInput, match="the format cannot be told"):
        detect(tmp_path / "a")


def test_a_capture_is_none(tmp_path: Path) -> None:
    written(tmp_path / "cap" / "manifest.json", {})
    (tmp_path / "cap" / "seg-000001.rec").write_bytes(b"x")
    with pytest.raises(BadInput, match="this is a capture"):
        detect(tmp_path / "cap")


def test_a_trace_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x93AX1abc")
    with pytest.raises(BadInput, match="an agentx trace already"):
        detect(tmp_path / "a")
