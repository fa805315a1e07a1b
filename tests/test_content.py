"""Content: a pure function of (stream, salt); any stretch equals the whole's; text and ids agree."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import linear

from agentx.content import CHUNK, Encoder, WordList, embedded_ids, lexicon
from agentx.core import Opaque, OpaqueRun, Piece, Segment, Session, Stream, Text, TokenIds
from agentx.errors import BadInput

WORDS = WordList(lexicon())
STREAM = Stream("scope", "segment", 7)


def plain(layer: str) -> str:
    return "salt"


def text(stream: Stream = STREAM, salt: str = "salt", start: int = 0, stop: int = 50) -> str:
    return b"".join(Encoder(WORDS).text(stream, salt, start, stop)).decode()


@given(st.integers(0, 3 * CHUNK), st.integers(1, 2 * CHUNK))
def test_any_stretch_is_that_of_the_endless_stream(start: int, tokens: int) -> None:
    whole = text(stop=5 * CHUNK)
    assert text(start=start, stop=start + tokens) == whole[4 * start : 4 * (start + tokens)]


def test_the_stream_is_the_same_for_ever() -> None:
    """Golden: runs that were recorded must be recomputable by every later version on every machine."""
    assert text(stop=8) == text(stop=8, salt="salt")
    digest = hashlib.sha256(text(stop=100_000).encode()).hexdigest()
    assert digest == "4880b355152d527ed031974c0f1ed3bf35c6635845c8da4bbb9d098dfcbce5c9"


def test_another_process_makes_the_same_content() -> None:
    code = (
        "from agentx.content import *; from agentx.core import Stream;"
        "print(b''.join(Encoder(WordList(lexicon())).text(Stream('scope','segment',7),'salt',0,50)).decode(),end='')"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert made == text()


@pytest.mark.parametrize(
    "other",
    [
        {"salt": "other"},  # another run
        {"stream": Stream("scope2", "segment", 7)},  # another file
        {"stream": Stream("scope", "segment", 8)},  # another segment
        {"stream": Stream("scope", "blocks", 7)},  # a block stream
    ],
)
def test_another_key_is_another_stream(other: dict[str, object]) -> None:
    words, others = text(stop=2000).split(), text(stop=2000, **other).split()  # type: ignore[arg-type]
    same = sum(mine == its for mine, its in zip(words, others, strict=True))
    assert same < 20  # 2000 / 1161 are expected to agree by chance


def test_huge_positions_need_nothing_before_them() -> None:
    far = (1 << 64) * 512
    assert len(text(start=far, stop=far + 10)) == 40


@given(st.integers(0, CHUNK + 50), st.integers(1, 300))
def test_ids_are_those_of_the_text(start: int, tokens: int) -> None:
    encoder = Encoder(WORDS)
    ids = json.loads(b"[" + b"".join(encoder.ids(STREAM, "salt", start, start + tokens))[:-1] + b"]")
    assert ids == embedded_ids(b"".join(encoder.text(STREAM, "salt", start, start + tokens)).decode())


def test_ids_of_a_target_are_slices_too() -> None:
    """Ids of different lengths: every word keeps its own width."""
    words = WordList((" aaa", " bbb", " ccc"), (7, 12345, 99))
    encoder = Encoder(words)
    spoken = b"".join(encoder.text(STREAM, "", 3, 40)).decode()
    ids = json.loads(b"[" + b"".join(encoder.ids(STREAM, "", 3, 40))[:-1] + b"]")
    assert ids == [{" aaa": 7, " bbb": 12345, " ccc": 99}[spoken[at : at + 4]] for at in range(0, len(spoken), 4)]


def test_the_lexicon_is_json_safe_and_one_token_a_word() -> None:
    assert len(lexicon()) == 1161
    assert json.dumps("".join(lexicon()))[1:-1] == "".join(lexicon())
    assert len(embedded_ids("".join(lexicon()))) == 1161
    assert len(set(WORDS.token_ids)) == 1161


@pytest.mark.parametrize(
    ("words", "ids", "message"),
    [
        ((" ab", " abc"), None, "not ' ab'"),  # three bytes
        ((" ab\\", " abc"), None, "words of a space"),  # needs escaping in JSON
        ((" aé", " abc"), None, "."),  # four bytes, but not a word of three letters: printable, allowed
        ((" abc",), None, "needs 2 to"),
        ((" abc", " abd"), (1,), "has 1 ids"),
    ],
)
def test_word_lists_that_cannot_be_used(words: tuple[str, ...], ids: tuple[int, ...] | None, message: str) -> None:
    if message == ".":
        assert WordList(words).token_ids
        return
    with pytest.raises(BadInput, match=message):
        WordList(words, ids)


def test_a_small_cache_changes_nothing_but_memory() -> None:
    small, large = Encoder(WORDS, cache_bytes=1), Encoder(WORDS)
    for start in (0, CHUNK, 0, 3 * CHUNK, 10):
        assert b"".join(small.text(STREAM, "s", start, start + 99)) == b"".join(
            large.text(STREAM, "s", start, start + 99)
        )
    assert len(small._chunks) == 1


def test_pieces_of_every_kind() -> None:
    own = {
        1: Segment(1, "user", 12, Opaque(8, (OpaqueRun(3, 2, 7), OpaqueRun(9, 0, 5)))),
        2: Segment(2, "user", 3, Text('say "é"\n')),
        3: Segment(3, "user", 4, TokenIds((5, 6, 7, 8))),
    }
    session = Session("s", (), segments=own, scope="f", blocks_scope="f")
    encoder = Encoder(WORDS)
    blocks = Stream("f", "blocks", 8)
    expected = text(blocks, start=28, stop=33) + text(blocks, start=72, stop=75)
    assert b"".join(encoder.piece_text(session, Piece(1, 2, 10), plain)).decode() == expected
    assert json.loads(b'"' + b"".join(encoder.piece_text(session, Piece(2, 0, 3), plain)) + b'"') == 'say "é"\n'
    assert b"".join(encoder.piece_text(session, Piece(2, 0, 1), plain)) == b"say "
    assert b"".join(encoder.piece_ids(session, Piece(3, 1, 3), plain)) == b"6,7,"
    assert b"".join(encoder.piece_ids(session, Piece(2, 0, 1), plain)) == f"{embedded_ids('say ')[0]},".encode()
    with pytest.raises(BadInput, match="token ids, which a text wire cannot send"):
        encoder.piece_text(session, Piece(3, 0, 4), plain)
    with pytest.raises(BadInput, match="text, which an id wire cannot send"):
        Encoder(WordList((" aaa", " bbb"), (1, 2))).piece_ids(session, Piece(2, 0, 3), plain)


def test_salting_is_asked_for_each_layer() -> None:
    session = linear(2)
    encoder = Encoder(WORDS)
    pieces = session.pieces(1)
    one = [b"".join(encoder.piece_text(session, piece, lambda layer: f"1{layer == 'user'}")) for piece in pieces]
    two = [b"".join(encoder.piece_text(session, piece, lambda layer: "1False")) for piece in pieces]
    assert [a == b for a, b in zip(one, two, strict=True)] == [True, True, False, True, True]
