"""Content: (stream, salt) -> an endless stream of numbers -> words -> bytes, the same on every machine.

A number is 16 bits of SHAKE-128 over (scope, kind, id, salt, position // CHUNK); it picks a word of the run's
word list by its remainder. Every word is three letters after a space: four bytes, and one token in the tokenizers
that the lexicon was tried on. So text and token ids agree, any stretch can be made without what lies before it,
and a prompt is joined from cached bytes and never serialised again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np
import numpy.typing as npt

from agentx.core import Layer, Piece, Run, Session, Stream, Text, TokenIds
from agentx.errors import BadInput

CHUNK = 4096  # tokens that are made at a time
WORD = 4  # bytes of a word: a space and three letters
MAX_WORDS = 1 << 16  # a number is 16 bits
DEFAULT_CACHE = 64 << 20  # bytes of encoded chunks that are kept

Salting = Callable[[Layer], str]  # the salt of a layer in one play


def numbers(stream: Stream, salt: str, chunk: int, count: int = CHUNK) -> npt.NDArray[np.uint16]:
    """The first `count` numbers, of 16 bits each, of chunk number `chunk` of a stream."""
    key = json.dumps([stream.scope, stream.kind, stream.id, salt, chunk]).encode()
    return np.frombuffer(hashlib.shake_128(key).digest(2 * count), dtype="<u2")


def lexicon() -> tuple[str, ...]:
    """The words that agentx ships, each with its leading space."""
    text = resources.files("agentx").joinpath("lexicon.txt").read_text(encoding="ascii")
    return tuple(" " + word for word in text.split())


@dataclass(frozen=True)
class WordList:
    """The words of one run and their token ids on its target.

    `ids` None means the embedded engine's rule: the little-endian number of the word's four bytes.
    Raises BadInput for words that are not four ASCII bytes, or too few or too many of them.
    """

    words: tuple[str, ...]
    ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        bad = next((word for word in self.words if len(word.encode()) != WORD or not word.isprintable()), None)
        if bad is not None or any(mark in word for word in self.words for mark in '"\\'):
            raise BadInput(f"a word list needs words of a space and three letters, not {bad!r}")
        if not 2 <= len(self.words) <= MAX_WORDS:
            raise BadInput(f"a word list needs 2 to {MAX_WORDS} words, not {len(self.words)}")
        if self.ids is not None and len(self.ids) != len(self.words):
            raise BadInput(f"a word list with {len(self.words)} words has {len(self.ids)} ids")

    @cached_property
    def token_ids(self) -> tuple[int, ...]:
        return self.ids or tuple(int.from_bytes(word.encode(), "little") for word in self.words)

    @cached_property
    def id_width(self) -> int:
        """Bytes of one id in JSON, its comma included: fixed, so that a stretch is a slice."""
        return max(len(str(id)) for id in self.token_ids) + 1

    @cached_property
    def text_table(self) -> npt.NDArray[np.bytes_]:
        return np.array([word.encode() for word in self.words], dtype=f"S{WORD}")

    @cached_property
    def id_table(self) -> npt.NDArray[np.bytes_]:
        """Each id right-aligned before a comma: JSON allows the spaces."""
        encoded = [f"{id:>{self.id_width - 1}},".encode() for id in self.token_ids]
        return np.array(encoded, dtype=f"S{self.id_width}")


class Encoder:
    """Turns streams into JSON-ready bytes, as text or as ids, keeping the most recently used chunks."""

    def __init__(self, words: WordList, cache_bytes: int = DEFAULT_CACHE) -> None:
        self.words = words
        self._limit = cache_bytes
        self._held = 0
        self._chunks: OrderedDict[tuple[Stream, str, int, bool], bytes] = OrderedDict()

    def text(self, stream: Stream, salt: str, start: int, stop: int) -> list[bytes]:
        """Tokens `start ... stop - 1` of a stream as parts of text, four bytes a token."""
        return self._stretch(stream, salt, start, stop, ids=False)

    def ids(self, stream: Stream, salt: str, start: int, stop: int) -> list[bytes]:
        """The same tokens as parts of a JSON list: every id is followed by a comma."""
        return self._stretch(stream, salt, start, stop, ids=True)

    def piece_text(self, session: Session, piece: Piece, salting: Salting) -> list[bytes]:
        """A piece as parts of a JSON string, without the quotes. Raises BadInput for literal token ids."""
        segment = session.segment(piece.segment)
        if isinstance(segment.content, TokenIds):
            raise BadInput(
                f"segment {segment.id} holds token ids, which a text wire cannot send", hint="wire: chat-ids"
            )
        if isinstance(segment.content, Text):
            return [json.dumps(_cut(segment.content.text, piece), ensure_ascii=False)[1:-1].encode()]
        return self._runs(session.piece_runs(piece), salting, ids=False)

    def piece_ids(self, session: Session, piece: Piece, salting: Salting) -> list[bytes]:
        """A piece as parts of a JSON list of ids. Raises BadInput for literal text on a target of unknown tokenizer."""
        segment = session.segment(piece.segment)
        if isinstance(segment.content, TokenIds):
            return [f"{id},".encode() for id in segment.content.ids[piece.start : piece.stop]]
        if isinstance(segment.content, Text):
            if self.words.ids is not None:
                raise BadInput(f"segment {segment.id} holds text, which an id wire cannot send", hint="wire: chat")
            return [f"{id},".encode() for id in embedded_ids(_cut(segment.content.text, piece))]
        return self._runs(session.piece_runs(piece), salting, ids=True)

    def _runs(self, runs: Sequence[Run], salting: Salting, *, ids: bool) -> list[bytes]:
        return [
            part for run in runs for part in self._stretch(run.stream, salting(run.layer), run.start, run.stop, ids=ids)
        ]

    def _stretch(self, stream: Stream, salt: str, start: int, stop: int, *, ids: bool) -> list[bytes]:
        width, parts = self._width(ids), []
        for chunk in range(start // CHUNK, (stop + CHUNK - 1) // CHUNK):
            low, high = max(start - chunk * CHUNK, 0), min(stop - chunk * CHUNK, CHUNK)
            encoded = self._chunk(stream, salt, chunk, ids, high)
            whole = len(encoded) == (high - low) * width
            parts.append(encoded if whole else encoded[low * width : high * width])
        return parts

    def _chunk(self, stream: Stream, salt: str, chunk: int, ids: bool, least: int) -> bytes:
        """The beginning of a chunk, `least` tokens of it or more: short segments are most, and cost what they are."""
        key = (stream, salt, chunk, ids)
        found = self._chunks.pop(key, b"")
        self._held -= len(found)
        encoded = found if len(found) >= least * self._width(ids) else self._encode(stream, salt, chunk, ids, least)
        self._chunks[key] = encoded
        self._held += len(encoded)
        while self._held > self._limit and len(self._chunks) > 1:
            self._held -= len(self._chunks.popitem(last=False)[1])
        return encoded

    def _encode(self, stream: Stream, salt: str, chunk: int, ids: bool, count: int) -> bytes:
        places = numbers(stream, salt, chunk, count) % np.uint32(len(self.words.words))
        # Four bytes are copied as one number: several times as fast as strings.
        encoded: bytes = (self.words.id_table if ids else self.words.text_table.view(np.uint32))[places].tobytes()
        return encoded

    def _width(self, ids: bool) -> int:
        return self.words.id_width if ids else WORD


def embedded_ids(text: str) -> list[int]:
    """The embedded engine's ids of a text: its UTF-8 bytes in fours, the last four filled up with spaces."""
    data = text.encode()
    data += b" " * (-len(data) % WORD)
    return [int.from_bytes(data[at : at + WORD], "little") for at in range(0, len(data), WORD)]


def _cut(text: str, piece: Piece) -> str:
    """A piece of literal text; a token is four bytes, a character that the cut would split is left out."""
    data = text.encode()
    return data[piece.start * WORD : piece.stop * WORD].decode(errors="ignore")
