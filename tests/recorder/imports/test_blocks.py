"""Chains of block ids against a token-by-token reference."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Opaque, OpaqueRun, Piece, Prompt
from agentx.recorder.imports.blocks import Mark, Weaver, blocks_of, common, marks, runs_of

BIG = (1 << 64) - 1
chains = st.lists(st.sampled_from([0, 1, 2, BIG - 1, BIG]), max_size=12)


@given(chains, chains, chains)
def test_common_counts_the_equal_ids_at_the_head(head: list[int], left: list[int], right: list[int]) -> None:
    one, two = head + left, head + right
    differ = [at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b]
    want = differ[0] if differ else min(len(one), len(two))
    assert common(array("Q", one), array("Q", two)) == want


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_the_last_block_may_be_cut(tokens: int, blocks: int) -> None:
    assert blocks_of(tokens, 4) == blocks


@given(chains.filter(bool), st.data())
def test_runs_give_every_token_its_block_and_offset(ids: list[int], data: st.DataObject) -> None:
    block = data.draw(st.integers(1, 5))
    start = data.draw(st.integers(0, len(ids) * block))
    stop = data.draw(st.integers(start, len(ids) * block))
    runs = runs_of(array("Q", ids), block, start, stop)
    # The reference positions of a run: consecutive ids are consecutive positions.
    got = [run.block_id * block + run.offset + n for run in runs for n in range(run.tokens)]
    assert got == [ids[at // block] * block + at % block for at in range(start, stop)]
    assert all(run.tokens > 0 and 0 <= run.offset < block for run in runs)


def test_consecutive_ids_are_one_run() -> None:
    assert runs_of(array("Q", [5, 6, 7, 9]), 64, 10, 200) == (OpaqueRun(5, 10, 182), OpaqueRun(9, 0, 8))


@pytest.mark.parametrize(
    ("start", "stop", "bounds", "want"),
    [
        (0, 9, [], [("user", 0, 9)]),
        (0, 9, [(4, "tools"), (6, "system")], [("tools", 0, 4), ("system", 4, 6), ("user", 6, 9)]),
        (5, 9, [(4, "tools"), (6, "system")], [("system", 5, 6), ("user", 6, 9)]),  # the tools were kept
        (0, 5, [(4, "tools"), (6, "system")], [("tools", 0, 4), ("system", 4, 5)]),  # ends inside the system prompt
        (0, 3, [(4, "tools"), (6, "system")], [("tools", 0, 3)]),  # ends inside the tools
        (3, 3, [(4, "tools")], []),  # nothing is new
    ],
)
def test_marks_cover_the_new_tokens(start: int, stop: int, bounds: list, want: list) -> None:
    assert marks(start, stop, bounds, "user") == [Mark(*mark) for mark in want]


def test_a_stretch_that_occurs_again_is_the_same_segment() -> None:
    weaver, ids = Weaver(4), array("Q", [1, 2, 3])
    first = weaver.prompt(ids, [Mark("user", 0, 12)])
    again = weaver.prompt(ids, [Mark("user", 0, 12)])
    other = weaver.prompt(ids, [Mark("system", 0, 12)])
    assert first.pieces == again.pieces != other.pieces
    assert weaver.segments[0].content == Opaque(4, (OpaqueRun(1, 0, 12),))


def test_unidentified_tokens_are_never_the_same() -> None:
    weaver = Weaver(4)
    first = weaver.prompt(array("Q"), [Mark("user", 0, 3)])
    again = weaver.prompt(array("Q"), [Mark("user", 0, 3)])
    assert first.pieces != again.pieces
    assert weaver.segments[0].content is None


def test_a_prompt_keeps_whole_pieces_and_cuts_the_next() -> None:
    weaver, ids = Weaver(4), array("Q", [1, 2, 3, 4])
    first = weaver.prompt(ids, [Mark("tools", 0, 6), Mark("user", 6, 16)])
    second = weaver.prompt(array("Q", [1, 2, 9]), [Mark("user", 8, 12)], (0, first.pieces), 8)
    assert second.prompt == Prompt((Piece(1, 0, 2), Piece(2, 0, 4)), base=0, keep=1)
    assert second.pieces == (Piece(0, 0, 6), Piece(1, 0, 2), Piece(2, 0, 4))
    whole = weaver.prompt(array("Q", [1]), [], (0, first.pieces), 4)  # no whole piece is left to refer to
    assert whole.prompt == Prompt((Piece(0, 0, 4),))


def test_a_mark_over_the_end_of_the_ids_lies_in_two_segments() -> None:
    woven = Weaver(4).prompt(array("Q", [1]), [Mark("assistant", 0, 6)])
    assert [piece.tokens for piece in woven.pieces] == [4, 2]
    assert woven.segments == (None,)


def test_more_than_the_base_has_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="2 tokens before"):
        Weaver(4).prompt(array("Q"), [], (0, (Piece(0, 0, 4),)), 6)
