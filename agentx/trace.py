"""The trace: a stream of frames that says what agents do. Reader, writer, canonical JSON Lines.

Frame order: `header`, then file-scoped `segment`s and sessions in any order, a segment before its first use. A
session is `session`, then its own `segment`s and `turn`s, then `end`, which forgets its segments: memory is
bounded by the file-scoped segments and one session. Every further `header` opens a new scope, so files can be
concatenated. Canonical JSON Lines are the same frames, one JSON object a line with sorted keys and the frame's
type under "frame"; both forms are read, and each turns into the other without loss. A frame's body is made and
checked in `trace_bodies.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from agentx import trace_bodies as bodies
from agentx.core import Extra, Header, Segment, Session, Thread, Turn
from agentx.errors import BadInput
from agentx.frames import MAGIC, Frame, FrameReader, FrameWriter, Tear, encode, open_for_reading
from agentx.trace_lines import from_line, lines_of, to_line

VERSION = 1
MAX_TURNS = 1 << 20  # of one session
SNIFFED = 4096  # bytes that say which form a file has
BOM = b"\xef\xbb\xbf"
MAX_SEGMENTS = 1 << 24  # alive at one time


@dataclass(frozen=True, slots=True)
class Unknown:
    """A frame of a type that this version does not know, outside a session. A rewrite keeps it where it stood."""

    kind: str
    body: dict[str, Any]


Item = Header | Segment | Session | Unknown


class Located(NamedTuple):
    """A frame and its line in a JSON Lines file (None in a binary one)."""

    kind: str
    body: dict[str, Any]
    line: int | None


class TraceReader:
    """Streams a trace file of either form.

    `items()` yields everything in order, `__iter__` only the sessions. After reading, `tear` tells what at the
    end could not be read; a session that the tear cut has `complete` False. `headers` are those seen so far.
    Raises BadInput, with file and line, for what is not a trace or breaks its rules.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.tear: Tear | None = None
        self.headers: list[Header] = []

    @property
    def header(self) -> Header:
        """The first header, read now if nothing was read yet."""
        if not self.headers:
            next(iter(TraceReader.items(self)), None)
        return self.headers[0]

    def __iter__(self) -> Iterator[Session]:
        return (item for item in self.items() if isinstance(item, Session))

    def items(self) -> Iterator[Item]:
        self.headers, self.tear = [], None
        assembly = _Assembly(self.path)
        for frame in self._frames():
            for item in assembly.feed(frame):
                if isinstance(item, Header):
                    self.headers.append(item)
                yield item
        if not self.headers:
            raise self.not_a_trace(str(self.tear) if self.tear else "it holds no frame")
        if assembly.open is not None:  # the file ended inside a session, between two frames or in one
            self.tear = self.tear or Tear(self.path.stat().st_size, 0, "the file ends inside a session")
            yield assembly.close(False, {})

    def _frames(self) -> Iterator[Located]:
        with open_for_reading(self.path) as file:
            start = file.read(SNIFFED)
        if start.startswith(MAGIC):
            reader = FrameReader(self.path)
            yield from (Located(kind, body, None) for kind, body in reader)
            self.tear = reader.tear
        elif start.removeprefix(BOM).lstrip()[:1] == b"{":
            yield from self._lines()
        else:
            raise self.not_a_trace(f"it begins with {start[:8]!r}")

    def _lines(self) -> Iterator[Located]:
        with open_for_reading(self.path) as file:
            offset = 0
            for number, raw in enumerate(lines_of(file, self.path), start=1):
                line = raw.removeprefix(BOM) if number == 1 else raw
                if line.strip():
                    try:
                        yield Located(*from_line(line, self.path, number), number)
                    except BadInput:
                        if line.endswith(b"\n") or number == 1:
                            raise
                        self.tear = Tear(offset, len(line), f"line {number} is cut short")
                        return
                offset += len(raw)

    def not_a_trace(self, why: str) -> BadInput:
        hint = "agentx import FORMAT turns other formats into traces"
        if self.path.suffix == ".yaml":
            hint = f"agentx generate {self.path} turns a workload spec into a trace"
        return BadInput(f"this is not an agentx trace: {why}", file=self.path, hint=hint)


def read_trace(path: Path | str) -> TraceReader:
    """Open a trace; iterate over the result for its sessions."""
    return TraceReader(path)


