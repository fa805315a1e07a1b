"""Pauses taken apart: side by side counts once, what lies outside does not count, what is not told is None."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import GapParts
from agentx.recorder.pauses import Interval, ToolTime, length, parts, union

S = 10**9
PAUSE = (10 * S, 20 * S)


def ran(*runs: tuple[float, float], waits: tuple[tuple[float, float], ...] = (), exact: bool = True) -> ToolTime:
    def scaled(stretches: tuple[tuple[float, float], ...]) -> tuple[Interval, ...]:
        return tuple((round(begin * S), round(end * S)) for begin, end in stretches)

    return ToolTime(runs=scaled(runs), waits=scaled(waits), exact=exact)


CASES = [
    # one tool in the middle: what is before and behind it is the client's
    ([ran((11, 14))], None, GapParts(3.0)),
    # parallel tools count once
    ([ran((11, 14)), ran((12, 16)), ran((17, 18))], None, GapParts(6.0)),
    # a wait for leave, then the run
    ([ran((14, 19), waits=((10.5, 14),))], None, GapParts(5.0, 3.5)),
    # the user is asked while another tool runs: the tool's time, and only the rest of the wait is the user's
    ([ran((11, 15)), ran((16, 17), waits=((12, 16),))], None, GapParts(5.0, 1.0)),
    # a tool that began while the reply still came: what lies in the pause counts
    ([ran((9, 12))], None, GapParts(2.0)),
    # a tool that took no time is told, and is 0
    ([ran((12, 12))], None, GapParts(0.0)),
    # from the call to the result: waiting is inside
    ([ran((11, 14), exact=False)], None, GapParts(3.0, None, "inferred")),
    # the user's message was written in it: until then the user was awaited
    ([], 17 * S, GapParts(None, 7.0)),
    # only a wait is told
    ([ran(waits=((11, 12),))], None, GapParts(None, 1.0)),
    # nothing is told, or nothing of this pause
    ([], None, None),
    ([ToolTime(3.0)], None, None),
    ([ran((30, 40))], None, None),
    ([], 30 * S, None),
]


@pytest.mark.parametrize(("tools", "asked", "wanted"), CASES)
def test_parts(tools: list[ToolTime], asked: int | None, wanted: GapParts | None) -> None:
    assert parts(PAUSE, tools, asked) == wanted


def test_what_was_found_by_times_is_inferred() -> None:
    assert parts(PAUSE, [ran((11, 14))], certain=False) == GapParts(3.0, None, "inferred")


STRETCHES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


@given(STRETCHES)
def test_a_union_covers_each_moment_once(stretches: list[Interval]) -> None:
    covered = {at for begin, end in stretches for at in range(begin, end)}
    assert length(stretches) == len(covered)
    made = union(stretches)
    assert all(one[1] < other[0] for one, other in pairwise(made))
    assert {at for begin, end in made for at in range(begin, end)} == covered


@given(STRETCHES, STRETCHES)
def test_parts_never_exceed_their_pause(runs: list[Interval], waits: list[Interval]) -> None:
    found = parts((20, 40), [ToolTime(runs=tuple(runs), waits=tuple(waits))])
    if found is not None:
        assert (found.tool or 0.0) + (found.human or 0.0) <= 20e-9 + 2e-6  # each is rounded to a microsecond
