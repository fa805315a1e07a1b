"""What happened between a call and the one before it."""

from __future__ import annotations

import pytest
from specs import FIXED, made

from agentx.core import Session
from agentx.generator.fit_steps import Context, Step, context, step
from agentx.generator.sessions import sessions


def steps(session: Session) -> list[Step]:
    """Of the main thread."""
    found: list[Step] = []
    latest: Context | None = None
    for turn in session.turns:
        if turn.thread == 0:
            now = context(session, turn, latest)
            found.append(step(session, latest, now))
            latest = now
    return found


def one(*sets: str) -> Session:
    return next(sessions(made(FIXED, *sets), 0, 1))


def test_a_conversation_that_only_grows() -> None:
    found = steps(one())
    assert [each.kind for each in found] == ["start", "tool", "tool", "human", "tool", "tool", "human", "tool", "tool"]
    assert {each.what for each in found} == {"grown"}
    assert [each.grown for each in found] == [230, 60, 60, 20, 60, 60, 20, 60, 60]
    assert {each.lost for each in found} == {0}


@pytest.mark.parametrize("rewritten", [0, 1])
def test_a_lost_end_is_measured_with_the_reply(rewritten: int) -> None:
    found = steps(one(f"pull_backs={{share: 1, lost: 0.5, rewritten: {rewritten}}}", "turns.user=1"))
    assert found[1].what == "pull_back"
    assert found[1].before == 260  # the prompt of 230, and the reply
    assert found[1].lost == found[1].before - found[1].kept
    assert found[1].grown - found[1].lost * rewritten == 60  # the tool result


def test_events_are_told_apart() -> None:
    compacted = steps(one("compaction={trigger: 300, summary: 50}"))
    assert "compaction" in {each.what for each in compacted}
    reset = steps(one("resets={share: 1}"))
    assert [each.what for each in reset if each.kind == "human"] == ["reset", "reset"]


def test_a_long_context_that_shrinks_without_an_event_was_compacted() -> None:
    from dataclasses import replace

    session = one("tokens.first_message=50000", "compaction={trigger: 50250, summary: 900}", "turns.user=1")
    silent = replace(session, turns=tuple(replace(turn, event=None) for turn in session.turns))
    assert [each.what for each in steps(silent)].count("compaction") == 1


def test_a_reply_of_unknown_content_is_inside_what_is_new() -> None:
    from dataclasses import replace

    session = one("turns={user: 1, loop: 2}")
    first, second = session.turns
    blind = replace(session, turns=(replace(first, reply=None), second))
    assert steps(blind)[1].grown == 60
