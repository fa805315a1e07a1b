"""Logs with content through the command line: found out, without content in the trace, and whatever stands in them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import changed
from logs import Json, lines, written

from agentx.cli.import_ import FORMATS, LOGS, OWN
from agentx.cli.main import main
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.logged import import_calls
from agentx.trace import read_trace

WORDS = "the plan of project Heron"
USER = {"role": "user", "content": WORDS}
USAGE = {"prompt_tokens": 40, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
CHAT = {"id": "c", "model": "m", "usage": USAGE,
        "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}  # fmt: skip
WHEN = "2026-06-01T05:40:20.151Z"
CLAUDE: list[Json] = [
    {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "timestamp": WHEN, "message": USER},
    {"type": "assistant", "uuid": "a", "parentUuid": "u", "sessionId": "s", "timestamp": WHEN,
     "message": {"id": "m1", "model": "m", "role": "assistant", "content": [{"type": "text", "text": "hi"}],
                 "usage": {"input_tokens": 7, "cache_read_input_tokens": 30, "output_tokens": 3}}},
    {"type": "user", "uuid": "b", "parentUuid": "a", "sessionId": "s", "timestamp": WHEN, "toolUseResult": {},
     "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}},
]  # fmt: skip
TOTAL = {"input_tokens": 40, "cached_input_tokens": 8, "output_tokens": 3}
CODEX: list[Json] = [
    {"timestamp": WHEN, "type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "be good"}}},
    {"timestamp": WHEN, "type": "response_item",
     "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": WORDS}]}},
    {"timestamp": WHEN, "type": "response_item",
     "payload": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}},
    {"timestamp": WHEN, "type": "event_msg",
     "payload": {"type": "token_count", "info": {"total_token_usage": TOTAL, "last_token_usage": TOTAL}}},
    {"timestamp": WHEN, "type": "response_item",
     "payload": {"type": "function_call_output", "call_id": "c", "output": "Wall time: 1 seconds"}},
]  # fmt: skip
META = {"id": "r", "prompt_tokens": 4, "completion_tokens": 3, "finish_reason": {"type": "stop"}, "e2e_latency": 0.5,
        "request_received_ts": 100.0}  # fmt: skip
SAMPLES: dict[str, Any] = {
    "claude-code": CLAUDE,
    "codex": CODEX,
    "har": {"log": {"entries": [{
        "startedDateTime": WHEN, "time": 5, "request": {
            "method": "POST", "url": "http://x/v1/chat/completions", "headers": [{"name": "a", "value": "b"}],
            "postData": {"text": json.dumps({"model": "m", "messages": [USER]})}},
        "response": {"status": 200, "headers": [], "content": {"text": json.dumps(CHAT)}}}]}},
    "sglang-metrics": [{"request_parameters": json.dumps({"input_ids": [1, 2, 3, 4]}), **META}],
    "sglang-log": [
        {"timestamp": WHEN, "event": "request.received", "rid": "r", "obj": {"input_ids": [1, 2, 3, 4]}},
        {"timestamp": WHEN, "event": "request.finished", "rid": "r", "out": {"text": "x", "meta_info": META}}],
    "otel": [{"name": "chat", "context": {"trace_id": "t", "span_id": "i"}, "start_time": WHEN, "end_time": WHEN,
              "events": [{"name": "First Token Stream Event", "timestamp": WHEN}],
              "attributes": {"gen_ai.operation.name": "chat", "gen_ai.input.messages": [USER],
                             "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text"}]}],
                             "gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 3}}],
    "litellm": [{"litellm_call_id": "i", "call_type": "c", "messages": [USER], "response": CHAT, "startTime": 1.0,
                 "endTime": 2.0, "completionStartTime": 1.5, "stream": True, "model_parameters": {}}],
    "aiperf": [{"metadata": {"request_start_ns": 5, "request_end_ns": 9, "x_correlation_id": "c"}, "start_perf_ns": 1,
                "status": 200, "payload": {"messages": [USER]},
                "responses": [{"perf_ns": 3, "packets": [{"name": "data", "value": json.dumps(CHAT)}]}]}],
    "mini-swe-agent": {"info": {},
                       "messages": [USER, {"role": "assistant", "content": "hi", "extra": {"timestamp": 4.0}}]},
    "openhands": {"messages": [USER], "response": CHAT, "timestamp": 5.0, "latency_sec": 1.0, "kwargs": {}},
    "openhands-events": [
        {"id": 1, "timestamp": WHEN, "source": "user", "action": "message", "args": {"content": WORDS}},
        {"id": 2, "timestamp": WHEN, "source": "agent", "action": "run", "args": {},
         "tool_call_metadata": {"tool_call_id": "c", "model_response": CHAT}, "llm_metrics": {}}],
}  # fmt: skip


def put(path: Path, value: Any) -> Path:
    return lines(path, *value) if isinstance(value, list) else written(path, value)


def holds(folder: Path, name: str, file: Path) -> None:
    """Either a readable trace with balanced books, or one line that names the file, and nothing left behind."""
    out, key = folder / "out.trace", folder / "key"
    out.unlink(missing_ok=True)
    format = import_module(f"agentx.recorder.imports.{LOGS[name][0]}").make_format()
    refused, books = "", Books()
    try:
        books = import_calls(format, [file], out, key_file=key).books
    except BadInput as error:
        refused = str(error)
    if refused:
        assert str(file) in refused
        assert "\n" not in refused
        assert not out.exists()
        return
    assert books.rows.missing == books.sessions.missing == 0
    for session in read_trace(out):
        for turn in session.turns:
            assert sum(piece.tokens for piece in session.pieces(turn.index)) <= turn.isl
    assert WORDS.encode() not in out.read_bytes()


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_sample_of_each_is_found_out_and_imported(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    source, out = put(tmp_path / "in", SAMPLES[name]), tmp_path / "a.trace"
    assert main(["import", str(source), "-o", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert f"detected: {name}\n" in told.err
    assert "fidelity: prompt " in told.err
    assert "1 sessions, 1 turns, level shape" in told.err
    assert main(["check", str(out)]) == 0
    assert main(["import", name, str(source), "-o", str(tmp_path / "b.trace"), "--level", "text"]) == 0
    assert WORDS.encode() not in out.read_bytes()
    if not name.startswith("sglang"):
        assert WORDS.encode() in (tmp_path / "b.trace").read_bytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", sorted(SAMPLES))
@given(data=st.data())
def test_any_json(tmp_path: Path, name: str, data: st.DataObject) -> None:
    value = SAMPLES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        value = changed(data, value)
    holds(tmp_path, name, put(tmp_path / "in.json", value))


@pytest.mark.parametrize("depth", [300, 700, 950])
@pytest.mark.parametrize("place", [json.dumps(WORDS), '"hi"', "40", '"m"'])
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_deep_nesting_is_no_crash(tmp_path: Path, name: str, place: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    value = SAMPLES[name]
    rows = value if isinstance(value, list) else [value]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row).replace(place, deep) + "\n" for row in rows))
    holds(tmp_path, name, file)


@pytest.mark.parametrize("name", sorted(LOGS))
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\x93AX1abc", b"\xff\xfe\x00", b"{", b"[" * 3000, b"null\n", b"{}\n", b"a,b\n", b"3:abc,"]
)
def test_what_is_no_such_file_is_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    file = tmp_path / "index.jsonl"
    file.write_bytes(data)
    holds(tmp_path, name, file)
    assert not (tmp_path / "out.trace").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["empty.json"], "0 model calls that can be used"),  # R34
        (["nothing"], "no such file"),
        (["clod-code", "empty.json"], "'clod-code' is neither a format nor a file"),
        (["har"], "import har: which files?"),
        (["empty.json", "other.jsonl"], "several formats at once: claude-code, otel"),
        (["empty.json", "--unit", "s"], "--unit means nothing to otel"),
        (["weka", "empty.json", "--level", "text"], "--level text means nothing to weka"),
        (["weka", "empty.json", "--key", "short.key"], "--key without --level means nothing to weka"),
        (["mlperf", "empty.json", "--level", "text"], "its text is public and kept without a level"),
        (["weka", "empty.json", "--scope", "file"], "--scope means nothing to weka"),
        (["har", "empty.json"], "not a HAR file"),
        (["har", "folder"], "the folder holds no *.har"),
        (["mystery"], "the format cannot be told"),
        (["otel", "empty.json", "--key", "short.key"], "this is no key"),
        (["otel", "empty.json", "-o", "empty.json"], "the output is one of the inputs"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTX_KEYS", str(tmp_path / "keys"))
    written(tmp_path / "empty.json", {"resourceSpans": []})
    lines(tmp_path / "other.jsonl", *CLAUDE)
    (tmp_path / "mystery").write_text("hello")
    (tmp_path / "short.key").write_text("x")
    (tmp_path / "folder").mkdir()
    out = [] if "-o" in words else ["-o", "out.trace"]
    assert main(["import", *words, *out]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err.splitlines()[-1]
    assert not (tmp_path / "out.trace").exists()


def test_the_help_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    shown = capsys.readouterr().out
    assert [name for name in (*OWN, *FORMATS, *LOGS) if f"  {name} " not in shown] == []
