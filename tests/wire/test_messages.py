"""Which messages a prompt is sent as: plain ones, and those that call tools."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import linear, sessions, with_tools

from agentx.core import Piece, Prompt, Segment, Session, Tool
from agentx.wire.history import introduced
from agentx.wire.messages import BEHIND, Placed, arranged, counted


def session(*layers: str, tools: tuple[str, ...] = ()) -> Session:
    """One turn that brings a piece of each layer."""
    own = {id: Segment(id, layer, 10) for id, layer in enumerate(layers)}  # type: ignore[arg-type]
    turn = linear(1).turns[0]
    append = tuple(Piece(id, 0, 10) for id in own)
    named = tuple(map(Tool, tools))
    return Session("s", (replace(turn, prompt=Prompt(append), isl=10 * len(append), tools=named),), segments=own)


def told(made: list[Placed]) -> list[str]:
    """Each piece in short: its role, and the calls that it makes or answers."""
    short = []
    for one in made:
        role = "definition" if one.definition else one.role or "joins"
        calls = "".join(f" {call.name}" for call in one.calls)
        short.append(f"{role}{calls}" + (f" <{one.answers.name}" if one.answers else ""))
    return short


CASES = [
    # layers that a turn brings, and what they are sent as
    (["tools", "system", "shared", "user"], ["definition", "system", "joins", "user"]),
    (["tools", "tools", "user"], ["definition", "definition", "user"]),
    (["system", "tools", "user"], ["system", "joins", "user"]),  # only at the very front: nothing changes its place
    (["user", "tools"], ["user", "user"]),
    (["user", "assistant", "tool_result", "tool_result"], ["user", "assistant Read a_b", "tool <Read", "tool <a_b"]),
    (["assistant", "tool_result"] * 2, ["assistant Read", "tool <Read", "assistant a_b", "tool <a_b"]),
    (["reasoning", "tool_result"], ["assistant Read", "tool <Read"]),
    (["reasoning", "assistant", "tool_result"], ["assistant", "assistant Read", "tool <Read"]),
    (["user", "tool_result"], ["user", "user"]),  # a result of no call
    (["assistant", "user", "tool_result"], ["assistant", "user", "user"]),  # and one that does not follow its reply
    (["assistant"] + ["tool_result"] * 3, ["assistant Read a_b Bash", "tool <Read", "tool <a_b", "tool <Bash"]),
    (["tools"], ["system"]),  # a prompt needs a message
]


@pytest.mark.parametrize(("layers", "expected"), CASES)
def test_tool_shaped(layers: list[str], expected: list[str]) -> None:
    made = session(*layers, tools=("Read", "a.b"))
    assert told(arranged(made, introduced(made, 0), "tools")) == expected


def test_calls_and_answers_have_the_same_ids() -> None:
    made = with_tools(4)
    for turn in made.turns:
        places = arranged(made, introduced(made, turn.index), "tools")
        asked = [call for one in places for call in one.calls]
        answered = [one.answers for one in places if one.answers]
        assert asked == answered
        assert len({call.id for call in asked}) == len(asked) == 2 * turn.index
        assert all(len(call.id) == 9 and call.id.isalnum() for call in asked)


def test_a_prompt_without_tools_has_a_bare_definition() -> None:
    first, second = arranged(one := session("system", "user"), introduced(one, 0), "tools")
    assert (first.bare, second.bare) == (True, False)
    assert counted(one, introduced(one, 0), "tools") == (2, (), (), True)


@given(sessions(), st.sampled_from(["plain", "tools"]))
def test_what_is_kept_stays_as_it_is(made: Session, shape: str) -> None:
    """The messages of a turn are the first ones of a turn that keeps all of its prompt and leads with the same."""
    for turn in made.turns:
        prompt, whole = turn.prompt, introduced(made, turn.index)
        places = arranged(made, whole, shape)  # type: ignore[arg-type]
        if prompt.base is None or prompt.keep < 1:
            continue
        earlier = arranged(made, introduced(made, prompt.base), shape)[: prompt.keep]  # type: ignore[arg-type]
        if earlier and not earlier[-1].leading:
            assert places[: prompt.keep] == earlier
            fresh = [(turn.index, piece) for piece in prompt.append]
            more = arranged(made, fresh, shape, start=prompt.keep, before=BEHIND)  # type: ignore[arg-type]
            assert places[prompt.keep :] == more
