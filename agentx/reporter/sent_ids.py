"""The token ids of a run's prompts as the server saw them, where they are known.

The words of a run and their ids are in its folder, so whatever went over an id wire is known, and so is all that the
embedded engine makes of messages: role markers, and the JSON of definitions and calls in tokens of four bytes. Of
another server's chat template the ids are not known beforehand: `learnt_template.py` learns them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from agentx.content import CHUNK, Salting, WordList, embedded_ids, lexicon, numbers
from agentx.core import Session, Stream, Text, TokenIds
from agentx.engine.tokenizer import MARKERS
from agentx.errors import BadInput
from agentx.reporter.losses_shadow import StandIns
from agentx.results import RunResults
from agentx.reuse_template import Template
from agentx.wire.history import TEXT_WIRES
from agentx.wire.messages import Shape

Ids = npt.NDArray[np.uint32]


class Unknowable(BadInput):
    """Why the ids of a run's prompts are not known."""


def words_of(run: RunResults) -> WordList:
    """The words of a run with their ids. Raises Unknowable where the server could not tell them."""
    words = run.settings.get("words")
    if isinstance(words, dict):
        return WordList(tuple(words["words"]), tuple(words["ids"]))
    if not embedded(run):
        raise Unknowable("the server did not tell the token ids of the words that were sent")
    return WordList(lexicon())


def embedded(run: RunResults) -> bool:
    """Whether the embedded engine answered: only its template is known, and only to it ids go in words' own bytes."""
    if run.settings.get("template") is not None:
        return True
    return run.settings["plan"]["wire"] not in TEXT_WIRES and not isinstance(run.settings.get("words"), dict)


class SentIds(StandIns):
    """Prompts as bytes, four for each token: its real id, little-endian."""

    def __init__(self, words: WordList, template: Template, shape: Shape = "plain", *, text: bool = False) -> None:
        super().__init__(template, shape)
        self._table = np.array(words.token_ids, dtype=np.uint32)
        self._text = text  # literal text is in the embedded engine's tokens
        self._literal: dict[Stream, Ids] = {}
        self._seen: set[str] = set()
        self._chunks: dict[tuple[Stream, str, int], Ids] = {}

    def prompt(self, session: Session, turn: int, salts: Salting) -> bytes:
        """The ids of a turn as it is sent with recorded history. Raises Unknowable."""
        self.learn_literals(session)
        return super().prompt(session, turn, salts)

    def learn_literals(self, session: Session) -> None:
        """Streams of literal content are named by a digest of it: what they stand for is in the session."""
        if session.key in self._seen:
            return
        self._seen.add(session.key)
        for segments in (session.shared, session.segments):
            for segment in segments.values():
                if isinstance(segment.content, TokenIds):
                    self._literal[session.stream(segment)] = np.array(segment.content.ids, dtype=np.uint32)
                elif isinstance(segment.content, Text) and self._text:
                    ids = embedded_ids(segment.content.text)
                    self._literal[session.stream(segment)] = np.array(ids, dtype=np.uint32)

    def stretch(self, key: object, start: int, stop: int) -> bytes:
        """Tokens `start ... stop - 1` of a salted stream."""
        stream, salt = _salted(key)
        if stream.scope == "word":
            ids = np.array([stream.id], dtype=np.uint32)
        elif stream.scope.startswith("role:"):
            marker = MARKERS[stream.scope[len("role:") :]]
            ids = np.full(stop - start, int.from_bytes(marker, "little"), dtype=np.uint32)
        else:
            ids = self.content(stream, salt, start, stop)
        data: bytes = ids.astype("<u4").tobytes()
        return data

    def content(self, stream: Stream, salt: str, start: int, stop: int) -> Ids:
        """Literal content, or a stream's numbers as words, as ids. Raises Unknowable."""
        if stream.kind == "literal":
            if stream not in self._literal:
                raise Unknowable("the ids of literal text are not known")
            return self._literal[stream][start:stop]
        parts = [
            self._chunk(stream, salt, chunk)[max(start - chunk * CHUNK, 0) : min(stop - chunk * CHUNK, CHUNK)]
            for chunk in range(start // CHUNK, -(-stop // CHUNK))
        ]
        return joined(parts)

    def _chunk(self, stream: Stream, salt: str, chunk: int) -> Ids:
        key = stream, salt, chunk
        found = self._chunks.get(key)
        if found is None:
            if len(self._chunks) > 4096:  # 64 MB
                self._chunks.clear()
            found = self._chunks[key] = self._table[numbers(stream, salt, chunk) % np.uint32(len(self._table))]
        return found


def _salted(key: object) -> tuple[Stream, str]:
    stream, salt = key if isinstance(key, tuple) else (key, "")
    if not isinstance(stream, Stream):
        raise TypeError(f"no stream: {key!r}")
    return stream, str(salt)


def joined(parts: Iterable[Ids]) -> Ids:
    """One array of several."""
    kept = list(parts)
    return kept[0] if len(kept) == 1 else np.concatenate([np.empty(0, dtype=np.uint32), *kept])
