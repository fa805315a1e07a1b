"""SGLang's agentic-trace: conversations of messages."""

from __future__ import annotations

import json
from pathlib import Path

from exporting import everything, linear

from agentx.recorder.exports.writing import export_sglang


def test_a_conversation_a_session_with_cumulative_lengths(tmp_path: Path) -> None:
    reader = linear(tmp_path)
    books = export_sglang(reader, tmp_path / "out.json")
    body = json.loads((tmp_path / "out.json").read_text())
    assert body["metadata"] == {"source": "agentx", "name": "generated"}
    for session, turns in zip(reader, body["conversations"], strict=True):
        assert [turn["prompt_tokens"] for turn in turns] == [turn.isl for turn in session.turns]
        assert all(turn["messages"] for turn in turns)
        assert [m["role"] for m in turns[0]["messages"]] == ["system", "user"]
        assert [m["role"] for turn in turns[1:] for m in turn["messages"]] == ["user"] * 8
    assert (books.rows.read, books.rows.used) == (27, 27)


def test_threads_and_breaks_are_conversations(tmp_path: Path) -> None:
    reader = everything(tmp_path)
    books = export_sglang(reader, tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())["conversations"]
    asked = sorted(turn.isl for session in reader for turn in session.turns)
    assert sorted(turn["prompt_tokens"] for turns in found for turn in turns) == asked
    assert books.notes["prompt that does not go on from the one before: a conversation"] > 0
    assert books.notes["thread beside the main one: a conversation"] > 0
