"""Prompts as chat messages, and where a conversation that only appends has to end."""

from __future__ import annotations

from pathlib import Path

from exporting import everything, linear, tokens

from agentx.core import Piece, Segment, Session, Text
from agentx.recorder.exports.messages import Texts, stretches


def test_leading_layers_join_and_every_token_is_four_bytes(tmp_path: Path) -> None:
    session = next(iter(linear(tmp_path)))
    messages = Texts().messages(session, session.pieces(1))
    assert [(m["role"], len(m["content"]) // 4) for m in messages] == [
        ("system", 150),
        ("user", 80),
        ("assistant", 30),
        ("user", 60),
    ]
    assert Texts().messages(session, session.pieces(0)[1:], first=False)[0]["role"] == "user"


def test_equal_tokens_are_equal_text_in_every_session(tmp_path: Path) -> None:
    first, second = list(linear(tmp_path))[:2]
    one, other = (Texts().messages(session, session.pieces(0)) for session in (first, second))
    assert one[0] == other[0]  # shared
    assert one[1] != other[1]  # their own


def test_literal_text_is_itself_and_may_hold_anything() -> None:
    text = 'say "hi"\n\\ \u2028 é'
    session = Session("s", (), segments={1: Segment(1, "user", 5, Text(text))})
    assert Texts().messages(session, [Piece(1, 0, 5)]) == [{"role": "user", "content": text}]


def test_no_piece_is_an_empty_message() -> None:
    assert Texts().messages(Session("s", ()), []) == [{"role": "user", "content": ""}]


def test_a_stretch_only_appends(tmp_path: Path) -> None:
    cuts = 0
    for session in everything(tmp_path):
        for thread in session.threads:
            turns = [turn for turn in session.turns if turn.thread == thread.id]
            parts = list(stretches(session, turns))
            assert [each.turn for part in parts for each in part] == turns
            cuts += max(0, len(parts) - 1)
            for part in parts:
                history: list = []
                for turn, pieces in part:
                    history += [
                        (r.stream, at) for p in pieces for r in session.piece_runs(p) for at in range(r.start, r.stop)
                    ]
                    assert history == tokens(session, turn.index)
                    history += [(r.stream, at) for r in session.reply_runs(turn.index) for at in range(r.start, r.stop)]
    assert cuts > 0
