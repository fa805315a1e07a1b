"""CSV line by line: line ends, widths, numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.recorder.imports.tables import number, rows, whole

P = Path("t.csv")


def read(tmp_path: Path, data: bytes) -> list[tuple[int, dict[str, str]]]:
    (tmp_path / "t.csv").write_bytes(data)
    return list(rows(tmp_path / "t.csv", hashlib.sha256(), ("a", "b")))


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2\n",
        b"a,b\r\n1,2\r\n",  # as Azure's files
        b"\xef\xbb\xbfa,b\n1,2",  # a byte order mark, no last line end
        b'"a", b \n"1", 2 \n',
    ],
)
def test_line_ends_marks_and_quotes_do_not_matter(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data) == [(2, {"a": "1", "b": "2"})]


def test_blank_lines_count_as_lines(tmp_path: Path) -> None:
    assert [line for line, _ in read(tmp_path, b"a,b\n\n1,2\n\r\n3,4\n")] == [3, 5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,c\n1,2\n", r"t\.csv:1: the first line lacks the column 'b', it has: a, c"),
        (b"a,b,a\n1,2,3\n", r"t\.csv:1: a column's name occurs twice"),
        (b"a,b\n1\n", r"t\.csv:2: the row has 1 cells, the first line 2"),
        (b'a,b\n1,"2\n', r"t\.csv:2: not a row of CSV"),  # a quote that the line does not close
        (b"a,b\n1,\xff\n", r"t\.csv:2: this line is not UTF-8 text"),
        (b"{}\n", r"t\.csv:1: the first line lacks the column 'a'"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read(tmp_path, data)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("12", 12), ("12.0", 12)])
def test_whole_numbers(text: str, value: int) -> None:
    assert whole({"a": text}, "a", P, 3) == value


@pytest.mark.parametrize("text", ["", "-1", "1.5", "x", "nan", "inf", "1e999", "9" * 30, "²", "1_0_x"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(BadInput, match=r"t\.csv:3: a: "):
        whole({"a": text}, "a", P, 3)


def test_numbers_may_be_absent_but_not_negative() -> None:
    assert number({"a": "", "b": "1.5"}, "a", P, 3) is None
    assert number({"b": "1.5"}, "a", P, 3) is None
    assert number({"b": "1.5"}, "b", P, 3) == 1.5
    with pytest.raises(BadInput, match="'-1' is not a number of at least 0"):
        number({"a": "-1"}, "a", P, 3)
