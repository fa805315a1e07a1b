"""Subagents: their own context, shared by type; started by a reply and joined by the next turn of the line."""

from __future__ import annotations

import pytest
from specs import FIXED, layers, made, of_thread, one

from agentx.errors import BadInput
from agentx.generator.sessions import sessions

TWO = (
    "turns={user: 1, loop: 2}",
    "subagents={share: 1, count: 2, types: {Explore: {weight: 1, prompt: 40, turns: 2, report: 55}}}",
    "subagents.types.Explore.tools=60",
    "subagents.types.Explore.system=20",
)


def test_a_reply_starts_them_and_the_next_turn_waits_for_all() -> None:
    session = one(*TWO)
    assert [(turn.thread, turn.after, turn.gap.kind) for turn in session.turns] == [
        (0, (), "unknown"),
        (1, (0,), "spawn"),
        (1, (1,), "tool"),
        (2, (0,), "spawn"),
        (2, (3,), "tool"),
        (0, (0, 2, 4), "tool"),
    ]
    assert [(thread.id, thread.parent, thread.kind, thread.type) for thread in session.threads] == [
        (0, None, "main", None),
        (1, 0, "subagent", "Explore"),
        (2, 0, "subagent", "Explore"),
    ]
    assert [(tool.name, tool.seconds) for tool in session.turns[5].tools] == [("Explore", None)] * 2


def test_serial_ones_wait_for_each_other() -> None:
    session = one(*TWO, "subagents.run=serial")
    assert [turn.after for turn in session.turns] == [(), (0,), (1,), (2,), (3,), (0, 2, 4)]


def test_context_and_report() -> None:
    session = one(*TWO)
    assert layers(session, 1) == ["tools", "system", "user"]
    assert layers(session, 2) == ["tools", "system", "user", "assistant", "tool_result"]
    assert [turn.isl for turn in of_thread(session, 1)] == [120, 120 + 30 + 60]
    assert [turn.output.tokens for turn in of_thread(session, 1)] == [30, 55]
    assert layers(session, 5) == ["tools", "system", "user", "assistant", "tool_result", "tool_result"]
    assert session.turns[5].isl == 230 + 30 + 2 * 55


def test_a_type_shares_its_leading_layers_across_sessions() -> None:
    first, second = sessions(made(FIXED, *TWO), 0, 2)
    own = [piece.segment for piece in first.pieces(1)][:2]
    assert own == [piece.segment for piece in second.pieces(1)][:2]
    assert set(own) < set(first.shared)
    assert first.pieces(1)[2].segment in first.segments


NESTED = (
    "turns={user: 1, loop: 2}",
    "subagents={share: 1, depth: 3, types: {deep: {weight: 1, prompt: 10, turns: 2, report: 5, spawns: 1}}}",
)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depth_ends_the_nesting(depth: int) -> None:
    session = one(*NESTED, f"subagents.depth={depth}")
    assert [thread.parent for thread in session.threads] == [None, *range(depth)]
    assert len(session.turns) == 2 * (depth + 1)


def test_a_type_has_its_own_numbers_or_the_conversations() -> None:
    own = "{weight: 1, prompt: 40, turns: 2, report: 55, tool_result: 7, reply: 9, reasoning: 3, parallel: 2, model: m}"
    session = one("turns={user: 1, loop: 2}", f"subagents={{share: 1, types: {{x: {own}}}}}")
    first, second = of_thread(session, 1)
    assert (first.output.visible, first.output.reasoning, first.model) == (9, 3, "m")
    assert second.isl - first.isl == 9 + 3 + 2 * 7
    assert len(second.tools) == 2
    assert session.turns[0].model is None


def test_a_full_context_ends_a_subagent_early_and_its_parent_goes_on() -> None:
    text = "subagents={share: 1, types: {x: {weight: 1, prompt: 99999999, turns: 5, report: 55}}}"
    session = one("turns={user: 1, loop: 2}", "context_limit=1000", text)
    assert [(turn.isl, turn.output.tokens) for turn in of_thread(session, 1)] == [(999, 1)]
    assert session.turns[-1].thread == 0


def test_another_subagent_moves_no_draw_of_the_line() -> None:
    vary = "tokens.reply={lognormal: {median: 30, sigma: 1}}"
    few, more = one(*TWO, vary, "subagents.count=1"), one(*TWO, vary, "subagents.count=3")
    assert [turn.output for turn in of_thread(few, 0)] == [turn.output for turn in of_thread(more, 0)]
    assert [turn.output for turn in of_thread(few, 1)] == [turn.output for turn in of_thread(more, 1)]


def test_absurdly_many_are_refused() -> None:
    with pytest.raises(BadInput, match="a reply starts 5000 subagents, the limit is 1024"):
        one(*TWO, "subagents.count=5000")
