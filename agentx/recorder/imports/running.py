"""One import from files to a trace: what all formats that are read file by file have in common.

A format says its name, what its source cannot tell, and how one file becomes sessions; it counts rows and sessions in
the books itself. Session ids that occur again are numbered, since equal ids would be one space of identities.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agentx.core import Header, Identity, Session
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.draft import Draft, scope_of
from agentx.recorder.shaping import Shaping

Reader = Callable[[Path, Books, Any], Iterator[Session]]  # a file, the books, a hashlib object for the file's bytes


@dataclass(frozen=True, slots=True)
class Format:
    """A source format. `row` names what a row of it is; `endings` are those of its files in a folder."""

    name: str
    row: str
    sessions: Reader
    unknowable: tuple[str, ...]
    endings: tuple[str, ...]
    identity: Identity = "file"
    content: Literal["synthetic", "text", "opaque"] = "synthetic"
    fidelity: Fidelity | None = None


def import_files(
    format: Format,
    paths: Sequence[Path],
    out: Path,
    progress: Callable[[], object] | None = None,
    shaping: Shaping | None = None,
) -> Books:
    """Turn files, or folders of them, into one trace at `out`. Returns the books, balanced.

    `progress` is called for each session. Raises BadInput for a file of another format, naming the place.
    """
    books = Books(format.row, unknowable=format.unknowable, fidelity=format.fidelity)
    provenance: dict[str, Any] = {"importer": format.name}
    if format.fidelity is not None:
        provenance["fidelity"] = format.fidelity._asdict()
    name = paths[0].stem if len(paths) == 1 else format.name
    header = Header(name, scope_of(provenance), format.identity, format.content, provenance=provenance)
    digests, names = [], dict[str, int]()
    with Draft(out, header, shaping) as draft:
        for file in files(paths, format.endings):
            digest = hashlib.sha256()
            for session in format.sessions(file, books, digest):
                try:
                    draft.session(replace(session, id=unique(session.id, names, books)))
                except BadInput as error:  # such as a name that no UTF-8 holds
                    raise BadInput(f"session {session.id!r}: {error}", file=file) from None
                if progress is not None:
                    progress()
            digests.append(digest.hexdigest())
        if not books.rows.read:
            raise BadInput("0 model calls that can be used", file=paths[0], hint=f"there is no {format.row}")
        books.check()
        none_used(books, paths[0])
        draft.finish(digests, books)
    return books


def none_used(books: Books, path: Path) -> None:
    """Raises BadInput when nothing of what was read is a model call."""
    if not books.sessions.used:
        reasons = [f"{count} {why}" for a in (books.rows, books.sessions) for why, count in sorted(a.dropped.items())]
        raise BadInput("0 model calls that can be used", file=path, hint="; ".join(reasons))


def files(paths: Sequence[Path], endings: tuple[str, ...]) -> list[Path]:
    """The files that the paths name; a folder stands for its files of these endings, sorted by name."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.suffix in endings)
        if not inside:
            raise BadInput(f"the folder holds no {' or '.join(endings)} file", file=path)
        found += inside
    return found


def unique(id: str, names: dict[str, int], books: Books) -> str:
    """The session's id, with a number where another one had it: equal ids would share block identities."""
    wanted = id
    while wanted in names:
        names[id] += 1
        wanted = f"{id}#{names[id]}"
    books.note("session id that occurs again: numbered", wanted != id)
    names[wanted] = 1
    return wanted


def note_unknown(body: dict[str, Any], known: frozenset[str], books: Books) -> None:
    """Count the keys that the format does not have; they are left out."""
    for key in sorted(body.keys() - known):
        books.note(f"key {key!r:.40} is not part of the format: left out")
