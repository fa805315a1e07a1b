"""Replies in later prompts: which piece is one, what of it, and equal names for equal beginnings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Piece
from agentx.wire.history import Generated, LiveReply, Replies, cut_runs, histories_of, introduced
from tests.making import linear, sessions

CUTS = [
    # piece, tokens that came, tokens asked for -> of the reply, recorded words behind
    (Piece(1, 0, 20), 20, 20, (0, 20), None),  # all of it
    (Piece(1, 8, 20), 20, 20, (8, 20), None),  # its end
    (Piece(1, 0, 20), 13, 20, (0, 13), None),  # it was shorter, and so is the prompt
    (Piece(1, 0, 20), 1, 1, (0, 1), Piece(1, 1, 20)),  # one token was asked for
    (Piece(1, 8, 20), 1, 1, (8, 8), Piece(1, 8, 20)),  # and it is not in this part
    (Piece(1, 15, 20), 13, 20, (15, 15), None),
]


@pytest.mark.parametrize(("piece", "tokens", "asked", "own", "behind"), CUTS)
def test_what_of_a_reply_stands_in_a_piece(piece, tokens, asked, own, behind):
    reply = LiveReply(asked, tokens, ids=tuple(range(tokens)))
    assert (reply.cut(piece)[:2], reply.cut(piece)[2]) == (own, behind)


def test_text_is_cut_by_its_share():
    reply = LiveReply(3, 3, text=" Abc Def Ghi")
    assert [reply.part(0, 3), reply.part(1, 3), reply.part(2, 2)] == [" Abc Def Ghi", " Def Ghi", ""]
    assert list(reply.words()) == [" Abc", " Def", " Ghi"]
    assert reply.digest != LiveReply(3, 3, text=" Abc Def Ghj").digest


def test_a_piece_is_a_reply_where_its_turn_waited_for_it():
    replies, session = Replies(), linear(3)
    replies.keep("p", 0, LiveReply(5, 5, ids=(1, 2, 3, 4, 5)))
    assert replies.in_place_of("p", session, 1, Piece(200, 0, 5)).ids == (1, 2, 3, 4, 5)
    assert replies.in_place_of("p", session, 0, Piece(200, 0, 5)) is None  # before it was there
    assert replies.in_place_of("p", session, 2, Piece(201, 0, 5)) is None  # not answered
    assert replies.in_place_of("p", session, 1, Piece(100, 0, 5)) is None  # not a reply
    assert replies.in_place_of("q", session, 1, Piece(200, 0, 5)) is None  # another play
    replies.forget("p")
    assert replies.in_place_of("p", session, 1, Piece(200, 0, 5)) is None


@given(sessions())
def test_pieces_with_their_turns_are_the_pieces(session):
    for turn in session.turns:
        assert [piece for _, piece in introduced(session, turn.index)] == session.pieces(turn.index)


@given(st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=12))
def test_equal_beginnings_have_equal_names(replies):
    names = Generated()
    named = [names.named(reply) for reply in replies]
    flat = [[(owner, at) for owner, start, stop in runs for at in range(start, stop)] for runs in named]
    for one, first in zip(replies, flat, strict=True):
        assert len(first) == len(one)
        for other, second in zip(replies, flat, strict=True):
            assert shared(one, other) == shared(first, second)


def shared(one, other):
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_runs_are_cut():
    assert cut_runs([(0, 0, 4), (3, 4, 9)], 2, 6) == [(0, 2, 4), (3, 4, 6)]
    assert cut_runs([(0, 0, 4)], 4, 4) == []


def test_which_go_together():
    assert histories_of("messages") == ("recorded", "live")
    assert histories_of("generate") == ("recorded", "live-ids")
