"""MLPerf agentic rows: texts, tool results, delays."""

from __future__ import annotations

from pathlib import Path

import pytest
from importing import Json, layers, write

from agentx.core import Gap, Session, Text
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.mlperf import make_format
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace


def row(turn: int, role: str, conversation: str = "c", **more: object) -> Json:
    return {"conversation_id": conversation, "turn": turn, "role": role, **more}


def imported(tmp_path: Path, *rows: Json) -> tuple[list[Session], Books]:
    books = import_files(make_format(), [write(tmp_path / "in.jsonl", *rows)], tmp_path / "out.trace")
    return list(read_trace(tmp_path / "out.trace")), books


ROWS = [
    row(1, "user", content="fix it", system="be brief", tools=[{"name": "bash"}]),
    row(2, "assistant", reasoning_content="let me think", tool_calls=[{"id": "0"}]),
    row(3, "tool", tool_results=[{"tool_call_id": "0", "content": "okay"}, {"content": "no!!"}], delay_seconds=0.4),
    row(4, "assistant", content="done"),
]


def test_a_conversation_becomes_a_session_with_its_text(tmp_path: Path) -> None:
    (session,), books = imported(tmp_path, *ROWS)
    assert layers(session, 1) == [
        *[("tools", 5), ("system", 2), ("user", 2), ("assistant", 6), ("tool_result", 1), ("tool_result", 1)]
    ]
    first, second = session.turns
    assert (first.isl, first.output.visible, first.output.reasoning) == (9, 3, 3)
    assert session.segment(first.reply or 0).content == Text('let me think{"id":"0"}')
    assert second.gap == Gap("tool", 0.4)
    assert second.isl == 17
    assert (books.rows.read, books.rows.used, books.sessions.used) == (4, 4, 1)


def test_rows_are_put_together_and_sorted(tmp_path: Path) -> None:
    other = [
        row(1, "user", "d", content="abcd"),
        row(2, "assistant", "d", content="x"),
        row(3, "user", "d", content="y"),
    ]
    sessions, books = imported(tmp_path, ROWS[0], other[1], ROWS[3], ROWS[2], other[0], ROWS[1], other[2])
    assert [(session.id, len(session.turns)) for session in sessions] == [("c", 2), ("d", 1)]
    assert sessions[0].turns[1].isl == 17
    assert books.rows.dropped == {"behind the last assistant row: no call has it": 1}
    assert (books.rows.read, books.rows.used) == (7, 6)


def test_a_conversation_without_an_assistant_is_dropped(tmp_path: Path) -> None:
    sessions, books = imported(tmp_path, row(1, "user", "d", content="abcd"), *ROWS)
    assert [session.id for session in sessions] == ["c"]
    assert books.rows.dropped == {"in a conversation without an assistant row": 1}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(1, "robot"), "role: 'robot' is not one of"),
        (row(-1, "user"), "turn: -1 is not a whole number"),
        (row(1, "tool", delay_seconds=-2), "delay_seconds: -2.0 is below 0"),
        (row(1, "tool", tool_results=["x"]), "tool_results: 'x' is not an object"),
        (row(1, "user", content=5), "content: 5 is not a text"),
        ({"messages": []}, "not an MLPerf agentic row: this looks like a file of chat messages"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, bad: Json, message: str) -> None:
    with pytest.raises(BadInput, match=r"in\.jsonl:5: " + message):
        imported(tmp_path, *ROWS, bad)
