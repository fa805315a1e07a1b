"""Side calls: threads of their own beside the conversation."""

from __future__ import annotations

import pytest
from specs import EVERYTHING, FIXED, layers, made, of_thread, one

from agentx.generator.sessions import sessions

TITLE = "{at: start, system: 30, prompt: 90, reply: 8, model: small}"


def test_a_call_of_its_own_context_goes_out_with_the_opening() -> None:
    session = one(f"side_calls={{title: {TITLE}}}")
    side, opening = session.turns[:2]
    assert (side.thread, side.isl, side.output.tokens, side.model, side.after) == (1, 120, 8, "small", ())
    assert layers(session, 0) == ["system", "user"]
    assert (opening.thread, opening.after, opening.isl) == (0, (), 230)
    assert (session.threads[1].kind, session.threads[1].type, session.threads[1].parent) == ("side", "title", 0)


def test_a_call_on_the_whole_context_keeps_it() -> None:
    session = one("side_calls={topic: {at: message, context: whole, prompt: 15, reply: 3}}")
    side = of_thread(session, 1)[0]
    main = session.turns[side.index + 1]
    assert (side.prompt.base, side.prompt.keep) == (main.prompt.base, main.prompt.keep) == (2, 7)
    assert side.isl == main.isl + 15
    assert layers(session, side.index) == [*layers(session, main.index), "user"]
    assert side.after == main.after == (2,)
    assert side.gap.seconds == main.gap.seconds == 30.0
    assert [turn.isl for turn in of_thread(session, 0)] == [turn.isl for turn in one().turns]


def test_the_conversation_may_wait() -> None:
    session = one("side_calls={topic: {at: message, prompt: 15, reply: 3, waits: true}}")
    side = of_thread(session, 1)[0]
    main = session.turns[side.index + 1]
    assert (side.gap.seconds, main.gap.seconds, main.after) == (30.0, 0.0, (2, side.index))


def test_a_share_of_the_occasions() -> None:
    spec = made(
        FIXED, "turns={user: 11, loop: 1}", "side_calls={topic: {at: message, share: 0.3, prompt: 9, reply: 3}}"
    )
    found = [len(session.threads) - 1 for session in sessions(spec, 0, 100)]
    assert sum(found) / 1000 == pytest.approx(0.3, abs=0.05)


def test_what_does_not_fit_is_not_made() -> None:
    session = one("context_limit=400", "side_calls={title: {at: start, prompt: 500, reply: 3}}")
    assert [thread.kind for thread in session.threads] == ["main"]


def test_two_sessions_share_a_side_calls_system_prompt() -> None:
    first, second = sessions(made(FIXED, f"side_calls={{title: {TITLE}}}"), 0, 2)
    assert first.pieces(0)[0] == second.pieces(0)[0]
    assert first.pieces(0)[0].segment in first.shared


def test_they_move_nothing_else() -> None:
    with_them, without = one(text=EVERYTHING, seed=3), one("side_calls={}", text=EVERYTHING, seed=3)
    assert [turn.output for turn in of_thread(with_them, 0)] == [turn.output for turn in of_thread(without, 0)]
