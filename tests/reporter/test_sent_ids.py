"""Ids as they were sent: against the client's own bytes. Whole prompts on an engine: test_losses_measured.py."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from making import linear

from agentx.content import Encoder, WordList, lexicon
from agentx.core import Piece, Segment, Text, TokenIds
from agentx.reporter.sent_ids import SentIds, Unknowable, embedded, joined, words_of
from agentx.reuse import unsalted
from agentx.reuse_template import PLAIN
from agentx.wire.history import introduced

WORDS = WordList((" one", " two", " six"), (101, 202, 303))


def read(data: bytes) -> list[int]:
    return np.frombuffer(data, dtype="<u4").tolist()


def sent(session, turn, words=WORDS) -> list[int]:
    encoder = Encoder(words)
    parts = [part for _, piece in introduced(session, turn) for part in encoder.piece_ids(session, piece, unsalted)]
    return json.loads(b"[" + b"".join(parts).rstrip(b",") + b"]")


def test_an_id_wire_by_its_own_bytes() -> None:
    session = linear(4)
    made = SentIds(WORDS, PLAIN)
    for turn in range(4):
        assert read(made.prompt(session, turn, unsalted)) == sent(session, turn)


@pytest.mark.parametrize("content", [TokenIds((7, 8, 9, 10)), Text("four little words.")])
def test_literal_content(content) -> None:
    plain = linear(2)
    count = 4 if isinstance(content, TokenIds) else 5
    segments = {**plain.segments, 100: Segment(100, "user", count, content)}
    first = plain.turns[0]
    cut = replace(first.prompt, append=(*first.prompt.append[:2], Piece(100, 0, count)))
    session = replace(plain, segments=segments, turns=(replace(first, prompt=cut, isl=65 + count),))
    words = WORDS if isinstance(content, TokenIds) else WordList(lexicon())
    made = SentIds(words, PLAIN, text=True)
    assert read(made.prompt(session, 0, unsalted)) == sent(session, 0, words)
    if isinstance(content, Text):
        with pytest.raises(Unknowable, match="literal text"):
            SentIds(words, PLAIN).prompt(session, 0, unsalted)


@pytest.mark.parametrize(
    ("settings", "known", "ids"),
    [
        ({"words": "lexicon", "template": {}, "plan": {"wire": "chat"}}, True, WordList(lexicon()).token_ids),
        ({"words": "lexicon", "plan": {"wire": "generate"}}, True, WordList(lexicon()).token_ids),  # else it has ids
        ({"words": {"words": [" one", " two"], "ids": [5, 6]}, "plan": {"wire": "generate"}}, False, (5, 6)),
        ({"words": {"words": [" one", " two"], "ids": [5, 6]}, "plan": {"wire": "chat"}}, False, (5, 6)),
        ({"words": "lexicon", "plan": {"wire": "chat"}}, False, None),  # a server without /tokenize
    ],
)
def test_what_the_run_folder_tells(run, settings, known, ids) -> None:
    made = run(settings=settings)
    assert embedded(made) is known
    if ids is None:
        with pytest.raises(Unknowable, match="did not tell the token ids"):
            words_of(made)
    else:
        assert words_of(made).token_ids == tuple(ids)


def test_nothing_joined_is_empty() -> None:
    assert joined([]).tolist() == []
    assert joined([np.array([1], dtype=np.uint32), np.array([2], dtype=np.uint32)]).tolist() == [1, 2]
