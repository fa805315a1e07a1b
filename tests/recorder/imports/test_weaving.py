"""What is inferred about a line of prompts: tails, replies, compactions. Blocks have 4 tokens."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import OpaqueRun, Session, TurnEvent
from agentx.recorder.imports.blocks import Weaver
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.weaving import Link, Spun, spin

TAIL = "prompt tail without a hash id: the head of the next prompt's block (inferred)"
LOOSE = "prompt tail without a hash id: a synthetic segment of its own (inferred)"
REPLY = "reply taken from the next prompt's growth (inferred)"


def link(turn: int, isl: int, out: int, ids: range | list[int]) -> Link:
    return Link(turn, isl, out, array("Q", ids), "tool_result" if turn else "user")


def woven(*links: Link, lead: tuple = (), **more: bool) -> tuple[Weaver, list[Spun], Books]:
    weaver, books = Weaver(4), Books()
    return weaver, spin(weaver, links, lead, books, **more), books


def shape(weaver: Weaver, made: Spun) -> list[tuple[str, int]]:
    return [(weaver.segments[piece.segment].layer, piece.tokens) for piece in made.root.pieces]


def test_a_prompt_is_cut_into_its_leading_layers_even_inside_a_block() -> None:
    weaver, spun, _ = woven(link(0, 12, 2, range(3)), lead=((5, "tools"), (7, "system")))
    assert shape(weaver, spun[0]) == [("tools", 5), ("system", 2), ("user", 5)]
    assert weaver.segments[1].content.runs == (OpaqueRun(1, 1, 2),)  # type: ignore[union-attr]


def test_the_growth_begins_with_the_reply() -> None:
    weaver, spun, books = woven(link(0, 8, 3, range(2)), link(1, 16, 1, range(4)))
    assert shape(weaver, spun[1]) == [("user", 8), ("assistant", 3), ("tool_result", 5)]
    assert spun[0].reply == spun[1].root.pieces[1].segment
    assert spun[1].reply is None
    assert (spun[1].prompt.base, spun[1].prompt.keep) == (0, 1)
    assert books.notes[REPLY] == 1


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        (link(0, 8, 5, range(2)), link(1, 12, 1, range(3)), "reply unknown: the next prompt grew by less"),
        (
            link(0, 8, 1, [1, 2]),
            link(1, 12, 1, [1, 9, 3]),
            "reply unknown: the next prompt does not go on from this one",
        ),
        # Of the reply's 6 tokens the ids cover 4, and one segment cannot hold both kinds.
        (link(0, 8, 6, range(2)), link(1, 15, 1, range(3)), "reply cut by the end of the ids: left unknown"),
    ],
)
def test_a_reply_that_cannot_be_found_is_left_unknown(first: Link, second: Link, note: str) -> None:
    _, spun, books = woven(first, second)
    assert spun[0].reply is None
    assert books.notes[note] == 1


def test_a_turn_without_output_has_no_reply_and_no_note() -> None:
    _, spun, books = woven(link(0, 8, 0, range(2)), link(1, 12, 0, range(3)))
    assert spun[0].reply is None
    assert not books.notes


def test_an_unhashed_tail_is_the_head_of_the_next_prompts_block() -> None:
    weaver, spun, books = woven(link(0, 10, 2, [5, 6]), link(1, 16, 1, [5, 6, 9, 10]))
    (piece,) = spun[0].root.pieces
    assert weaver.segments[piece.segment].content.runs == (OpaqueRun(5, 0, 8), OpaqueRun(9, 0, 2))  # type: ignore[union-attr]
    assert shape(weaver, spun[1]) == [("user", 10), ("assistant", 2), ("tool_result", 4)]  # the whole first one is kept
    assert (books.notes[TAIL], books.notes[LOOSE], weaver.synthetic) == (1, 0, 0)


def test_a_tail_is_found_over_several_prompts() -> None:
    weaver, _, books = woven(link(0, 9, 0, [5, 6]), link(1, 10, 0, [5, 6]), link(2, 12, 0, [5, 6, 7]))
    assert weaver.synthetic == 0
    assert books.notes[TAIL] == 2


@pytest.mark.parametrize(
    "second",
    [
        link(1, 16, 1, [5, 8, 9, 10]),  # another context
        link(1, 9, 1, [5, 6, 9]),  # a shorter prompt
        link(1, 11, 1, [5, 6]),  # has no block there either
    ],
)
def test_a_tail_that_nothing_shows_is_synthetic(second: Link) -> None:
    weaver, spun, books = woven(link(0, 10, 0, [5, 6]), second)
    assert [piece.tokens for piece in spun[0].root.pieces] == [8, 2]
    assert weaver.segments[spun[0].root.pieces[1].segment].content is None
    assert books.notes[LOOSE] >= 1


def test_a_last_block_of_its_own_hash_counts_as_going_on() -> None:
    """Hashing a cut block gives another id than the whole one; the whole blocks decide, the tokens differ."""
    weaver, spun, _ = woven(link(0, 10, 2, [1, 2, 50]), link(1, 16, 0, [1, 2, 3, 4]))
    assert shape(weaver, spun[1]) == [("user", 8), ("user", 2), ("assistant", 2), ("tool_result", 4)]
    assert spun[0].reply is not None


def test_ids_behind_the_length_are_left_out() -> None:
    weaver, spun, books = woven(link(0, 6, 0, [1, 2, 3, 4]))
    assert shape(weaver, spun[0]) == [("user", 6)]
    assert books.notes["prompt with more hash ids than its length has blocks: the surplus left out"] == 1


@pytest.mark.parametrize(
    ("second", "event", "layers"),
    [
        # Only tools and system are left: what follows them is a summary.
        (link(1, 12, 0, [0, 1, 90]), TurnEvent("compaction", 24, 8), ["tools", "system", "summary"]),
        # More is left, it may be a rewind as well.
        (link(1, 20, 0, [0, 1, 2, 3, 90]), TurnEvent("compaction", 24, 16), ["tools", "system", "user", "tool_result"]),
        (link(1, 12, 0, [80, 81, 90]), TurnEvent("reset", 24, 0), ["tools", "system", "tool_result"]),
        (link(1, 8, 0, [0, 1]), TurnEvent("compaction", 24, 8), ["tools", "system"]),  # nothing new at all
        (
            link(1, 24, 0, [0, 1, 2, 3, 4, 90]),
            None,
            ["tools", "system", "user", "tool_result"],
        ),  # rewritten, not shorter
    ],
)
def test_a_shorter_prompt_that_later_ones_build_on_is_a_compaction(
    second: Link, event: TurnEvent | None, layers: list[str]
) -> None:
    third = Link(2, second.isl + 4, 0, second.ids + array("Q", [200]))
    weaver, spun, _ = woven(link(0, 24, 0, range(6)), second, third, lead=((4, "tools"), (8, "system")))
    assert spun[1].event == event
    assert [layer for layer, _ in shape(weaver, spun[1])] == layers
    assert (spun[0].event, spun[2].event) == (None, None)


def test_a_shorter_prompt_at_the_end_is_not_called_a_compaction() -> None:
    _, spun, books = woven(link(0, 20, 0, range(5)), link(1, 12, 0, [0, 1, 90]))
    assert spun[1].event is None
    assert books.notes["shorter prompt at a line's end: not called a compaction"] == 1


def test_without_ids_lengths_alone_say_what_was_kept() -> None:
    lines = link(0, 100, 50, []), link(1, 300, 10, []), link(2, 290, 0, []), link(3, 290, 0, [])
    weaver, spun, books = woven(*lines, by_length=True)
    assert shape(weaver, spun[1]) == [("user", 100), ("assistant", 50), ("tool_result", 150)]
    assert spun[2].event == TurnEvent("compaction", 300, 290)
    assert shape(weaver, spun[3]) == [("user", 100), ("assistant", 50), ("tool_result", 140)]
    assert weaver.synthetic == 300
    assert LOOSE not in books.notes


chains = st.lists(st.integers(0, 3), min_size=0, max_size=4)


@given(st.lists(st.tuples(chains, st.integers(-6, 6), st.integers(0, 9)), min_size=1, max_size=6), st.booleans())
def test_every_prompt_has_its_length_and_its_blocks(rows: list[tuple[list[int], int, int]], leading: bool) -> None:
    """Whatever the rows are: pieces sum to isl, and resolve to the row's own ids as far as its length goes."""
    links = [Link(n, max(0, 4 * len(ids) + rest), out, array("Q", ids)) for n, (ids, rest, out) in enumerate(rows)]
    weaver, spun, _ = woven(*links, lead=((3, "tools"), (6, "system")) if leading else ())
    session = Session("s", (), segments=weaver.segments)
    for link_, made in zip(links, spun, strict=True):
        pieces = made.root.pieces
        assert sum(piece.tokens for piece in pieces) == link_.isl
        runs = [run for piece in pieces for run in session.piece_runs(piece)]
        positions = [at if run.stream.kind == "blocks" else None for run in runs for at in range(run.start, run.stop)]
        known = min(link_.isl, 4 * len(link_.ids))
        assert positions[:known] == [link_.ids[at // 4] * 4 + at % 4 for at in range(known)]
        if made.reply is not None:
            assert weaver.segments[made.reply].layer == "assistant"
            assert weaver.segments[made.reply].tokens == link_.out
