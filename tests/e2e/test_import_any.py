"""Whatever stands in a file: an import gives a readable trace and balanced books, or one line with the file."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import changed

from agentx.cli.import_ import FORMATS
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "trie": [
        {
            "num_turns": 1,
            "input_prompt_length": 9,
            "assistant_response_length": [4],
            "tool_call_output_length": [3],
            "tool_call_latency": [0.5],
            "final_assistant_response_length": 2,
        }
    ],
    "bailian": [
        {
            "chat_id": 1,
            "parent_chat_id": -1,
            "timestamp": 0,
            "input_length": 20,
            "output_length": 3,
            "hash_ids": [0, 1],
        },
        {
            "chat_id": 2,
            "parent_chat_id": 1,
            "timestamp": 3,
            "input_length": 40,
            "output_length": 3,
            "hash_ids": [0, 1, 2],
        },
    ],
    "tracelab": [
        {
            "session_id": "s",
            "round_index": 0,
            "input_tokens_total": 90,
            "prefix_tokens": 0,
            "output_tokens": 5,
            "tools": [],
        },
        {
            "session_id": "s",
            "round_index": 1,
            "input_tokens_total": 120,
            "output_tokens": 5,
            "tools": [{"tool_name": "a", "tool_wall_latency_ms": 7}],
            "timing_events": [{"event_type": "user_message", "timestamp": "2026-06-01T05:40:20Z"}],
        },
    ],
    "mlperf": [
        {"conversation_id": "c", "turn": 1, "role": "user", "content": "hi", "system": "s", "tools": [{}]},
        {"conversation_id": "c", "turn": 2, "role": "assistant", "content": "yo", "tool_calls": [{}]},
        {"conversation_id": "c", "turn": 3, "role": "tool", "tool_results": [{"content": "x"}], "delay_seconds": 1},
        {"conversation_id": "c", "turn": 4, "role": "assistant", "reasoning_content": "hm"},
    ],
    "chats": [{"id": "x", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}],
    "trtllm": [
        {
            "trace_id": "t",
            "events": [
                {"event_type": "message", "branch_path": [], "conversation_id": "c", "role": "user", "tokens": 5},
                {"event_type": "message", "conversation_id": "c", "role": "assistant", "completion_tokens": 5},
                {"event_type": "parallel_start", "branch_path": [], "num_branches": 1},
                {"event_type": "tool_call", "branch_path": [0], "tool_name": "a", "duration_ms": 5},
                {"event_type": "parallel_end", "branch_path": []},
                {"event_type": "message", "conversation_id": "c", "role": "assistant", "completion_tokens": 5},
            ],
        }
    ],
}
TABLES = {
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4,1\n",
    "burstgpt": "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens\n5,a,3,m,4,2\n9,a,,m,9,0\n",
    "tracelab": "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\ns,0,0,9,2,5\ns,1,11,9,2,5\n",
}


def holds(tmp_path: Path, name: str, file: Path) -> None:
    """Either a readable trace with balanced books, or one line that names the file, and nothing left behind."""
    out = tmp_path / "out.trace"
    out.unlink(missing_ok=True)
    format = import_module(f"agentx.recorder.imports.{FORMATS[name][0]}").make_format()
    refused, books = "", Books()
    try:
        books = import_files(format, [file], out)
    except BadInput as error:
        refused = str(error)
    if refused:
        assert str(file) in refused
        assert "\n" not in refused
        assert not out.exists()
        return
    sessions = list(read_trace(out))
    assert len(sessions) == books.sessions.used
    assert books.rows.missing == books.sessions.missing == 0
    for session in sessions:
        for turn in session.turns:
            assert sum(piece.tokens for piece in session.pieces(turn.index)) <= turn.isl


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", sorted(SAMPLES))
@given(data=st.data())
def test_any_json(tmp_path: Path, name: str, data: st.DataObject) -> None:
    rows = changed(data, SAMPLES[name])
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in (rows if isinstance(rows, list) else [rows])))
    holds(tmp_path, name, file)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", sorted(TABLES))
@given(at=st.floats(0, 1), new=st.binary(max_size=6), gone=st.integers(0, 8))
def test_any_table(tmp_path: Path, name: str, at: float, new: bytes, gone: int) -> None:
    plain = TABLES[name].encode()
    place = int(at * len(plain))
    file = tmp_path / "in.csv"
    file.write_bytes(plain[:place] + new + plain[place + gone :])
    holds(tmp_path, name, file)


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\x93AX1abc", b"\xff\xfe\x00", b"{", b"[[[[", b"null\n", b"{}\n", b"a,b\n"]
)
def test_what_is_no_such_file_is_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    for ending in (".jsonl", ".json", ".csv"):
        file = tmp_path / f"in{ending}"
        file.write_bytes(data)
        holds(tmp_path, name, file)
