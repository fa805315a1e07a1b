"""Bailian rows: parents make sessions, further children make threads, block ids stay what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import Json, layers, tokens, write

from agentx.core import Gap, Session
from agentx.errors import BadInput
from agentx.recorder.imports.bailian import BLOCK, make_format
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace


def chat(id: int, parent: int, at: float, isl: int, out: int, ids: list[int], **more: object) -> Json:
    body = {"chat_id": id, "parent_chat_id": parent, "timestamp": at, "input_length": isl, "output_length": out}
    return {**body, "type": "text", "turn": 1, "hash_ids": ids, **more}


def imported(tmp_path: Path, *rows: Json) -> tuple[list[Session], Books]:
    books = import_files(make_format(), [write(tmp_path / "in.jsonl", *rows)], tmp_path / "out.trace")
    return list(read_trace(tmp_path / "out.trace")), books


def test_chains_of_parents_are_sessions(tmp_path: Path) -> None:
    sessions, books = imported(
        tmp_path,
        chat(1, -1, 2.0, 32, 16, [0, 1]),
        chat(2, -1, 3.0, 20, 9, [0, 7]),
        chat(3, 1, 33.5, 64, 20, [0, 1, 2, 3]),
        chat(4, 3, 40.0, 100, 5, [0, 1, 2, 3, 4, 5, 6]),
    )
    assert [(session.id, session.arrival, len(session.turns)) for session in sessions] == [
        ("chat-1", 2.0, 3),
        ("chat-2", 3.0, 1),
    ]
    first = sessions[0]
    assert [turn.after for turn in first.turns] == [(), (0,), (1,)]
    assert first.turns[1].gap == Gap("unknown", 31.5, "inferred")
    assert layers(first, 1) == [("user", 32), ("assistant", 16), ("user", 16)]
    assert tokens(first, 1, BLOCK) == [(id, at) for id in range(4) for at in range(16)]
    assert first.runs(0)[0].stream == sessions[1].runs(0)[0].stream  # ids are comparable in the file
    assert (books.rows.read, books.rows.used, books.sessions.used) == (4, 4, 2)


def test_a_further_child_is_a_thread_that_branches(tmp_path: Path) -> None:
    (session,), books = imported(
        tmp_path,
        chat(1, -1, 0.0, 32, 4, [0, 1]),
        chat(2, 1, 5.0, 48, 4, [0, 1, 2]),
        chat(3, 1, 9.0, 48, 4, [0, 1, 9]),
        chat(4, 2, 10.0, 64, 4, [0, 1, 2, 3]),
    )
    assert [(thread.id, thread.parent, thread.kind) for thread in session.threads] == [
        (0, None, "main"),
        (1, 0, "side"),
    ]
    assert [(turn.thread, turn.after) for turn in session.turns] == [(0, ()), (0, (0,)), (1, (0,)), (0, (1,))]
    assert tokens(session, 2, BLOCK) == [(id, at) for id in (0, 1, 9) for at in range(16)]
    assert session.turns[2].prompt.base == 0  # it keeps the prompt it branches from
    assert books.notes["further child of a chat: a thread of its own"] == 1


def test_a_parent_that_is_not_there_begins_a_session(tmp_path: Path) -> None:
    sessions, books = imported(tmp_path, chat(5, 99, 1.0, 16, 1, [0]), chat(6, 5, 2.0, 16, 1, [0]))
    assert [len(session.turns) for session in sessions] == [2]
    assert books.notes["parent that is not in front of its child in the file: a session begins"] == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (chat(1, -1, 1.0, 16, 1, [0]), "the chat_id 1 occurs twice"),
        (chat(2, -2, 1.0, 16, 1, [0]), "parent_chat_id: -2 is not a whole number"),
        (chat(2, -1, -1.0, 16, 1, [0]), "timestamp: -1.0 is not a number of seconds"),
        (chat(2, -1, 1.0, 16, 1, [-3]), "hash_ids: -3 is not a block id"),
        ({"input_length": 1, "output_length": 1, "hash_ids": []}, "not a Bailian row: this looks like a Mooncake"),
        ([1], "not a Bailian row: this looks like a JSON list"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(BadInput, match=r"in\.jsonl:2: " + message):
        imported(tmp_path, chat(1, -1, 0.0, 16, 1, [0]), row)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_prompts_are_the_sources_blocks_exactly(tmp_path: Path, data: st.DataObject) -> None:
    rows = []
    for id in range(data.draw(st.integers(1, 8))):
        ids = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
        isl = len(ids) * BLOCK - data.draw(st.integers(0, BLOCK - 1))
        rows.append(chat(id, data.draw(st.integers(-1, id - 1)), float(id), isl, data.draw(st.integers(0, 40)), ids))
    sessions, books = imported(tmp_path, *rows)
    assert books.rows.used == len(rows) == sum(len(session.turns) for session in sessions)
    turns = [(session, turn) for session in sessions for turn in session.turns]
    by_lengths = sorted((turn.isl, turn.output.tokens, tokens(session, turn.index, BLOCK)) for session, turn in turns)
    want = [
        (
            row["input_length"],
            row["output_length"],
            [(row["hash_ids"][at // 16], at % 16) for at in range(row["input_length"])],
        )
        for row in rows
    ]
    assert by_lengths == sorted(want)
