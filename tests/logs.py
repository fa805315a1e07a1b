"""Logs made by hand, and what an import makes of them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from agentx.core import Header, Session, Turn
from agentx.recorder.compiling import Compiled, Level
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.logged import import_calls
from agentx.trace import read_trace

Json = dict[str, Any]


class Taken(NamedTuple):
    """A trace that was made of a log."""

    sessions: list[Session]
    header: Header
    done: Compiled
    data: bytes

    @property
    def books(self) -> Books:
        return self.done.books

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]

    def lengths(self) -> list[tuple[int, int]]:
        return [(turn.isl, turn.output.tokens) for turn in self.turns]


def take(module: str, *paths: Path, level: Level = "shape", folder: Path | None = None) -> Taken:
    """Import files as the format of a module; the key lies beside the first of them."""
    home = folder if folder is not None else paths[0].parent
    out, format = home / "out.trace", import_module(f"agentx.recorder.imports.{module}").make_format()
    done = import_calls(format, paths, out, level, home / "imports.key")
    assert not done.books.rows.missing
    assert done.books.rows.read > 0
    reader = read_trace(out)
    return Taken(list(reader), reader.header, done, out.read_bytes())


def lines(path: Path, *values: Any) -> Path:
    """JSON values, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values))
    return path


def written(path: Path, value: Any) -> Path:
    """One JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def at(seconds: float) -> str:
    """A time as logs write it."""
    return f"2026-06-01T05:{40 + int(seconds // 60):02d}:{seconds % 60:06.3f}Z"
