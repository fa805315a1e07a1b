"""The books: balanced or a bug, and readable."""

from __future__ import annotations

import pytest

from agentx.recorder.imports.books import Books


def test_balanced_books_are_said_as_a_sum() -> None:
    books = Books("request", unknowable=("text",))
    books.sessions.read = books.sessions.used = 2
    books.rows.read, books.rows.used, books.rows.merged = 1010, 1000, 3
    books.rows.dropped["duplicate"] = 7
    books.note("tail", 4)
    books.note("never", 0)
    books.find("seconds")
    books.find("seconds")
    books.check()
    assert books.lines() == [
        "sessions  2 read = 2 used + 0 dropped",
        "requests  1,010 read = 1,000 used + 3 merged + 7 dropped",
        "  dropped          7  duplicate",
        "  noted            4  tail",
        "detected: seconds",
        "what this source cannot tell:",
        "  - text",
    ]
    assert books.losses() == {
        "dropped": {"requests": {"duplicate": 7}},
        "notes": {"tail": 4},
        "detected": ["seconds"],
    }


@pytest.mark.parametrize("account", ["rows", "sessions"])
def test_books_that_do_not_balance_are_a_bug(account: str) -> None:
    books = Books()
    getattr(books, account).read = 1
    with pytest.raises(RuntimeError, match="do not balance: 1 of 1"):
        books.check()
