"""Imports of logs that hold model calls with their content: the calls go the way of recorded ones.

A format yields `ModelCall`s; retries, threads, sessions, segments and privacy levels are then found as for a capture.
Content never reaches the trace unless `level` is text, and then redacted. Identities are keyed with a key that lies
outside, one for all imports of a user, so that the same files give the same trace and nobody else can link them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.core import Identity
from agentx.errors import BadInput
from agentx.frames import open_for_reading
from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item, NotACall, call_of, read_call
from agentx.recorder.compiling import Compiled, Level, Making, compile_calls
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.source import lines
from agentx.recorder.keys import CaptureKey, imports_key
from agentx.recorder.memo import Memo
from agentx.recorder.parts import split
from agentx.recorder.pauses import Run, Told, ToolTime
from agentx.recorder.replies import Reply
from agentx.recorder.weaving import NO_TEMPLATE, Template

MAX_DOCUMENT = 1 << 30  # bytes of a file that is read as a whole
MAX_FILES = 200_000
_CHUNK = 1 << 20


@dataclass(slots=True)
class Reading:
    """What a format's reader works with: the books, the memory for parts, and what it learns of pauses.

    `tool_times`: by the id of a tool call. `runs`: tools without an id, each with the id of the reply that asked for
    it, where that is told. `prompts`: (session's pseudonym, when its user sent a message, nanoseconds).
    """

    books: Books
    key: CaptureKey
    memo: Memo[tuple[Item, ...]] = field(default_factory=Memo)
    tool_times: dict[str, ToolTime] = field(default_factory=dict)
    runs: list[tuple[str | None, Run]] = field(default_factory=list)
    prompts: list[tuple[str | None, int]] = field(default_factory=list)
    progress: Callable[[], object] = lambda: None
    _number: int = 0
    _last: int = 0  # when the call before began

    def known(self, **words: Any) -> None:
        """Say that this source tells something better, or worse, than its format promises."""
        if self.books.fidelity is not None:
            self.books.fidelity = self.books.fidelity._replace(**words)

    def pseudonym(self, id: str | None) -> str | None:
        """What a session or an agent is called in calls' identities."""
        return self.key.pseudonym("id", id) if id is not None else None

    def rows(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """The JSON objects of a file of lines, with their numbers; what is none is counted as dropped."""
        for line in lines(path):
            self.books.rows.read += 1
            value = parsed(line.data)
            if isinstance(value, dict):
                yield line.number, value
            else:
                self.books.rows.drop("line that is no JSON object")

    def request(self, wire: str, body: bytes | Mapping[str, Any]) -> Call | str:
        """A request's body in canonical form, or why it is no model call."""
        try:
            if isinstance(body, bytes):
                return read_call(wire, split(body), self.memo)
            return call_of(wire, body, self.memo)
        except NotACall as error:
            return f"no model call: {error}"

    def call(
        self,
        start: int | None,
        end: int | None,
        wire: str,
        request: Call,
        reply: Reply,
        ids: Iterable[tuple[str, str | None]] = (),
        **more: Any,
    ) -> ModelCall:
        """A call. `ids` are identity headers and their values, None where there is none.

        A call with an end alone starts there; one without a time stands behind the call before, and is not timed.
        """
        self.progress()
        self._number += 1
        named = tuple((name, self.key.pseudonym("id", value)) for name, value in ids if value is not None)
        begin = start if start is not None else end
        timed = begin is not None
        self._last = begin = begin if begin is not None else self._last + 1
        ended = max(begin, end) if end is not None else begin
        return ModelCall((begin, 0, self._number), ended, wire, request, reply, named, timed=timed, **more)


Reader = Callable[[Path, Reading], Iterator[ModelCall]]


@dataclass(frozen=True, slots=True)
class LoggedFormat:
    """A format of logged calls. `row` names what is counted; `find` gives what a folder holds of it.

    `order`: which of several files is read first, where that matters.
    """

    name: str
    row: str
    read: Reader
    fidelity: Fidelity
    unknowable: tuple[str, ...]
    find: Callable[[Path], list[Path]]
    order: Callable[[Path], Any] | None = None


def matching(*patterns: str) -> Callable[[Path], list[Path]]:
    """Finds the files of a folder, at any depth, whose names match."""

    def find(folder: Path) -> list[Path]:
        found = sorted({path for pattern in patterns for path in folder.rglob(pattern) if path.is_file()})
        if not found:
            raise BadInput(f"the folder holds no {' or '.join(patterns)}", file=folder)
        return found

    return find


def import_calls(
    format: LoggedFormat,
    paths: Sequence[Path],
    out: Path,
    level: Level = "shape",
    key_file: Path | None = None,
    template: Template = NO_TEMPLATE,
    scope: Identity = "file",
    across: CaptureKey | None = None,
    progress: Callable[[], object] = lambda: None,
) -> Compiled:
    """Turn logs into one trace at `out`; see `Making` for what may be asked. `progress` is called for each call.

    Raises BadInput for what cannot be read, and when no model call is found.
    """
    units = units_of(format, paths)
    key = imports_key(key_file)
    books = Books(format.row, unknowable=format.unknowable, fidelity=format.fidelity)
    reading = Reading(books, key, progress=progress)
    digest = hashlib.sha256()
    for unit in units:
        _feed(digest, unit)
    making = Making(
        key,
        format.name,
        format.name,
        f"{format.name} {digest.hexdigest()} {level}",
        paths[0],
        level,
        template,
        scope=scope,
        across=across,
        told=Told(reading.tool_times),
    )
    return compile_calls(calls_of(format, units, reading), making, books, out)


def calls_of(format: LoggedFormat, units: Sequence[Path], reading: Reading) -> Iterator[ModelCall]:
    """The calls of files. Raises BadInput for one that cannot be read."""
    for unit in units:
        try:
            yield from format.read(unit, reading)
        except RecursionError:
            raise BadInput("a value in it is nested too deeply", file=unit) from None


def units_of(format: LoggedFormat, paths: Sequence[Path]) -> list[Path]:
    """What a format reads one by one, in its order: the paths, or what their folders hold."""
    units: list[Path] = []
    for path in paths:
        units += format.find(path) if path.is_dir() else [path]
        if len(units) > MAX_FILES:
            raise BadInput(f"more than {MAX_FILES:,} files", file=path)
    return sorted(units, key=format.order) if format.order is not None else units


def _feed(digest: Any, unit: Path) -> None:
    for path in sorted(unit.rglob("*")) if unit.is_dir() else [unit]:
        if path.is_dir():
            continue
        with open_for_reading(path) if not unit.is_dir() else path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)


def parsed(data: bytes | str) -> Any:
    """A JSON value, or None for what is none (null too)."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def whole(path: Path) -> bytes:
    """A file's bytes. Raises BadInput for one that is missing, or above `MAX_DOCUMENT`."""
    with open_for_reading(path) as file:
        data = file.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        raise BadInput(f"the file is longer than the limit of {MAX_DOCUMENT >> 20} MiB", file=path)
    return data


def document(path: Path) -> Any:
    """A file as one JSON value. Raises BadInput for what is none."""
    value = parsed(whole(path))
    if value is None:
        raise BadInput("not a JSON document", file=path)
    return value
