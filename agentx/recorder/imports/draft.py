"""A trace whose header is known only at the end, because it carries the books of its making.

Sessions go to `OUT.part` as they come, behind a provisional header; `finish` puts the final header in front and
moves the result into place. So a refused input leaves nothing at OUT, and after a full disk OUT.part is readable.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from agentx.core import Header, Segment, Session
from agentx.errors import BadInput
from agentx.frames import FrameWriter, WriteFailed, encode
from agentx.recorder.imports.books import Books
from agentx.recorder.shaping import Shaping
from agentx.trace import VERSION, session_frames
from agentx.trace_bodies import Body, header_body
from agentx.trace_lines import to_line

_CHUNK = 1 << 20


class Draft:
    """Use as a context manager: `session` for each session, then `finish` once."""

    def __init__(self, out: Path | str, header: Header, shaping: Shaping | None = None) -> None:
        self.shaping = shaping if shaping is not None else Shaping()
        self.out = Path(out)
        self.part = self.out.with_name(self.out.name + ".part")
        self._frame = to_line if self.out.suffix in (".jsonl", ".json") else encode
        self._header = header
        self._file = FrameWriter(self.part)
        first = self._header_frame(header)
        self._body_at = len(first)
        self._file.write_bytes(first)
        self._shared: dict[int, Segment] = {}

    def _header_frame(self, header: Header) -> bytes:
        return self._frame("header", {"version": VERSION, **header_body(header)})

    def session(self, session: Session) -> None:
        """Write a session at its level, behind the file's segments that it is the first to have."""
        session = self.shaping.session(session)
        new = {id: segment for id, segment in session.shared.items() if self._shared.get(id) != segment}
        self._shared.update(new)
        for kind, body in session_frames(session, new.values()):
            self._file.write_bytes(self._frame(kind, body))

    def finish(self, sources: Sequence[str], books: Books) -> Header:
        """Close the trace with the SHA-256 of each source file and the books; returns its header.

        The scope is a digest of both: the same files imported in the same way give the same identities.
        """
        self._file.close()
        provenance = {**self._header.provenance, "sources": list(sources), **books.told(), "losses": books.losses()}
        scope = self.shaping.scope(scope_of(provenance))
        header = self.shaping.header(replace(self._header, scope=scope, provenance=provenance))
        final = FrameWriter(self.out)
        final.write_bytes(self._header_frame(header))
        with self.part.open("rb") as body:
            body.seek(self._body_at)
            while chunk := body.read(_CHUNK):
                final.write_bytes(chunk)
        final.close()
        self.part.unlink()
        return header

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            return
        with suppress(WriteFailed):  # the disk is full: what failed is being told already
            self._file.close()
        if isinstance(error, BadInput) and self.part.exists():
            os.unlink(self.part)


def scope_of(provenance: Body) -> str:
    """A short digest that names the space of a trace's identities."""
    text = json.dumps(provenance, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
