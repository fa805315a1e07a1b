"""One export from a trace to a file or a folder: what all formats have in common.

A file is written beside its place and moved there when it is whole; a folder must be new or empty. The books count
sessions and turns, and say what the format cannot hold.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agentx.core import Session
from agentx.errors import BadInput
from agentx.recorder.exports import dag, mooncake, sglang, weka
from agentx.recorder.imports.books import Books
from agentx.trace import TraceReader

Tick = Callable[[], object]
HEADING = "what this format cannot hold:"


def export_mooncake(
    reader: TraceReader, out: Path, *, rows: mooncake.Rows = "delta", block: int = 512, tick: Tick | None = None
) -> Books:
    """Write Mooncake rows to the file `out`."""
    books = _books(mooncake.cannot_hold(rows))
    maker = mooncake.Mooncake(books, rows, block)
    with _file(out) as file:
        for session in _sessions(reader, books, tick):
            file.writelines(maker.session(session))
    return _closed(books, reader)


def export_weka(reader: TraceReader, out: Path, *, tick: Tick | None = None) -> Books:
    """Write one Weka object for each session to the folder `out`, in the order of their names."""
    books = _books(weka.CANNOT_HOLD)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput("the output is not a new or empty folder", file=out, hint="-o names another folder")
    for number, session in enumerate(_sessions(reader, books, tick)):
        safe = re.sub(r"[^A-Za-z0-9._-]", "_", session.key)[:80]
        body = json.dumps(weka.document(session, books), separators=(",", ":"))
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{number:06}_{safe}.json").write_text(body + "\n", encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    return _closed(books, reader)


def export_dag(reader: TraceReader, out: Path, *, tick: Tick | None = None) -> Books:
    """Write AIPerf's dag_jsonl to the file `out`."""
    books = _books(dag.CANNOT_HOLD)
    maker = dag.Dag(books)
    with _file(out) as file:
        for session in _sessions(reader, books, tick):
            file.writelines(maker.session(session))
    return _closed(books, reader)


def export_sglang(reader: TraceReader, out: Path, *, tick: Tick | None = None) -> Books:
    """Write SGLang's agentic-trace document to the file `out`."""
    books = _books(sglang.CANNOT_HOLD)
    maker = sglang.Conversations(books)
    between = b""
    with _file(out) as file:
        metadata = json.dumps({"source": "agentx", "name": reader.header.name}).encode()
        file.write(b'{"metadata":' + metadata + b',"conversations":[')
        for session in _sessions(reader, books, tick):
            for conversation in maker.session(session):
                text = json.dumps(conversation, ensure_ascii=False, separators=(",", ":")).encode()
                file.write(between + b"\n" + text)
                between = b","
        file.write(b"\n]}\n")
    return _closed(books, reader)


def _books(unknowable: tuple[str, ...]) -> Books:
    return Books("turn", unknowable=unknowable, heading=HEADING)


def _sessions(reader: TraceReader, books: Books, tick: Tick | None) -> Iterator[Session]:
    """The sessions that have turns, counted."""
    for session in reader:
        books.sessions.read += 1
        books.rows.read += len(session.turns)
        if not session.turns:
            books.sessions.drop("without turns")
            continue
        books.sessions.used += 1
        books.note("session that the trace's end cut short", not session.complete)
        yield session
        if tick is not None:
            tick()


def _closed(books: Books, reader: TraceReader) -> Books:
    if reader.tear is not None:
        books.find(f"the trace is {reader.tear}")
    books.check()
    return books


@contextmanager
def _file(out: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when it is whole, and leaves nothing when it is not."""
    part = out.with_name(out.name + ".part")
    try:
        with part.open("wb") as file:
            yield file
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, out)