@dataclass(slots=True)
class _Assembly:
    """Turns frames into items: checks their order and collects each session until its end."""

    path: Path
    header: Header | None = None
    scope: str = ""
    shared: dict[int, Segment] = field(default_factory=dict)
    open: dict[str, Any] | None = None  # body of the session that is being read
    threads: tuple[Thread, ...] = ()
    own: dict[int, Segment] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # pieces of each turn's resolved prompt
    unknown: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)  # how often a scope was opened
    names: set[str] = field(default_factory=set)  # keys of the sessions so far
    part: int = -1

    def feed(self, frame: Located) -> Iterable[Item]:
        try:
            if self.header is None and frame.kind != "header":
                raise BadInput(f"the first frame is {frame.kind!r}, not a header: this is not an agentx trace")
            handler = _HANDLERS.get(frame.kind)
            return handler(self, frame.body) if handler else self._unknown(frame)
        except bodies.Invalid as error:
            where = f" of session {self.open['id']!r}" if self.open else ""
            raise BadInput(f"{frame.kind} frame{where}: {error}", file=self.path, line=frame.line) from None
        except BadInput as error:
            raise BadInput(str(error), file=self.path, line=frame.line) from None

    def _header(self, body: dict[str, Any]) -> Iterable[Item]:
        if self.open is not None:
            raise bodies.Invalid(f"session {self.open['id']!r} has no end frame")
        version = bodies.integer(body, "version", low=1)
        if version > VERSION:
            raise BadInput(f"format version {version} is newer than {VERSION}, which this agentx reads; upgrade agentx")
        self.header = bodies.header(body)
        count = self.seen[self.header.scope] = self.seen.get(self.header.scope, 0) + 1
        # The same file twice in a row is two scopes: nothing is shared that its author did not share.
        self.scope = self.header.scope if count == 1 else f"{self.header.scope}#{count}"
        self.shared, self.part = {}, self.part + 1
        return [self.header]

    def _segment(self, body: dict[str, Any]) -> Iterable[Item]:
        segment = bodies.segment(body)
        known = self.own if self.open is not None else self.shared
        before = known.get(segment.id)
        if before is not None and before != segment:
            raise bodies.Invalid(f"segment {segment.id} is defined a second time, and differently")
        if self.open is not None and segment.id in self.shared:
            raise bodies.Invalid(f"segment {segment.id} is already defined for the whole file")
        if len(known) >= MAX_SEGMENTS:
            raise bodies.Invalid(f"more than {MAX_SEGMENTS} segments are alive at one time")
        known[segment.id] = segment
        return [segment] if self.open is None and before is None else []

    def _session(self, body: dict[str, Any]) -> Iterable[Item]:
        if self.open is not None:
            raise bodies.Invalid(f"session {self.open['id']!r} has no end frame")
        self.threads = bodies.threads(body)
        bodies.seconds(body, "arrival")
        name = Session(bodies.string(body, "id"), (), part=self.part).key
        if name in self.names:
            raise bodies.Invalid(f"the session id {name!r} occurs twice")
        self.names.add(name)
        self.open, self.own, self.turns, self.sizes, self.unknown = body, {}, [], [], []
        return []

    def _turn(self, body: dict[str, Any]) -> Iterable[Item]:
        if self.open is None:
            raise bodies.Invalid("a turn outside a session")
        if len(self.turns) >= MAX_TURNS:
            raise bodies.Invalid(f"more than {MAX_TURNS} turns")
        turn = bodies.turn(body)
        self._check_turn(turn)
        self.turns.append(turn)
        return []

    def _check_turn(self, turn: Turn) -> None:
        place = f"turn {turn.index}: "
        if turn.index != len(self.turns):
            raise bodies.Invalid(f"{place}turns must be numbered in order, {len(self.turns)} was expected")
        if all(thread.id != turn.thread for thread in self.threads):
            raise bodies.Invalid(f"{place}no thread {turn.thread}")
        for earlier in turn.after:
            if not 0 <= earlier < turn.index:
                raise bodies.Invalid(f"{place}after {earlier}, which is not an earlier turn")
        base, keep = turn.prompt.base, turn.prompt.keep
        if base is not None and not 0 <= base < turn.index:
            raise bodies.Invalid(f"{place}its prompt keeps pieces of turn {base}, which is not an earlier turn")
        kept = self.sizes[base] if base is not None else 0
        if keep > kept:
            raise bodies.Invalid(f"{place}keeps {keep} pieces, the base has {kept}")
        if keep + len(turn.prompt.append) > bodies.MAX_PIECES:
            raise bodies.Invalid(f"{place}more than {bodies.MAX_PIECES} pieces in a prompt")
        self.sizes.append(keep + len(turn.prompt.append))
        for piece in turn.prompt.append:
            segment = self._known(piece.segment, place)
            if piece.stop > segment.tokens:
                span = f"[{piece.start}, {piece.stop})"
                raise bodies.Invalid(f"{place}piece {span} of segment {segment.id}, which has {segment.tokens} tokens")
        if turn.reply is not None:
            self._known(turn.reply, place)

    def _known(self, id: int, place: str) -> Segment:
        segment = self.own.get(id) or self.shared.get(id)
        if segment is None:
            raise bodies.Invalid(f"{place}segment {id} is not defined before its use")
        return segment

    def _end(self, body: dict[str, Any]) -> Iterable[Item]:
        if self.open is None:
            raise bodies.Invalid("an end frame outside a session")
        turns = bodies.integer(body, "turns", low=0)
        if turns != len(self.turns):
            raise bodies.Invalid(f"the end frame counts {turns} turns, {len(self.turns)} were read")
        return [self.close(body.get("complete", True) is True, bodies.extra(body, bodies.END_KEYS))]

    def _unknown(self, frame: Located) -> Iterable[Item]:
        if self.open is None:
            return [Unknown(frame.kind, frame.body)]
        self.unknown.append((len(self.turns), frame.kind, frame.body))
        return []

    def close(self, complete: bool, end_extra: Extra) -> Session:
        """The session that is open, as far as it was read."""
        body, header = self.open, self.header
        if body is None or header is None:
            raise bodies.Invalid("no session is open")
        session = Session(
            id=body["id"],
            turns=tuple(self.turns),
            threads=self.threads,
            segments=self.own,
            shared=self.shared,
            arrival=bodies.seconds(body, "arrival"),
            scope=self.scope,
            blocks_scope=blocks_scope(header, self.scope, body["id"]),
            part=self.part,
            complete=complete,
            extra=bodies.extra(body, bodies.SESSION_KEYS),
            end_extra=end_extra,
            unknown=tuple(self.unknown),
        )
        self.open = None
        return session


