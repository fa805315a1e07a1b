"""Edits of a context: what a prompt still has of the one before."""

from __future__ import annotations

import pytest
from specs import FIXED, kept, layers, made, one

from agentx.core import Piece
from agentx.generator.sessions import sessions

STRIP = ("tokens.strip_reasoning=true", "tokens.reasoning=10")


def test_stripped_prompts_keep_only_the_visible_part_of_earlier_replies() -> None:
    session = one("turns={user: 2, loop: 2}", *STRIP)
    first, second, third = session.turns[:3]
    assert third.event is not None
    assert third.event.kind == "think_strip"
    replies = [piece for piece in session.pieces(2) if session.segment(piece.segment).layer == "assistant"]
    assert replies == [Piece(first.reply, 10, 40), Piece(second.reply, 10, 40)]
    assert (third.prompt.base, third.prompt.keep) == (1, 3)  # all in front of the first stripped reply
    assert third.isl == second.isl + 40 + 20 - 2 * 10
    assert session.pieces(3)[-2:][0] == Piece(third.reply, 0, 40)  # inside a tool loop thinking stays


def test_nothing_to_strip_is_no_event() -> None:
    session = one("tokens.strip_reasoning=true")
    assert [turn.event for turn in session.turns] == [None] * 9


def test_a_reply_that_is_all_reasoning_leaves_nothing() -> None:
    # A broken-off reply may have no visible part.
    session = one("turns={user: 2, loop: 1}", *STRIP, "aborts={share: 1, kept: 0.1}")
    assert session.turns[0].output.visible == 0
    assert session.turns[0].output.reasoning == 4
    assert layers(session, 1) == ["tools", "system", "user", "user"]


def test_a_reset_keeps_the_leading_layers() -> None:
    session = one("resets={share: 1}", "layers.repos={count: 1, tokens: 40}")
    third = session.turns[3]
    assert layers(session, 3) == ["tools", "system", "shared", "user"]
    assert (third.prompt.base, third.prompt.keep, third.isl) == (2, 3, 210)
    assert [turn.event.kind if turn.event else None for turn in session.turns] == [
        *[None] * 3,
        "reset",
        *[None] * 2,
        "reset",
        *[None] * 2,
    ]


def test_a_pull_back_loses_the_end_and_goes_on() -> None:
    session = one("turns={user: 1, loop: 3}", "pull_backs={share: 1, lost: 0.25}")
    # Turn 1 stands on 230 + 30 = 260 tokens, of which 65 are lost: the reply and 35 of the message.
    second = session.turns[1]
    assert kept(session, second) == 150
    assert session.pieces(1)[2] == Piece(session.pieces(0)[2].segment, 0, 45)
    assert layers(session, 1) == ["tools", "system", "user", "tool_result"]
    assert second.isl == 195 + 60


def test_a_rewritten_pull_back_has_the_same_length() -> None:
    session = one("turns={user: 1, loop: 3}", "pull_backs={share: 1, lost: 0.25, rewritten: 1}")
    assert [turn.isl for turn in session.turns] == [230, 320, 410]
    assert layers(session, 1) == ["tools", "system", "user", "user", "tool_result"]


def test_leading_layers_are_never_pulled_back() -> None:
    session = one("turns={user: 1, loop: 2}", "pull_backs={share: 1, lost: 1}")
    assert layers(session, 1) == ["tools", "system", "tool_result"]


def test_the_share_is_that_of_the_tool_steps() -> None:
    spec = made(FIXED, "turns={user: 2, loop: 20}", "pull_backs={share: 0.1, lost: 0.2}")
    steps = [
        (kept(session, turn), session.turns[turn.index - 1])
        for session in sessions(spec, 0, 60)
        for turn in session.turns
        if turn.gap.kind == "tool"
    ]
    cut = [before for tokens, before in steps if tokens < before.isl]
    assert len(cut) / len(steps) == pytest.approx(0.1, abs=0.03)
