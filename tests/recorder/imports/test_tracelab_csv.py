"""TraceLab's runner CSV: a prompt is the head of the previous prompt and reply, then new tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import layers

from agentx.core import Gap, Session, TurnEvent
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.running import import_files
from agentx.recorder.imports.tracelab import make_format
from agentx.recorder.imports.tracelab_csv import Round, convert
from agentx.trace import read_trace

HEAD = "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n"


def imported(tmp_path: Path, text: str) -> tuple[list[Session], Books]:
    (tmp_path / "in.csv").write_text(text)
    books = import_files(make_format(), [tmp_path / "in.csv"], tmp_path / "out.trace")
    return list(read_trace(tmp_path / "out.trace")), books


def test_interleaved_sessions_with_their_waits(tmp_path: Path) -> None:
    (first, second), books = imported(
        tmp_path,
        "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\r\n"
        "0,0,0,0,512,64,100\r\n1,200,0,0,400,48,80\r\n0,0,1,576,128,64,0\r\n1,200,1,448,100,48,0\r\n",
    )
    assert [turn.isl for turn in first.turns] == [512, 704]
    assert layers(first, 1) == [("user", 512), ("assistant", 64), ("tool_result", 128)]
    assert first.turns[1].gap == Gap("tool", 0.1)
    assert (first.arrival, second.arrival) == (0.0, 0.2)
    assert (books.rows.read, books.rows.used, books.sessions.used) == (4, 4, 2)


def test_a_prefix_that_shrinks_is_a_compaction(tmp_path: Path) -> None:
    (session,), books = imported(tmp_path, HEAD + "s,0,30,10,5,10\ns,1,38,9,4,20\ns,2,20,7,3,0\ns,3,0,9,1,0\n")
    assert [turn.isl for turn in session.turns] == [40, 47, 27, 9]
    assert layers(session, 1) == [("system", 30), ("user", 8), ("tool_result", 9)]  # cut before the reply
    assert layers(session, 2) == [("system", 20), ("tool_result", 7)]
    assert [turn.event for turn in session.turns] == [
        None,
        None,
        TurnEvent("compaction", before=47, kept=20),
        TurnEvent("reset", before=27, kept=0),
    ]
    assert books.notes["first round with a prefix: content from before it, called system (inferred)"] == 1


def test_a_prefix_longer_than_what_there_was(tmp_path: Path) -> None:
    (session,), books = imported(tmp_path, HEAD + "s,0,0,10,5,1\ns,1,18,2,1,0\n")
    assert [turn.isl for turn in session.turns] == [10, 20]
    assert books.notes["prefix longer than the prompt and reply before it: the rest is new content"] == 1


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=8))
def test_lengths_are_kept(drawn: list[tuple[int, int, int]]) -> None:
    rows = [Round(number, *each, 0.5, None) for number, each in enumerate(drawn)]
    session = convert("s", rows[::-1], Books())
    assert [turn.isl for turn in session.turns] == [prefix + fresh for prefix, fresh, _ in drawn]
    assert [turn.output.tokens for turn in session.turns] == [out for _, _, out in drawn]
    for turn in session.turns:
        assert sum(piece.tokens for piece in session.pieces(turn.index)) == turn.isl
    for index in range(1, len(drawn)):  # what is kept is the head of the prompt and reply before
        before = session.runs(index - 1) + session.reply_runs(index - 1)
        kept = min(drawn[index][0], sum(run.stop - run.start for run in before))
        assert flat(session.runs(index))[:kept] == flat(before)[:kept]


def flat(runs: list) -> list[tuple]:
    return [(run.stream, at) for run in runs for at in range(run.start, run.stop)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("s,0,x,1,1,1", "prefix_len: 'x' is not"),
        ("s,0,1,1,1,-1", "tool_wait_after_ms: '-1' is not"),
        ("s,0", "2 cells"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(BadInput, match=r"in\.csv:2: .*" + message):
        imported(tmp_path, HEAD + row + "\n")
