"""What the plots of a trace need is noted in one pass."""

from __future__ import annotations

from dataclasses import replace

from making import linear

from agentx.core import Gap, Observed, Session
from agentx.reporter.trace_drawing import LONGEST_PAUSE, MOST_CALLS, PER_TOKEN, STORIES, Drawing, story
from agentx.reuse import possible_by_turn


def drawn(*made: Session) -> Drawing:
    drawing = Drawing()
    for session in made:
        drawing.session(session)
    turns = list(possible_by_turn(made))
    for session in made:
        drawing.turns([turn for turn in turns if turn.session == session.key])
    return drawing


def test_prompts_are_kept_by_the_number_of_their_call() -> None:
    drawing = drawn(linear(4), linear(2, id="b"))
    assert [len(drawing.lengths[step]) for step in sorted(drawing.lengths)] == [2, 2, 2]  # calls 1, 2, and 3 to 4
    assert drawing.tokens[0] == [150, 65]  # the second session's tools and system prompt are known
    assert drawing.tokens[1][1] > drawing.tokens[0][1]


def test_a_call_lasts_as_it_did_or_by_its_reply_and_long_pauses_are_cut() -> None:
    made = linear(3)
    turns = (
        made.turns[0],
        replace(made.turns[1], observed=Observed(start=3.0, end=5.0)),
        replace(made.turns[2], gap=Gap("human", 9000.0)),
    )
    (line,) = story(replace(made, turns=turns)).lines
    calls = [bar for bar in line[1] if bar.kind == "call"]
    assert calls[0].end - calls[0].start == 5 * PER_TOKEN
    assert calls[1].end - calls[1].start == 2.0
    assert calls[2].start - calls[1].end == LONGEST_PAUSE
    assert [bar.kind for bar in line[1]] == ["call", "tool", "call", "human", "call"]


def test_what_is_drawn_is_bounded() -> None:
    drawing = drawn(*(linear(2, id=f"s{n}") for n in range(STORIES + 4)))
    assert len(drawing.stories) == STORIES
    assert story(linear(MOST_CALLS + 5)).left_out == 5
