"""Files appear whole or not at all; books balance; torn traces are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from exporting import linear
from making import header

from agentx.core import Output, Piece, Prompt, Segment, Session, TokenIds, Turn
from agentx.errors import BadInput
from agentx.recorder.exports.writing import export_dag, export_mooncake, export_sglang, export_weka
from agentx.trace import TraceWriter, read_trace


def test_a_torn_trace_is_exported_as_far_as_it_goes(tmp_path: Path) -> None:
    reader = linear(tmp_path)
    whole = reader.path.read_bytes()
    reader.path.write_bytes(whole[:-40])
    books = export_mooncake(read_trace(reader.path), tmp_path / "out.jsonl")
    assert books.findings[0].startswith("the trace is torn at byte")
    assert books.notes["session that the trace's end cut short"] == 1
    assert books.sessions.used == 3


def test_sessions_without_turns_are_dropped_and_counted(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        writer.session(Session("empty", ()))
    for export in (export_mooncake, export_weka, export_dag, export_sglang):
        books = export(read_trace(tmp_path / "t.trace"), tmp_path / export.__name__)
        assert books.sessions.dropped == {"without turns": 1}


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    own = {1: Segment(1, "user", 2, TokenIds((5, 6)))}
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        writer.session(Session("ids", (Turn(0, 0, Prompt((Piece(1, 0, 2),)), 2, Output(1)),), segments=own))
    with pytest.raises(BadInput, match="segment 1 holds token ids, which a text wire cannot send"):
        export_sglang(read_trace(tmp_path / "t.trace"), tmp_path / "out.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.trace"]
