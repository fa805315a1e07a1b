"""Compaction: when it happens, what stays, and what the turn says of it."""

from __future__ import annotations

import pytest
from specs import FIXED, layers, made, one

from agentx.core import TurnEvent
from agentx.generator.sessions import sessions

RULES = "compaction={trigger: 400, summary: 100}"


def test_the_turn_after_the_trigger_begins_with_kept_layers_and_a_summary() -> None:
    # Prompts of 230, 320, 410: the third has reached the trigger.
    session = one("turns={user: 1, loop: 5}", RULES)
    assert [turn.isl for turn in session.turns] == [230, 320, 250, 340, 250]
    assert [turn.event for turn in session.turns] == [
        None,
        None,
        TurnEvent("compaction", 410, 150, 100),
        None,
        TurnEvent("compaction", 430, 150, 100),
    ]
    assert layers(session, 2) == ["tools", "system", "summary"]
    assert (session.turns[2].prompt.base, session.turns[2].prompt.keep) == (1, 2)
    assert layers(session, 3) == ["tools", "system", "summary", "assistant", "tool_result"]


KEEP = [
    # (kept layers, layers of the prompt, the base that it keeps pieces of)
    ("[tools, system]", ["tools", "system", "summary"], 1),
    ("[tools, system, shared]", ["tools", "system", "shared", "summary"], 1),
    ("[tools]", ["tools", "summary"], 1),
    ("[shared]", ["shared", "summary"], None),  # what is kept does not stand in front
    ("[]", ["summary"], None),
]


@pytest.mark.parametrize(("keep", "found", "base"), KEEP)
def test_kept_layers(keep: str, found: list[str], base: int | None) -> None:
    repos = "layers.repos={count: 1, tokens: 40}"
    session = one("turns={user: 1, loop: 3}", repos, RULES, f"compaction.keep={keep}")
    assert layers(session, 2) == found
    assert session.turns[2].prompt.base == base


def test_a_share_of_the_sessions_compacts() -> None:
    spec = made(FIXED, "turns={user: 1, loop: 5}", RULES, "compaction.share=0.25")
    found = [any(turn.event for turn in session.turns) for session in sessions(spec, 0, 400)]
    assert sum(found) / len(found) == pytest.approx(0.25, abs=0.06)


def test_a_summary_that_would_not_shrink_the_context_is_not_made() -> None:
    long = "compaction={trigger: 400, summary: {mixture: [{weight: 0.6, fixed: 10}, {weight: 0.4, fixed: 5000}]}}"
    spec = made(FIXED, "turns={user: 1, loop: 6}", long)
    events = [turn.event for session in sessions(spec, 0, 50) for turn in session.turns if turn.event]
    assert events
    assert {event.summary for event in events} == {10}


def test_a_call_of_its_own_writes_the_summary() -> None:
    side = "side_calls={summary: {at: compaction, context: whole, prompt: 15, reply: 120, waits: true}}"
    session = one("turns={user: 1, loop: 3}", RULES, side)
    writing, after = session.turns[2], session.turns[3]
    assert (writing.thread, writing.isl, writing.after, writing.gap.seconds) == (1, 410 + 15, (1,), 2.0)
    assert (after.thread, after.isl, after.after, after.gap.kind, after.gap.seconds) == (0, 250, (1, 2), "spawn", 0.0)
    assert after.event == TurnEvent("compaction", 410, 150, 100)
