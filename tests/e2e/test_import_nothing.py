"""`agentx import` of a source without a model call: every format says so in one line, exits with 2, writes nothing."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from agentx.cli.import_ import FORMATS, LOGS, OWN
from agentx.cli.main import main

USER = {"type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-06-01T05:40:20.000Z"}
ENTRY = {"request": {"method": "GET", "url": "http://x/", "headers": []}, "response": {"status": 200, "headers": []}}
SPAN = {
    "name": "x",
    "context": {"trace_id": "t", "span_id": "a"},
    "start_time": "2026-06-01T05:40:20Z",
    "attributes": {},
}
ROLLOUT = {"type": "rollout_started", "root_thread_id": "root"}
BUNDLE = {"schema_version": 1, "seq": 1, "wall_time_unix_ms": 1, "rollout_id": "r", "payload": ROLLOUT}
TOOL_END = {"timestamp": 1, "event": {"schema": "dynamo.agent.trace.v1", "event_type": "tool_end"}}

# What each format has in it when nobody asked a model anything: a document, lines, or bytes.
NOTHING: dict[str, tuple[str, Any]] = {
    "weka": ("a.json", {"id": "s", "block_size": 64, "requests": []}),
    "mooncake": ("a.jsonl", b""),
    "trie": ("a.jsonl", b""),
    "azure": ("a.csv", b"TIMESTAMP,ContextTokens,GeneratedTokens\n"),
    "burstgpt": ("a.csv", b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Log Type\n"),
    "bailian": ("a.jsonl", b""),
    "tracelab": ("a.jsonl", b""),
    "trtllm": ("a.json", {"trace_id": "t", "events": []}),
    "chats": ("a.json", [{"id": "a", "conversations": []}]),
    "mlperf": ("a.jsonl", [{"conversation_id": "c", "turn": 1, "role": "user", "content": "hi"}]),
    "dynamo": ("a.jsonl", [TOOL_END]),
    "claude-bodies": ("bodies/index.jsonl", [{"request_file": "gone.json", "response_file": "gone.json"}]),
    "codex-trace": ("bundle/trace.jsonl", [BUNDLE]),
    "claude-code": ("a.jsonl", [{**USER, "message": {"role": "user", "content": "hello"}}]),
    "codex": ("a.jsonl", [{"timestamp": "2026-06-01T05:40:20.000Z", "type": "session_meta", "payload": {"id": "s"}}]),
    "har": ("a.har", {"log": {"entries": [ENTRY]}}),
    "mitmproxy": ("a.mitm", b"28:4:type;3:tcp;7:version;2:21#}"),
    "sglang-metrics": ("a.log", [{"request_parameters": "{}", "id": "r"}]),
    "sglang-log": ("a.log", [{"timestamp": "2026-11-30T15:58:29.23", "event": "server.ready", "rid": None, "obj": {}}]),
    "sglang-dump": ("a.pkl", pickle.dumps({"requests": []})),
    "otel": ("a.json", [SPAN]),
    "litellm": ("a.json", {"litellm_call_id": "i", "call_type": "aembedding", "messages": [], "response": {}}),
    "aiperf": ("a.jsonl", [{"metadata": {}, "payload": {}, "responses": []}]),
    "mini-swe-agent": ("a.traj.json", {"messages": [{"role": "user", "content": "hi"}], "info": {}}),
    "openhands": ("a.json", {"messages": [{"role": "user", "content": "hi"}], "cost": 0}),
    "openhands-events": ("a.json", [{"kind": "PauseEvent", "id": "p", "timestamp": "t", "source": "user"}]),
}  # fmt: skip


def put(folder: Path, name: str, value: Any) -> Path:
    """The file; what is to be imported is the folder that it lies in, where it has one."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    elif name.endswith((".jsonl", ".log")):
        path.write_text("".join(json.dumps(line) + "\n" for line in value))
    else:
        path.write_text(json.dumps(value))
    return path.parent if "/" in name else path


def test_every_format_is_in_the_table() -> None:
    assert NOTHING.keys() == {*OWN, *FORMATS, *LOGS}


@pytest.mark.parametrize("format", [*OWN, *FORMATS, *LOGS])
def test_no_model_call_is_said_and_nothing_is_written(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    source = put(tmp_path, *NOTHING[format])
    assert main(["import", format, str(source), "-o", str(tmp_path / "out.trace")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert "0 model calls" in line or "the file is empty" in line
    assert str(source) in line
    assert not list(tmp_path.glob("out*"))
