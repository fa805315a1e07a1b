"""Which calls are one line of context. Blocks have 4 tokens, calls take a second."""

from __future__ import annotations

from array import array

import pytest

from agentx.recorder.imports.weka_lines import contexts
from agentx.recorder.imports.weka_rows import Request
from agentx.recorder.imports.weka_times import Call, Strand


def lines(*rows: tuple[float, list[int]], took: float = 1.0, slack: float = 0.05) -> list[tuple[list[int], bool]]:
    """The lines of calls given as (start, ids), as positions in the list, and whether each is a side line."""
    calls = [Call(Request(t, 4 * len(ids), 1, array("Q", ids), api_time=took), t) for t, ids in rows]
    found = contexts(Strand(calls, ((8, "system"),), slack), 4)
    return [([calls.index(call) for call in line.calls], line.side) for line in found]


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        # a growing context
        ([(0, [1, 2]), (2, [1, 2, 3]), (4, [1, 2, 3, 4])], [([0, 1, 2], False)]),
        # a call that overlaps in time with the line it would join
        ([(0, [1, 2]), (0.5, [1, 2, 3]), (2, [1, 2, 4])], [([0, 2], False), ([1], True)]),
        # it leaves the context, and a later one returns to it
        ([(0, [1, 2, 3]), (2, [9]), (4, [1, 2, 3, 4])], [([0, 2], False), ([1], True)]),
        # the same with a common head
        ([(0, [1, 2, 3]), (2, [1, 9]), (4, [1, 2, 3, 4])], [([0, 2], False), ([1], True)]),
        # a shrink that later ones build on stays in its line: a compaction
        ([(0, [1, 2, 3, 4]), (2, [1, 9]), (4, [1, 9, 10])], [([0, 1, 2], False)]),
        # a reset that later ones build on, too
        ([(0, [1, 2, 3, 4]), (2, [8, 9]), (4, [8, 9, 10])], [([0, 1, 2], False)]),
        # a rewritten end that nothing returns from
        ([(0, [1, 2, 3, 4]), (2, [1, 2, 3, 9, 10])], [([0, 1], False)]),
        # a short call at the end that shares nothing but the system prompt
        ([(0, [1, 2, 3, 4, 5]), (2, [1, 2, 9])], [([0], False), ([1], True)]),
        # a call of a foreign context at the end, although it is longer
        ([(0, [1, 2]), (2, [8, 9, 10])], [([0], False), ([1], True)]),
        # two side calls of different contexts are two lines
        ([(0, [1, 2, 3]), (2, [8]), (4, [9]), (6, [1, 2, 3, 4])], [([0, 3], False), ([1], True), ([2], True)]),
        # a side line that grows itself
        ([(0, [1, 2, 3]), (2, [8]), (4, [8, 9]), (6, [1, 2, 3, 4])], [([0, 3], False), ([1, 2], True)]),
        # a call without any block says nothing of its context
        ([(0, [1, 2, 3]), (2, []), (4, [1, 2, 3, 4])], [([0, 2], False), ([1], True)]),
        # a retry of the same prompt
        ([(0, [1, 2]), (2, [1, 2]), (4, [1, 2, 3])], [([0, 1, 2], False)]),
        # a pure cut that later ones build on
        ([(0, [1, 2, 3, 4]), (2, [1, 2, 3]), (4, [1, 2, 3, 9])], [([0, 1, 2], False)]),
        # a prefix of the context while a later call returns to all of it
        ([(0, [1, 2, 3, 4]), (2, [1, 2, 3]), (4, [1, 2, 3, 4, 5])], [([0, 2], False), ([1], True)]),
        # a small call of another context in front of the real one
        ([(0, [9]), (2, [1, 2, 3]), (4, [1, 2, 3, 4])], [([1, 2], False), ([0], True)]),
        # a first prompt of the same size, whose head changed: a reset
        ([(0, [9, 10]), (2, [1, 2, 3]), (4, [1, 2, 3, 4])], [([0, 1, 2], False)]),
        # most of the main context is kept, all of a short side prompt, too
        (
            [(0, [1, 2, 3, 4, 5]), (0.5, [1, 2]), (2, [1, 2, 3, 4, 6]), (4, [1, 2, 3, 4, 6, 7])],
            [([0, 2, 3], False), ([1], True)],
        ),
        ([], []),
    ],
)
def test_calls_are_sorted_into_lines(rows: list, want: list) -> None:
    assert lines(*rows) == want


def test_whole_seconds_may_overlap_by_rounding() -> None:
    rows = [(0, [1, 2]), (4, [1, 2, 3])]
    assert lines(*rows, took=4.6, slack=1.0) == [([0, 1], False)]
    assert lines(*rows, took=4.6, slack=0.05) == [([0], False), ([1], True)]


def test_a_side_line_knows_where_it_branched_off() -> None:
    calls = [
        Call(Request(t, 4 * len(ids), 1, array("Q", ids), api_time=1.0), t) for t, ids in ((0, [1, 2]), (0.5, [1, 9]))
    ]
    main, side = contexts(Strand(calls, (), 0.05), 4)
    assert (main.root, side.root) == (None, calls[0])
