"""Realistic content: every segment of a generated session gets a text that looks like what such a layer holds.

A text is a pure function of (seed, session or file, segment id) and of the release of Faker, so it is stored in the
trace. It is ASCII and exactly four bytes a token: what the embedded engine's tokenizer counts; another tokenizer counts
what it counts. Every text begins with names of its own, so that no two share a long prefix by accident.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from random import Random

from agentx.core import Layer, Segment, Session, Text
from agentx.errors import BadInput
from agentx.generator.realistic_kinds import KINDS, Kind
from agentx.generator.realistic_names import Names

WORD = 4  # bytes of a token of the embedded engine
EXTRA = "agentx-replay[realistic]"


def needed() -> str:
    """The release of Faker that is installed. Raises BadInput when there is none."""
    try:
        import faker
    except ImportError:
        raise BadInput(
            "content: realistic needs Faker, which is not installed", hint=f"pip install '{EXTRA}'"
        ) from None
    return str(faker.VERSION)


class Dresser:
    """Gives the segments of a trace's sessions their text; those of the file get theirs once."""

    def __init__(self, seed: int) -> None:
        needed()
        self._seed = seed
        self._names = names()
        self._shared: dict[int, Segment] = {}

    def session(self, session: Session) -> Session:
        """The session with text in all segments that it uses."""
        used = {piece.segment for turn in session.turns for piece in turn.prompt.append}
        for id in used & session.shared.keys() - session.segments.keys() - self._shared.keys():
            self._shared[id] = self._dressed(session.shared[id], "file")
        own = {id: self._dressed(segment, session.id) for id, segment in session.segments.items()}
        return replace(session, segments=own, shared=_Overlay(self._shared, session.shared))

    def _dressed(self, segment: Segment, place: str) -> Segment:
        return replace(segment, content=Text(text(self._names, self._seed, place, segment)))


class _Overlay(Mapping[int, Segment]):
    """The file's segments: dressed ones in front of those that nobody has used."""

    def __init__(self, dressed: Mapping[int, Segment], plain: Mapping[int, Segment]) -> None:
        self._dressed, self._plain = dressed, plain

    def __getitem__(self, id: int) -> Segment:
        found = self._dressed.get(id)
        return found if found is not None else self._plain[id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._plain)

    def __len__(self) -> int:
        return len(self._plain)


@lru_cache(maxsize=1)
def names() -> Names:
    """The names, words and addresses of this process, the same in every one."""
    return Names()


def text(names: Names, seed: int, place: str, segment: Segment) -> str:
    """The text of one segment, `4 * segment.tokens` bytes of ASCII."""
    key = hashlib.blake2b(f"{seed}/{place}/{segment.id}".encode(), digest_size=16).digest()
    rng = Random(int.from_bytes(key, "big"))
    parts, size, wanted = [], 0, WORD * segment.tokens
    while size < wanted:
        for line in _document(names, rng, segment.layer):
            part = line.encode("ascii", "ignore") + b"\n"
            parts.append(part)
            size += len(part)
            if size >= wanted:
                break
    return b"".join(parts)[:wanted].decode("ascii")


def _document(names: Names, rng: Random, layer: Layer) -> Iterator[str]:
    kinds: dict[Kind, int] = KINDS[layer]
    (kind,) = rng.choices(list(kinds), list(kinds.values()))
    return kind(names, rng)
