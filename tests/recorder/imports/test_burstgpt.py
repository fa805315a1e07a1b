"""BurstGPT rows: sessions by their id, failures as events, pauses from the elapsed time."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.core import Gap, Session, TurnEvent
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.burstgpt import make_format
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace

HEAD = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def imported(tmp_path: Path, text: str) -> tuple[list[Session], Books]:
    (tmp_path / "in.csv").write_text(text)
    books = import_files(make_format(), [tmp_path / "in.csv"], tmp_path / "out.trace")
    return list(read_trace(tmp_path / "out.trace")), books


def test_rows_of_a_session_are_its_turns_wherever_they_stand(tmp_path: Path) -> None:
    (abc, api), books = imported(
        tmp_path,
        HEAD
        + "5,abc,3.2,ChatGPT,472,18,490,Conversation log\n"
        + "20,,1.1,GPT-4,417,276,693,API log\n"
        + "45,abc,,GPT-4,1087,0,1087,Conversation log\n"
        + "60,abc,2,GPT-4,1200,10,1210,Conversation log\n",
    )
    assert (abc.id, abc.arrival, api.id, api.arrival) == ("abc", 5.0, "row-3", 20.0)
    assert [(turn.isl, turn.output.tokens, turn.model) for turn in abc.turns] == [
        (472, 18, "ChatGPT"),
        (1087, 0, "GPT-4"),
        (1200, 10, "GPT-4"),
    ]
    # 45 - (5 + 3.2); then no elapsed time: from start to start
    assert [turn.gap for turn in abc.turns[1:]] == [Gap("human", 36.8), Gap("human", 15.0, "inferred")]
    assert abc.turns[1].event == TurnEvent("error")
    assert abc.turns[1].observed is not None
    assert abc.turns[1].observed.status == "error"
    assert books.notes["response of 0 tokens: a failed call"] == 1
    assert (books.rows.read, books.rows.used, books.sessions.used) == (4, 4, 2)


def test_the_older_files_have_no_sessions(tmp_path: Path) -> None:
    sessions, _ = imported(
        tmp_path,
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,10,2,12,API log\n"
        "6,GPT-4,11,3,14,API log\n",
    )
    assert [(session.id, session.arrival, session.turns[0].isl) for session in sessions] == [
        ("row-2", 5.0, 10),
        ("row-3", 6.0, 11),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,a,1,m,1,1,2,l", "Timestamp: 'x' is not a number"),
        ("1,a,1,m,-1,1,2,l", "Request tokens: '-1' is not a whole number"),
        ("1,a,z,m,1,1,2,l", "Elapsed time: 'z' is not a number"),
        ("1,a,1,m,1,1", "the row has 6 cells, the first line 8"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(BadInput, match=r"in\.csv:3: " + message):
        imported(tmp_path, HEAD + "1,a,1,m,1,1,2,l\n" + row + "\n")
