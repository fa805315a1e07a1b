"""Links, threads and sessions from small calls written as letters: an item a letter, replies in capitals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.attempts import Attempt, Items, Turn
from agentx.recorder.canonical import Item, ToolCall
from agentx.recorder.identity import Said
from agentx.recorder.keys import CaptureKey
from agentx.recorder.lineage import link, sessions
from agentx.recorder.replies import Reply


class Call(NamedTuple):
    """`prompt`: s is system, capitals are assistant's, digits answer the call of that digit, the rest is user's."""

    at: float
    prompt: str
    reply: str = ""
    session: str | None = None
    agent: str | None = None
    parent: str | None = None
    emits: str = ""
    took: float = 1.0


def item(letter: str) -> Item:
    layer: Any = (
        "system"
        if letter == "s"
        else "assistant"
        if letter.isupper()
        else "tool_result"
        if letter.isdigit()
        else "user"
    )
    return Item(layer, letter.encode(), 1, (f"the text of {letter}",), answers=(letter,) if letter.isdigit() else ())


def linked(calls: Sequence[Call]) -> Any:
    items = Items(CaptureKey(b"k" * 32), keep_texts=False)
    turns, identities = [], []
    for call in calls:
        opened = round(call.at * 1e9)
        numbers = items.numbers(item(letter) for letter in call.prompt)
        # A call whose name is a letter has that letter's text among its arguments.
        emitted = tuple(ToolCall(c, "Task", (items.text(f"the text of {c}").hex(),)) for c in call.emits)
        reply = Reply(True, calls=emitted)
        attempt = Attempt(
            (opened, 1, opened), "chat", "c", {}, (), None, 0, "m", numbers, frozenset(), None, {}, reply,
            items.numbers(item(letter) for letter in call.reply), opened + round(call.took * 1e9), "done", 200,
        )  # fmt: skip
        turns.append(Turn([attempt], numbers))
        identities.append(Said(call.session, call.agent, call.parent, "rule" if call.session else None))
    return link(turns, identities, items)


def plan(calls: Sequence[Call]) -> list[list[tuple[str, list[int]]]]:
    """Per session, per thread: its kind and its calls' numbers."""
    return [[(line.kind, [turn.index for turn in line.turns]) for line in kin.lines] for kin in sessions(linked(calls))]


@pytest.mark.parametrize(
    ("calls", "links"),
    [
        ([Call(0, "sa", "A"), Call(5, "saAb", "B"), Call(9, "saAbBc")], [None, 0, 1]),
        ([Call(0, "sa", "A"), Call(5, "saXb")], [None, None]),  # another reply, no id: another conversation
        ([Call(0, "sa", "A"), Call(5, "saXb"), Call(9, "saXbYc")], [None, None, 1]),
        ([Call(0, "sa", "A", "S"), Call(5, "saXb", "", "S")], [None, 0]),  # the client says that it is one
        ([Call(0, "sa", "A", emits="1"), Call(5, "ta1")], [None, 0]),  # another system text, but the call's result
        (  # two conversations at one time, whose server counts its calls from 0: each goes on from its own
            [
                Call(0, "sa", "A", emits="0"),
                Call(1, "sb", "B", emits="0"),
                Call(5, "saA0", "C", emits="1"),
                Call(6, "sbB0", "D", emits="1"),
                Call(9, "saA0C1", "E"),
                Call(10, "sbB0D1", "F"),
            ],
            [None, None, 0, 1, 2, 3],
        ),
        (  # each call of a conversation has the same name: the last one counts
            [Call(0, "sa", "A", emits="0"), Call(5, "saA0", "C", emits="0"), Call(9, "saA0C0", "E")],
            [None, 0, 1],
        ),
        (  # a name that two emitted, in a conversation that neither had: unknown
            [Call(0, "sa", "A", emits="0"), Call(1, "sb", "B", emits="0"), Call(5, "scX0", "D")],
            [None, None, None],
        ),
        ([Call(0, "sa", "A", took=9), Call(5, "saAb")], [None, None]),  # it was still running
        ([Call(0, "saAb", "B"), Call(5, "saAc", "C")], [None, 0]),  # a rewind: an assistant's message in common
        ([Call(0, "sa", "A"), Call(5, "sa", "A")], [None, None]),  # equal openings
        ([Call(0, "sa", "A", "S"), Call(5, "sz", "", "S")], [None, 0]),  # after a compaction
        ([Call(0, "sa", "A", "S"), Call(5, "tz", "", "S")], [None, None]),  # a side call with its own system text
    ],
)
def test_links(calls: list[Call], links: list[int | None]) -> None:
    assert [this.parent for this in linked(calls)] == links


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # one thread
        ([Call(0, "sa", "A"), Call(5, "saAb", "B"), Call(9, "saAbBc")], [[("main", [0, 1, 2])]]),
        # a side call does not take the thread over
        ([Call(0, "sa", "A"), Call(2, "saAt"), Call(5, "saAb", "B"), Call(9, "saAbBc")],
         [[("main", [0, 2, 3]), ("side", [1])]]),
        # two conversations, interleaved
        ([Call(0, "sa", "A"), Call(1, "sb", "B"), Call(5, "saAc"), Call(6, "sbBd")],
         [[("main", [0, 2])], [("main", [1, 3])]]),
        # a subagent by its task, and one of its own
        ([Call(0, "sa", "A", emits="x"), Call(2, "rx", "X", emits="y"), Call(4, "ry", "Y")],
         [[("main", [0]), ("subagent", [1]), ("subagent", [2])]]),
        # by headers, the subagent first
        ([Call(0, "ra", "A", "S", "k"), Call(1, "sb", "B", "S"), Call(5, "raAc", "", "S", "k")],
         [[("main", [1]), ("subagent", [0, 2])]]),
        # a client that names all its threads: the one without a parent is the main one
        ([Call(0, "sa", "A", "S", "m"), Call(3, "rb", "B", "S", "k", "m")], [[("main", [0]), ("subagent", [1])]]),
    ],
)  # fmt: skip
def test_threads_and_sessions(calls: list[Call], expected: list[list[tuple[str, list[int]]]]) -> None:
    assert plan(calls) == expected


CALLS = st.lists(
    st.builds(
        Call,
        at=st.integers(0, 20).map(float),
        prompt=st.text("sabAB12", min_size=1, max_size=6),
        reply=st.text("AB", max_size=1),
        session=st.none() | st.just("S"),
        agent=st.none() | st.sampled_from("xy"),
        parent=st.none() | st.sampled_from("xyz"),
        emits=st.text("12ab", max_size=2),
        took=st.integers(0, 5).map(float),
    ),
    max_size=12,
).map(lambda calls: sorted(calls, key=lambda call: call.at))


@given(CALLS)
def test_every_call_is_in_one_thread_and_causes_come_first(calls: list[Call]) -> None:
    all_of = linked(calls)
    assert all(this.parent is None or this.parent < this.index for this in all_of)
    assert all(
        this.parent is None or calls[this.parent].at + calls[this.parent].took <= calls[this.index].at
        for this in all_of
    )
    found = sessions(all_of)
    assert sorted(turn.index for kin in found for line in kin.lines for turn in line.turns) == list(range(len(calls)))
    for kin in found:
        assert [line.kind for line in kin.lines].count("main") == 1
        assert kin.lines[0].kind == "main"
        assert all(line.parent is not None and line.parent < at for at, line in enumerate(kin.lines) if at)
