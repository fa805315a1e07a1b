"""Small bars in a line of text."""

from __future__ import annotations

import pytest

from agentx.reporter.sparks import ASCII, BLOCKS, bars, counted, glyphs, histogram


@pytest.mark.parametrize(
    ("values", "top", "told"),
    [
        ([0, 1, 4, 8], None, " ▂▅█"),  # nothing is blank, the largest is full
        ([1, 1], 8, "▂▂"),
        ([0, 0], None, "  "),
        ([], None, ""),
        ([9], 8, "█"),  # above the top
        ([1e-9, 1], None, "▁█"),  # a little is seen
    ],
)
def test_bars(values: list[float], top: float | None, told: str) -> None:
    assert bars(values, BLOCKS, top) == told


def test_a_terminal_without_block_characters_gets_ascii() -> None:
    assert glyphs("utf-8") == BLOCKS
    assert [glyphs(name) for name in ("ascii", "latin-1", "no-such-encoding", None)] == [ASCII] * 4
    assert bars([1, 8], ASCII).isascii()


def test_ranges_of_equal_ratio() -> None:
    """1 to 100 in two ranges, apart at 10; what is 0 is in the first."""
    assert histogram([1, 9, 11, 100, 0], 2)[0] == [3, 2]
    assert histogram([1, 9, 11, 100, 0], 2)[1] == pytest.approx([10**0.5, 10**1.5])
    assert histogram([0, 0], 2) == ([2, 0], [])
    assert histogram([5, 5], 3)[0] == [2, 0, 0]
    assert sum(counted([0.1, 3, 1e9], 0.0, 5.0, 4)) == 3  # what lies outside is at the edges
