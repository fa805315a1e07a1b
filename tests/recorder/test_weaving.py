"""Shares add up; neighbours join."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Piece
from agentx.recorder.weaving import joined, split


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**5), max_size=20))
def test_shares_add_up_and_none_is_empty_where_there_is_enough(total: int, weights: list[int]) -> None:
    shares = split(total, weights)
    assert len(shares) == len(weights)
    assert sum(shares) == (total if any(weights) else 0)
    assert all(share >= 0 for share in shares)
    if total >= len(weights):
        assert all(share > 0 for share, weight in zip(shares, weights, strict=True) if weight)


def test_shares_follow_the_weights() -> None:
    assert split(100, [1, 1]) == [50, 50]
    assert split(1000, [300, 100]) == [750, 250]
    assert split(5, [1000, 1, 1]) == [3, 1, 1]
    assert split(2, [1000, 1, 1]) == [1, 0, 1]  # there is not enough for one each
    assert split(10, [0, 5]) == [0, 10]


def test_neighbours_of_one_segment_join() -> None:
    pieces = [Piece(1, 0, 5), Piece(1, 5, 9), Piece(2, 0, 3), Piece(1, 9, 10), Piece(2, 3, 4)]
    assert joined(iter(pieces)) == [Piece(1, 0, 9), Piece(2, 0, 3), Piece(1, 9, 10), Piece(2, 3, 4)]
