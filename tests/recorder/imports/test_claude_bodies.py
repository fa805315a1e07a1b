"""Claude Code's raw bodies: pairs by the index, times by files and by spans, tools apart from waiting."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from logs import Json, at, lines, take, written

from agentx.core import GapParts, Tool
from agentx.errors import BadInput
from agentx.recorder.imports.instants import of_iso

TOOLS = [{"name": "Bash", "description": "runs a command", "input_schema": {}}]


def body(*messages: Json, session: str = "s") -> Json:
    return {"model": "claude-x", "system": [{"type": "text", "text": "You are an agent."}], "tools": TOOLS,
            "messages": list(messages), "metadata": {"user_id": json.dumps({"session_id": session})}}  # fmt: skip


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def message(id: str, content: Json, prompt: int, cached: int, out: int) -> Json:
    usage = {"input_tokens": prompt - cached, "cache_read_input_tokens": cached, "output_tokens": out}
    return {"id": id, "type": "message", "role": "assistant", "content": [content], "usage": usage}


USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = user([{"type": "tool_result", "tool_use_id": "t1", "content": "a b"}])


def dump(folder: Path, number: int, request: Any, response: Any, began: float, ended: float, **more: Any) -> Json:
    """A pair of files; returns the index's line."""
    written(folder / f"u{number}.request.json", request)
    written(folder / f"req_{number}.response.json", response)
    began_ns = of_iso(at(began))
    assert began_ns is not None
    os.utime(folder / f"u{number}.request.json", ns=(began_ns, began_ns))
    return {"timestamp": at(ended), "session_id": "s", "query_source": "repl_main_thread", "model": "claude-x",
            "request_id": f"req_{number}", "request_file": f"u{number}.request.json",
            "response_file": f"req_{number}.response.json", **more}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bodies = tmp_path / "bodies"
    first = dump(bodies, 1, body(user("look")), message("m1", USE, 500, 400, 30), 0, 3)
    later = body(user("look"), {"role": "assistant", "content": [USE]}, RESULT)
    second = dump(bodies, 2, later, message("m2", {"type": "text", "text": "done"}, 560, 500, 9), 10, 12)
    lines(bodies / "index.jsonl", first, second)
    return bodies


def span(name: str, begin: float, end: float, id: str = "x", parent: str = "", **attributes: Any) -> Json:
    listed = [{"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
              for key, value in attributes.items()]  # fmt: skip
    return {"name": name, "spanId": id, "parentSpanId": parent, "traceId": "t", "attributes": listed,
            "startTimeUnixNano": str(of_iso(at(begin))), "endTimeUnixNano": str(of_iso(at(end)))}  # fmt: skip


def export(*spans: Json) -> Json:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_bodies_become_turns(folder: Path) -> None:
    taken = take("claude_bodies", folder, folder=folder.parent)
    assert taken.lengths() == [(500, 30), (560, 9)]
    first, second = taken.turns
    assert (second.gap.kind, second.gap.seconds, second.tools) == ("tool", 7.0, (Tool("Bash"),))
    assert first.observed is not None
    assert (first.observed.start, first.observed.end, first.observed.cached) == (0.0, 3.0, 400)
    session = taken.sessions[0]
    assert [session.segment(piece.segment).layer for piece in session.pieces(0)] == ["tools", "system", "user"]
    assert second.prompt.keep == 3
    assert session.extra["known_by"] == "x-claude-code-session-id"


def test_spans_tell_first_tokens_and_tools_apart_from_waiting(folder: Path) -> None:
    spans = [
        span("claude_code.llm_request", 0.25, 3, request_id="req_1", ttft_ms=800, attempt=2),
        span("claude_code.tool", 3, 9, id="tool", tool_use_id="t1", tool_name="Bash"),
        span("claude_code.tool.blocked_on_user", 3, 7, parent="tool"),
        span("claude_code.tool.execution", 7, 8.5, parent="tool"),
        span("other", 1, 2),
    ]
    written(folder / "spans.json", export(*spans))
    taken = take("claude_bodies", folder, folder=folder.parent)
    first, second = taken.turns
    assert first.observed is not None
    assert (first.observed.start, first.observed.ttft) == (0.0, 0.8)
    (tool,) = second.tools
    assert (tool.name, tool.seconds, dict(tool.extra)) == ("Bash", 1.5, {"waited_for_user": 4.0})
    assert second.gap.parts == GapParts(1.5, 4.0)
    assert any("more attempts than one" in note for note in taken.books.notes)
    told = taken.header.provenance["fidelity"]
    assert (told["timing"], told["gaps"]) == ("ttft", "split")
    assert taken.books.rows.dropped == {"span that is none of Claude Code's": 1}


def test_spans_name_agents(folder: Path) -> None:
    """R31: body logs have no span ids; the request's id joins them, and what has no span is tolerated."""
    other = dump(folder, 3, body(user("explore")), message("m3", {"type": "text", "text": "x"}, 90, 0, 2), 4, 6)
    lines(
        folder / "index.jsonl", *[json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()], other
    )
    written(folder / "spans.json", [span("claude_code.llm_request", 4, 6, request_id="req_3", agent_id="a7")])
    taken = take("claude_bodies", folder, folder=folder.parent)
    assert [(thread.kind, thread.parent) for thread in taken.sessions[0].threads] == [("main", None), ("subagent", 0)]


def test_a_copied_folders_file_times_are_not_believed(folder: Path) -> None:
    for file in folder.glob("*.request.json"):
        os.utime(file, (2_000_000_000, 2_000_000_000))
    taken = take("claude_bodies", folder, folder=folder.parent)
    assert taken.books.notes["request whose file's time does not fit: its call starts when it ended (inferred)"] == 2
    assert taken.turns[1].gap.seconds == 9.0


def test_what_is_not_there_is_counted(folder: Path) -> None:
    index = (folder / "index.jsonl").read_text()
    gone = dump(folder, 5, body(user("x")), {}, 20, 21)
    (folder / "req_5.response.json").unlink()
    lines(folder / "index.jsonl", *index.splitlines(), gone, {**gone, "request_file": "u9.request.json"})
    written(folder / "failed.request.json", body(user("y")))
    taken = take("claude_bodies", folder, folder=folder.parent)
    assert sum(taken.books.rows.dropped.values()) == 3
    assert len(taken.turns) == 2


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "a\\..\\b", "", 7, "link.json", "no\0pe"])
def test_names_that_lead_outside_are_not_followed(folder: Path, name: Any) -> None:
    written(folder.parent / "secret.json", body(user("z")))
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    entry = json.loads((folder / "index.jsonl").read_text().splitlines()[0])
    lines(folder / "index.jsonl", {**entry, "request_file": name})
    with pytest.raises(BadInput, match="request whose file is not there"):
        take("claude_bodies", folder, folder=folder.parent)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    written(tmp_path / "x" / "a.json", {})
    with pytest.raises(BadInput, match=r"no \*.request.json"):
        take("claude_bodies", tmp_path / "x", folder=tmp_path)
