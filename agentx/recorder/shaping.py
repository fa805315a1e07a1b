"""What an import of lengths or of public text writes at a level, and what is still linkable in it.

Without a level sessions are written as their source tells them. `shape` leaves out text (equal texts stay one
identity), names (of sessions, models, tools of one's own) and what a source tells beside; `shape-coarse` blurs lengths
and times, too. Both leave the digests of the source's files out of the header, by which whoever has the files could
find the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from agentx.core import Header, Opaque, OpaqueRun, Segment, Session, Text, Thread, TokenIds, Turn
from agentx.recorder.keys import CaptureKey
from agentx.recorder.names import Names
from agentx.recorder.privacy import ROOM, Linkability, coarse

Shape = Literal["shape", "shape-coarse"]
BLOCK = 64  # of the identities that stand for texts
KEPT = frozenset({"stop", "attempts", "linked_by", "estimated", "unattributed", "prefix_unknown"})


@dataclass(slots=True)
class Shaping:
    """Gives each session as it is to be written, and counts what is linkable in it. A level needs a key."""

    level: Shape | None = None
    key: CaptureKey | None = None
    linkability: Linkability = field(default_factory=Linkability)
    _names: Names = field(default_factory=Names)
    _texts: dict[Text | TokenIds, int] = field(default_factory=dict)

    def session(self, session: Session) -> Session:
        """A session at the level; sessions come in the order of the trace."""
        if self.level is not None:
            session = self._shape(session)
        if self.level == "shape-coarse" and self.key is not None:
            session = coarse(session, partial(chance, self.key))
        self.linkability.add(session)
        return session

    def scope(self, scope: str) -> str:
        """The name of a trace's identities: without the key nobody can tell which files it was made of."""
        return scope if self.key is None else self.key.digest("scope", scope.encode(), 8).hex()

    def header(self, header: Header) -> Header:
        """The header of a trace at the level."""
        if self.level is None:
            return header
        provenance = {name: value for name, value in header.provenance.items() if name != "sources"}
        content = "opaque" if header.content == "text" else header.content
        return replace(
            header, name=str(provenance.get("importer", "trace")), content=content,
            provenance={**provenance, "level": self.level},
        )  # fmt: skip

    def _shape(self, session: Session) -> Session:
        number = self.linkability.sessions + 1
        return replace(
            session,
            id=f"s{number:04d}",
            turns=tuple(self._turn(turn) for turn in session.turns),
            threads=tuple(self._thread(thread) for thread in session.threads),
            segments=self._segments(session.segments),
            shared=self._segments(session.shared),
            extra={},
            end_extra={},
            unknown=(),
        )

    def _turn(self, turn: Turn) -> Turn:
        return replace(
            turn,
            model=self._names.model(turn.model) if turn.model is not None else None,
            tools=tuple(replace(tool, name=self._names.tool(tool.name)) for tool in turn.tools),
            extra={name: value for name, value in turn.extra.items() if name in KEPT},
        )

    def _thread(self, thread: Thread) -> Thread:
        return replace(thread, type=self._names.role(thread.type) if thread.type is not None else None, extra={})

    def _segments(self, segments: Mapping[int, Segment]) -> dict[int, Segment]:
        return {id: self._segment(segment) for id, segment in segments.items()}

    def _segment(self, segment: Segment) -> Segment:
        content: Any = segment.content
        if isinstance(content, Text | TokenIds):
            number = self._texts.setdefault(content, len(self._texts) + 1)
            content = Opaque(BLOCK, (OpaqueRun(number * ROOM, 0, segment.tokens),)) if segment.tokens else None
        return replace(segment, content=content, extra={})


def chance(key: CaptureKey, name: str) -> float:
    """0 ... 1, by the key: what it blurs cannot be taken back without it."""
    return int.from_bytes(key.digest("jitter", name.encode(), 6), "little") / (1 << 48)
