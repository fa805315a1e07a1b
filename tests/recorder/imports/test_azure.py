"""Azure rows become sessions of one turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.recorder.imports.azure import make_format, moment
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace

HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"


def test_rows_arrive_when_they_did(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(
        (
            HEAD
            + "2023-11-16 18:17:03.9799600,4808,10\r\n"
            + "2023-11-16 18:17:04.0319600,3180,8\r\n"
            + "2023-11-16 18:17:03.5000000,7,0\r\n"  # before the first one
            + "2023-11-17 18:17:03.9799600,0,5"
        ).encode()
    )
    books = import_files(make_format(), [tmp_path / "in.csv"], tmp_path / "out.trace")
    sessions = list(read_trace(tmp_path / "out.trace"))
    assert [session.arrival for session in sessions] == [0.0, 0.052, 0.0, 86400.0]
    assert [(session.turns[0].isl, session.turns[0].output.tokens) for session in sessions] == [
        (4808, 10),
        (3180, 8),
        (7, 0),
        (0, 5),
    ]
    assert books.notes["row before the first one in time: arrives at 0"] == 1
    assert (books.rows.read, books.rows.used) == (4, 4)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01 00:00:01", 1.0),
        ("1970-01-01T00:00:01.5000000", 1.5),
        ("1970-01-01 00:00:01.25Z", 1.25),
        ("1970-01-01 01:00:01.009930+01:00", 1.00993),  # as the files of 2024
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert moment(text, Path("a.csv"), 1) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("text", ["", "5", "2023-13-01 00:00:00", "2023-11-16", "2023-11-16 18:17:03,5"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"a\.csv:7: TIMESTAMP: "):
        moment(text, Path("a.csv"), 7)
