"""Dynamo's traces: lengths and hashes, tools that a harness reports, trajectories, torn compressed files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from logs import Json, lines

from agentx.core import Header, Session, Tool
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.dynamo import make_format
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace

MS = 1_777_312_800_000
HASHES = [14879255164371896291, 274632075616497421, 5, 6]


def run(*paths: Path) -> tuple[list[Session], Header, Books, bytes]:
    out = paths[0].parent / "out.trace"
    books = import_files(make_format(), paths, out)
    assert not books.rows.missing
    reader = read_trace(out)
    return list(reader), reader.header, books, out.read_bytes()


def event(kind: str, when: float, trajectory: str = "main", parent: str | None = None, **more: Any) -> Json:
    agent = {"session_id": "run", "trajectory_id": trajectory, "parent_trajectory_id": parent}
    return {"timestamp": when, "event": {"schema": "dynamo.agent.trace.v1", "event_type": kind,
            "event_time_unix_ms": MS + when, "agent_context": agent, **more}}  # fmt: skip


def request(when: float, isl: int, out: int, hashes: list[Any], *, took: float = 1000.0, **more: Any) -> Json:
    told = {"model": "m", "input_tokens": isl, "output_tokens": out, "cached_tokens": 64, "ttft_ms": 250.0,
            "total_time_ms": took, "request_received_ms": MS + when,
            "replay": {"trace_block_size": 64, "input_length": isl, "input_sequence_hashes": hashes}}  # fmt: skip
    return event("request_end", when + took, request=told, **more)


def tool(when: float, took: float, **more: Any) -> Json:
    told = {"tool_call_id": "c", "tool_class": "web_search", "ended_at_unix_ms": MS + when, "duration_ms": took}
    return event("tool_end", when, tool=told, **more)


def loop() -> list[Json]:
    return [request(0, 128, 20, HASHES[:2]), tool(1400, 300.5), tool(1900, 850), request(2000, 200, 5, HASHES[:4])]


def test_requests_become_turns(tmp_path: Path) -> None:
    (session,), header, books, data = run(lines(tmp_path / "a.jsonl", *loop()))
    first, second = session.turns
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == [(128, 20), (200, 5)]
    assert (second.gap.kind, second.gap.seconds) == ("tool", 1.0)
    assert second.tools == (Tool("web_search", 0.3005), Tool("web_search", 0.85))
    assert first.observed is not None
    assert (first.observed.start, first.observed.ttft, first.observed.end) == (0.0, 0.25, 1.0)
    assert session.runs(1)[0].start == session.runs(0)[0].start
    assert second.prompt.base == 0
    assert header.provenance["fidelity"]["prompt"] == "lengths"
    assert books.rows.used == 4
    # R32: the server's own unkeyed hashes are not in the trace
    for hash in HASHES[:2]:
        assert hash.to_bytes(8, "big") not in data


def test_trajectories_are_threads(tmp_path: Path) -> None:
    kid = request(1100, 64, 4, ["c3"], trajectory="kid", parent="main")
    (session,), *_ = run(lines(tmp_path / "a.jsonl", *loop(), kid))
    assert [(thread.kind, thread.parent) for thread in session.threads] == [("main", None), ("subagent", 0)]
    spawned = session.turns[1]
    assert (spawned.thread, spawned.after, spawned.gap.kind, spawned.gap.seconds) == (1, (0,), "spawn", 0.1)


def test_the_flat_shape_without_times(tmp_path: Path) -> None:
    agent = {"session_id": "r", "trajectory_id": "r/main"}
    rows = [
        {"event": "request_end", "agent_context": agent, "request": {"input_tokens": 2048, "output_tokens": 31},
         "replay": {"block_size": 64, "input_sequence_hashes": ["a1", "b2"]}},
        {"event": "tool_end", "agent_context": agent, "tool": {"name": "bash", "duration_ms": 410}},
    ]  # fmt: skip
    (session,), _, books, _ = run(lines(tmp_path / "a.jsonl", *rows))
    assert [turn.isl for turn in session.turns] == [2048]
    assert books.rows.used == 2


def test_equal_hashes_over_files_are_equal(tmp_path: Path) -> None:
    other = [{**row, "event": {**row["event"], "agent_context": {"session_id": "b", "trajectory_id": "x"}}}
             for row in loop()]  # fmt: skip
    sessions, *_ = run(lines(tmp_path / "a.jsonl", *loop()), lines(tmp_path / "b.jsonl", *other))
    assert sessions[0].runs(0) == sessions[1].runs(0)


@pytest.mark.parametrize("torn", [0, 6])
def test_compressed_segments(tmp_path: Path, torn: int) -> None:
    """Each flush is a whole member; a torn last one costs only itself."""
    members = [gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()) for rows in (loop(), loop())]
    data = b"".join(members)
    (tmp_path / "p.000001.jsonl.gz").write_bytes(data[: len(data) - torn])
    (session,), _, books, _ = run(tmp_path / "p.000001.jsonl.gz")
    assert len(session.turns) >= 2
    assert bool(books.findings) == bool(torn)


@pytest.mark.parametrize(
    "rows", [["no json"], [{"event": "request_start"}], [{"event": "request_end", "request": {}}], [tool(0, 1)]]
)
def test_without_a_request_it_says_so(tmp_path: Path, rows: list[Any]) -> None:
    with pytest.raises(BadInput, match="0 model calls"):
        run(lines(tmp_path / "a.jsonl", *rows))


def test_odd_values_are_dropped(tmp_path: Path) -> None:
    odd = [request(0, -5, 1, []), request(0, 10, 1, [None, {}, 1.5]), {"event": {"event_type": "tool_end"}}]
    odd[0]["event"]["request"]["input_tokens"] = "many"
    sessions, _, books, _ = run(lines(tmp_path / "a.jsonl", *odd, *loop()))
    assert sum(len(session.turns) for session in sessions) == 3
    assert books.rows.dropped == {"request without its length": 1}
