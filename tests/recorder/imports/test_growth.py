"""A context that grows, is cut and is sent: prompts resolve to what was appended."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Output, Session, Text, Turn
from agentx.recorder.imports.growth import Growth, tokens_of

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9)),
        st.tuples(st.just("cut"), st.integers(0, 30)),
        st.tuples(st.just("call"), st.just(0)),
    ),
    max_size=20,
)


@given(STEPS)
def test_every_prompt_is_what_was_appended_and_not_cut(steps: list[tuple[str, int]]) -> None:
    context, turns = Growth(), []
    plain: list[tuple[int, int]] = []  # the reference: (segment, position) of each token
    sent = []
    for what, value in steps:
        if what == "add":
            id = context.add("user", value)
            plain += [(id, at) for at in range(value)] if id is not None else []
        elif what == "cut":
            context.cut(value)
            plain = plain[:value]
        else:
            turns.append(Turn(len(turns), 0, context.prompt(len(turns)), context.tokens, Output(0)))
            sent.append(list(plain))
        assert context.tokens == len(plain)
    session = Session("s", tuple(turns), segments=context.segments)
    for index, want in enumerate(sent):
        assert [(p.segment, at) for p in session.pieces(index) for at in range(p.start, p.stop)] == want


def test_a_text_that_occurs_again_is_one_segment() -> None:
    context = Growth()
    assert [context.text("user", "a"), context.text("user", "b"), context.text("user", "a")] == [0, 1, 0]
    assert context.text("tool_result", "a") == 2  # another layer
    assert context.segments[0].content == Text("a")
    assert context.text("user", "") is None


def test_a_token_is_four_bytes() -> None:
    assert [tokens_of(text) for text in ("", "a", "abcd", "abcde", "ééé")] == [0, 1, 1, 2, 2]
