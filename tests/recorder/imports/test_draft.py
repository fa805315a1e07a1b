"""A trace whose header comes last: whole or not there."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from agentx.core import Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import BadInput
from agentx.frames import WriteFailed
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.draft import Draft
from agentx.trace import canonical, read_trace

HEADER = Header("n", "provisional", "session", "opaque", provenance={"importer": "x"})


def alone(id: str) -> Session:
    """A session that needs no shared segments."""
    return Session(id, (Turn(0, 0, Prompt((Piece(1, 0, 8),)), 8, Output(2)),), segments={1: Segment(1, "user", 8)})


def made(path: Path, sources: list[str], books: Books, sessions: int = 3) -> Header:
    with Draft(path, HEADER) as draft:
        for number in range(sessions):
            draft.session(alone(f"s{number}"))
        return draft.finish(sources, books)


@pytest.mark.parametrize("name", ["a.trace", "a.jsonl"])
def test_the_finished_trace_has_the_books_in_its_header(tmp_path: Path, name: str) -> None:
    books = Books()
    books.note("tail", 3)
    header = made(tmp_path / name, ["ab"], books)
    reader = read_trace(tmp_path / name)
    assert [session.id for session in reader] == ["s0", "s1", "s2"]
    assert reader.header == header
    assert header.provenance == {"importer": "x", "sources": ["ab"], "losses": books.losses()}
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_both_forms_hold_the_same(tmp_path: Path) -> None:
    for name in ("a.trace", "a.jsonl"):
        made(tmp_path / name, ["ab"], Books())
    lines = b"".join(canonical(read_trace(tmp_path / "a.trace")))
    assert lines == (tmp_path / "a.jsonl").read_bytes()


def test_the_scope_is_that_of_the_sources_and_the_books(tmp_path: Path) -> None:
    books = Books()
    books.note("tail")
    scopes = [
        made(tmp_path / "a.trace", sources, found).scope
        for sources, found in ((["ab"], Books()), (["ab"], Books()), (["cd"], Books()), (["ab"], books))
    ]
    assert scopes[0] == scopes[1]
    assert len(set(scopes)) == 3


def fails(path: Path, error: BaseException) -> None:
    with Draft(path, HEADER) as draft:
        draft.session(alone("s"))
        raise error


def test_refused_input_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        fails(tmp_path / "a.trace", BadInput("row 7 is bad"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_a_readable_part(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match=r"a\.trace\.part: writing failed: the disk is full"):
        fails(tmp_path / "a.trace", WriteFailed(tmp_path / "a.trace.part", OSError(errno.ENOSPC, "no space")))
    assert [session.id for session in read_trace(tmp_path / "a.trace.part")] == ["s"]


def test_an_interrupted_import_leaves_a_readable_part(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fails(tmp_path / "a.trace", KeyboardInterrupt())
    assert [session.id for session in read_trace(tmp_path / "a.trace.part")] == ["s"]
