"""Weka sessions out and in again: lengths, threads and identities inside a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exporting import common, everything, linear, threads, tokens
from importing import agent, call, weka, write

from agentx.errors import BadInput
from agentx.recorder.exports.weka import BLOCK
from agentx.recorder.exports.writing import export_weka
from agentx.recorder.imports.weka import import_weka
from agentx.trace import read_trace


def test_sessions_that_grow_come_back(tmp_path: Path) -> None:
    reader = linear(tmp_path)
    books = export_weka(reader, tmp_path / "out")
    import_weka([tmp_path / "out"], tmp_path / "back.trace")
    sessions, again = list(reader), list(read_trace(tmp_path / "back.trace"))
    assert [session.id for session in again] == [session.id for session in sessions]
    for old, new in zip(sessions, again, strict=True):
        assert threads(new) == threads(old)
        assert [t.gap.seconds for t in new.turns] == [t.gap.seconds for t in old.turns]
        assert [t.gap.kind for t in new.turns[1:]] == [t.gap.kind for t in old.turns[1:]]
        assert [new.segment(p.segment).layer for p in new.pieces(0)][:2] == ["tools", "system"]
        for index in range(1, len(old.turns)):
            shared = common(tokens(old, index - 1), tokens(old, index))
            assert shared // BLOCK * BLOCK <= common(tokens(new, index - 1), tokens(new, index)) <= shared
    assert (books.rows.read, books.rows.used) == (27, 27)


def test_all_turns_are_there_with_subagents_and_edits(tmp_path: Path) -> None:
    reader = everything(tmp_path)
    export_weka(reader, tmp_path / "out")
    agents = 0
    for session, file in zip(reader, sorted((tmp_path / "out").iterdir()), strict=True):
        body = json.loads(file.read_text())
        inner = [entry for entry in body["requests"] if entry["type"] == "subagent"]
        own = [entry for entry in body["requests"] if entry["type"] != "subagent"]
        calls = own + [request for entry in inner for request in entry["requests"]]
        assert sorted((c["in"], c["out"]) for c in calls) == sorted((t.isl, t.output.tokens) for t in session.turns)
        assert all(len(c["hash_ids"]) == c["in"] // BLOCK for c in calls)
        assert len(inner) == sum(thread.kind == "subagent" for thread in session.threads)
        assert [entry["t"] for entry in body["requests"]] == sorted(entry["t"] for entry in body["requests"])
        agents += len(inner)
    assert agents > 0
    books = import_weka([tmp_path / "out"], tmp_path / "back.trace")
    again = list(read_trace(tmp_path / "back.trace"))
    for old, new in zip(reader, again, strict=True):
        assert sorted((t.isl, t.output.tokens) for t in new.turns) == sorted(
            (t.isl, t.output.tokens) for t in old.turns
        )
    assert books.rows.dropped == {}


def test_an_imported_session_goes_out_as_it_came_in(tmp_path: Path) -> None:
    requests = [
        call(0.0, 130, 20, [0, 1], api_time=2.5, ttft=0.5, type="s"),
        agent(
            3.0,
            [call(3.0, 64, 5, [7], api_time=1.5), call(6.0, 128, 5, [7, 8], api_time=1.0)],
            duration_ms=4000,
            status="completed",
        ),
        call(8.25, 200, 4, [0, 1, 2], api_time=1.0, stop="end_turn"),
        call(60.5, 256, 4, [0, 1, 2, 3], api_time=1.0, input_types=["text"], stop="end_turn"),
    ]
    source = weka(requests, block_size=BLOCK, tool_tokens=64, system_tokens=30)
    import_weka([write(tmp_path / "in.json", source)], tmp_path / "in.trace")
    export_weka(read_trace(tmp_path / "in.trace"), tmp_path / "out")
    (file,) = (tmp_path / "out").iterdir()
    made = json.loads(file.read_text())
    keys = ("t", "type", "model", "in", "out", "stop", "api_time", "input_types")
    own = [each for each in made["requests"] if each["type"] != "subagent"]
    assert [{key: each[key] for key in keys} for each in own] == [
        {key: each[key] for key in keys} for each in requests if each["type"] != "subagent"
    ]
    (spawned,) = [each for each in made["requests"] if each["type"] == "subagent"]
    assert (spawned["t"], spawned["duration_ms"], spawned["subagent_type"]) == (3.0, 4000, "Explore")
    assert [each["t"] for each in spawned["requests"]] == [3.0, 6.0]
    assert (made["tool_tokens"], made["system_tokens"]) == (64, 30)
    ids = [each["hash_ids"] for each in own]
    assert [common(ids[0], ids[1]), common(ids[1], ids[2])] == [2, 3]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.json").write_text("{}")
    with pytest.raises(BadInput, match="the output is not a new or empty folder"):
        export_weka(linear(tmp_path), tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine.json"]
