"""The main line: what it opens with, aborts, models, documents and files."""

from __future__ import annotations

import pytest
from specs import FIXED, layers, made, one

from agentx.core import TurnEvent
from agentx.errors import BadInput
from agentx.generator.sessions import sessions


def test_the_opening_holds_what_the_spec_has_in_order() -> None:
    session = one(
        "layers.repos={count: 1, tokens: 40}",
        "layers.files={count: 2, tokens: 30}",
        "layers.documents={count: 1, tokens: 25}",
        "resumed={share: 1, tokens: 120}",
    )
    history = ["user", "assistant", "tool_result", "assistant"]
    opening = ["tools", "system", "shared", "shared", "user", "user", *history, "user"]
    assert layers(session, 0) == opening
    assert session.turns[0].isl == 150 + 40 + 25 + 2 * 30 + 120 + 80


def test_documents_stand_in_front_of_each_message_and_are_shared() -> None:
    spec = made(FIXED, "layers.documents={count: 4, tokens: 25, each: 2, zipf: 1}", "turns={user: 2, loop: 1}")
    one_session, other = sessions(spec, 0, 2)
    assert layers(one_session, 1)[-4:] == ["assistant", "shared", "shared", "user"]
    used = {piece.segment for piece in [*one_session.pieces(1), *other.pieces(1)]} & set(one_session.shared)
    assert used - {0, 1} <= {2, 3, 4, 5}


def test_files_are_the_sessions_own() -> None:
    first, second = sessions(made(FIXED, "layers.files={count: 2, tokens: 30}"), 0, 2)
    files = [piece.segment for piece in first.pieces(0)[2:4]]
    assert all(id in first.segments for id in files)
    assert first.runs(0)[2].stream != second.runs(0)[2].stream


def test_a_reply_may_depend_on_what_it_comes_after() -> None:
    session = one("tokens.reply={by_gap: {tool: 11, human: 40}}", "tokens.reasoning={by_gap: {tool: 0, human: 5}}")
    assert [turn.output.visible for turn in session.turns] == [40, 11, 11] * 3
    assert [turn.output.reasoning for turn in session.turns] == [5, 0, 0] * 3


def test_a_tool_class_may_have_its_own_results() -> None:
    session = one("gaps.tools.shell.result=7")
    assert session.turns[1].isl - session.turns[0].isl == 30 + 7


ABORTS = [
    # (share of the reply that had come, tokens of it, layers of the second prompt behind the first)
    (0, 0, ["user"]),
    (0.5, 15, ["assistant", "user"]),
    (1, 30, ["assistant", "user"]),
]


@pytest.mark.parametrize(("kept", "tokens", "behind"), ABORTS)
def test_an_abort_ends_the_loop_and_the_user_goes_on(kept: float, tokens: int, behind: list[str]) -> None:
    session = one(f"aborts={{share: 1, kept: {kept}}}")
    assert [turn.output.tokens for turn in session.turns] == [tokens] * 3
    assert {turn.event for turn in session.turns} == {TurnEvent("abort")}
    assert (session.turns[0].reply is None) == (tokens == 0)
    assert [turn.gap.kind for turn in session.turns] == ["unknown", "human", "human"]
    assert layers(session, 1)[3:] == behind


def test_a_share_of_the_calls_is_aborted() -> None:
    spec = made(FIXED, "turns={user: 20, loop: 2}", "aborts={share: 0.2}")
    turns = [turn for session in sessions(spec, 0, 50) for turn in session.turns]
    assert sum(turn.event is not None for turn in turns) / len(turns) == pytest.approx(0.2, abs=0.03)


def test_models_are_drawn_by_session_and_switched_at_messages() -> None:
    assert {turn.model for turn in one("models={weights: {a: 1}}").turns} == {"a"}
    session = one("turns={user: 4, loop: 2}", "models={weights: {a: 0.5, b: 0.5}, switch: 1}")
    models = [turn.model for turn in session.turns]
    assert models in ([*"aabbaabb"], [*"bbaabbaa"])
    assert [turn.event.kind if turn.event else "" for turn in session.turns] == ["", "", *["model_switch", ""] * 3]


def test_histories_end_where_the_context_does() -> None:
    session = one("context_limit=1000", "resumed={share: 1, tokens: 99999}", "turns.user=1")
    assert session.turns[0].isl == 999


def test_a_share_of_the_sessions_is_resumed() -> None:
    spec = made(FIXED, "resumed={share: 0.4, tokens: 500}", "turns={user: 1, loop: 1}")
    found = [session.turns[0].isl > 600 for session in sessions(spec, 0, 300)]
    assert sum(found) / 300 == pytest.approx(0.4, abs=0.08)


ABSURD = [
    ("turns.parallel=1000000", "a reply calls 1000000 tools, the limit is 1024 .give turns.parallel a max"),
    ("layers.files={count: 2000, tokens: 5}", "a session has 2000 files, the limit is 1024 .give layers.files.count a"),
    ("layers.documents={count: 2, tokens: 5, each: 1e9}", "a message has 1000000000 documents, the limit is 1024"),
]


@pytest.mark.parametrize(("override", "says"), ABSURD)
def test_absurd_numbers_are_refused(override: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        one(override)
