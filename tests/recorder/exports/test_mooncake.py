"""Mooncake rows out and in again: lengths stay, identities stay at whole blocks."""

from __future__ import annotations

import json
from pathlib import Path

from exporting import common, everything, linear, threads, tokens
from importing import Json
from making import header

from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.recorder.exports.threads import name
from agentx.recorder.exports.writing import export_mooncake
from agentx.recorder.imports.mooncake import import_mooncake
from agentx.trace import TraceReader, TraceWriter, read_trace

BLOCK = 16


def rows(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def back(path: Path, reading: str) -> dict[str, Session]:
    import_mooncake(path, path.with_suffix(".trace"), rows=reading, block=BLOCK, unit="ms")
    return {session.id: session for session in read_trace(path.with_suffix(".trace"))}


def test_cumulative_rows_keep_lengths_and_identities(tmp_path: Path) -> None:
    reader = everything(tmp_path)
    books = export_mooncake(reader, tmp_path / "out.jsonl", rows="cumulative", block=BLOCK)
    found = back(tmp_path / "out.jsonl", "cumulative")
    prompts = []
    turns = 0
    for session in reader:
        for thread in session.threads:
            own = [turn for turn in session.turns if turn.thread == thread.id]
            again = found[name(session, thread)]
            assert [(t.isl, t.output.tokens) for t in again.turns] == [(t.isl, t.output.tokens) for t in own]
            turns += len(own)
            prompts += [
                (tokens(session, a.index), tokens(again, b.index)) for a, b in zip(own, again.turns, strict=True)
            ]
    assert books.rows.used == turns == len(rows(tmp_path / "out.jsonl"))
    for old, new in prompts[::7]:
        for other, others in prompts[::5]:
            shared = common(old, other)
            assert common(new, others) >= shared // BLOCK * BLOCK  # whole blocks at least, never more than there was
            assert common(new, others) <= shared


def test_delta_rows_of_sessions_that_grow(tmp_path: Path) -> None:
    reader = linear(tmp_path, 3, "gaps.human=1500ms")
    export_mooncake(reader, tmp_path / "out.jsonl", block=BLOCK)
    found = back(tmp_path / "out.jsonl", "delta")
    for session in reader:
        again = found[session.id]
        assert threads(again) == threads(session)
        assert [t.gap.seconds for t in again.turns] == [t.gap.seconds for t in session.turns]
    first, second = list(found.values())[:2]
    assert common(tokens(first, 0), tokens(second, 0)) == 150 // BLOCK * BLOCK  # tools and system prompt
    written = rows(tmp_path / "out.jsonl")
    assert [row["input_length"] for row in written[:4]] == [230, 60, 60, 20]
    assert [row.get("delay") for row in written[:4]] == [None, 2000, 2000, 1500]


def test_delta_rows_break_where_a_context_was_edited(tmp_path: Path) -> None:
    reader = everything(tmp_path)
    books = export_mooncake(reader, tmp_path / "out.jsonl", block=BLOCK)
    found = back(tmp_path / "out.jsonl", "delta")
    assert books.notes["prompt that does not go on from the one before: begins a session"] > 0
    asked = sorted((turn.isl, turn.output.tokens) for session in reader for turn in session.turns)
    assert sorted((turn.isl, turn.output.tokens) for session in found.values() for turn in session.turns) == asked
    assert all("timestamp" in row or "delay" in row for row in rows(tmp_path / "out.jsonl"))


def test_an_imported_file_goes_out_as_it_came_in(tmp_path: Path) -> None:
    source = [
        {"timestamp": 0, "input_length": 40, "output_length": 5, "hash_ids": [0, 1, 2]},
        {"timestamp": 1500, "input_length": 70, "output_length": 6, "hash_ids": [0, 1, 3, 4, 5]},
        {"timestamp": 1500, "input_length": 16, "output_length": 0, "hash_ids": [6]},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in source))
    import_mooncake(tmp_path / "in.jsonl", tmp_path / "in.trace", block=BLOCK)
    export_mooncake(read_trace(tmp_path / "in.trace"), tmp_path / "out.jsonl", block=BLOCK)
    written = rows(tmp_path / "out.jsonl")
    assert [{key: row[key] for key in source[0]} for row in written] == source


def test_a_reply_that_is_not_told_keeps_its_length(tmp_path: Path) -> None:
    own = {1: Segment(1, "user", 30), 2: Segment(2, "user", 30)}
    turns = (
        Turn(0, 0, Prompt((Piece(1, 0, 30),)), 30, Output(10)),
        Turn(1, 0, Prompt((Piece(2, 0, 30),), 0, 1), 60, Output(1), (0,)),
    )
    books = export_mooncake(_trace(tmp_path, Session("s", turns, segments=own)), tmp_path / "out.jsonl")
    assert [row["input_length"] for row in rows(tmp_path / "out.jsonl")] == [30, 20]
    assert books.notes["reply that the next prompt does not hold as it was: as many of its tokens stand for it"] == 1


def _trace(tmp_path: Path, *sessions: Session) -> TraceReader:
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for session in sessions:
            writer.session(session)
    return read_trace(tmp_path / "t.trace")