_HANDLERS: dict[str, Callable[[_Assembly, dict[str, Any]], Iterable[Item]]] = {
    "header": _Assembly._header,
    "segment": _Assembly._segment,
    "session": _Assembly._session,
    "turn": _Assembly._turn,
    "end": _Assembly._end,
}


def blocks_scope(header: Header, scope: str, session: str) -> str:
    """The space in which a session's opaque block ids are compared: its own, its file's, or that of all files."""
    if header.identity == "session":
        return f"{scope}/{session}"
    return scope if header.identity == "file" else "global"


class TraceWriter:
    """Writes a trace, binary or (for a name that ends in .jsonl or .json) canonical JSON Lines.

    Use as a context manager. Shared segments are written before the session that is the first to need them.
    """

    def __init__(self, path: Path | str, header: Header) -> None:
        self._json = Path(path).suffix in (".jsonl", ".json")
        self._file = FrameWriter(path)
        self.path = Path(path)
        self.sessions = 0
        self.new_header(header)

    def new_header(self, header: Header) -> None:
        """Open a new scope."""
        self._shared: dict[int, Segment] = {}
        self._write("header", {"version": VERSION, **bodies.header_body(header)})

    def segment(self, segment: Segment) -> None:
        """Define a file-scoped segment; an equal repeated definition writes nothing."""
        if self._shared.get(segment.id) != segment:
            self._shared[segment.id] = segment
            self._write("segment", bodies.segment_body(segment))

    def session(self, session: Session) -> None:
        for frame in session_frames(session, self._missing(session)):
            self._write(*frame)
        self.sessions += 1

    def _missing(self, session: Session) -> list[Segment]:
        """Shared segments that this session uses and that are not written yet."""
        used = {piece.segment for turn in session.turns for piece in turn.prompt.append}
        used |= {turn.reply for turn in session.turns if turn.reply is not None}
        missing = [session.shared[id] for id in sorted(used - session.segments.keys() - self._shared.keys())]
        self._shared.update({segment.id: segment for segment in missing})
        return missing

    def unknown(self, item: Unknown) -> None:
        self._write(item.kind, item.body)

    def write(self, item: Item) -> None:
        """Write any item that a reader yields; a header opens a new scope."""
        if isinstance(item, Header):
            self.new_header(item)
        elif isinstance(item, Segment):
            self.segment(item)
        elif isinstance(item, Session):
            self.session(item)
        else:
            self.unknown(item)

    def _write(self, kind: str, body: dict[str, Any]) -> None:
        self._file.write_bytes(to_line(kind, body) if self._json else encode(kind, body))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def session_frames(session: Session, shared: Iterable[Segment] = ()) -> Iterator[Frame]:
    """A session as frames, after the `shared` segments that it is the first to use."""
    yield from (("segment", bodies.segment_body(segment)) for segment in shared)
    yield "session", bodies.session_body(session)
    yield from (("segment", bodies.segment_body(segment)) for segment in session.segments.values())
    unknown = iter((*session.unknown, (MAX_TURNS + 1, "", {})))
    position, kind, body = next(unknown)
    for turn in session.turns:
        while position <= turn.index:
            yield kind, dict(body)
            position, kind, body = next(unknown)
        yield "turn", bodies.turn_body(turn)
    while position <= MAX_TURNS:
        yield kind, dict(body)
        position, kind, body = next(unknown)
    yield "end", bodies.end_body(session)


def canonical(reader: TraceReader) -> Iterator[bytes]:
    """A trace as canonical JSON Lines: equal traces give equal bytes."""
    for item in reader.items():
        if isinstance(item, Header):
            yield to_line("header", {"version": VERSION, **bodies.header_body(item)})
        elif isinstance(item, Segment):
            yield to_line("segment", bodies.segment_body(item))
        elif isinstance(item, Unknown):
            yield to_line(item.kind, item.body)
        else:
            yield from (to_line(kind, body) for kind, body in session_frames(item))
