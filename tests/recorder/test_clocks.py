"""Two clocks: they agree, one is ahead, or what is compared is not of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.recorder.clocks import TOLERANCE, Clock, Room, compared

S = 10**9


def room(begin: float, end: float, tools: tuple[float, float], asked: float | None = None) -> Room:
    moments = [round(each * S) for each in (*tools, begin, end, asked if asked is not None else begin - 2)]
    return Room((moments[0], moments[1]), (moments[2], moments[3]), moments[4])


def near(number: int, off: float = 0.0, slack: float = 0.05) -> Room:
    """Tools that begin and end `slack` inside of a pause, on a clock that is `off` seconds ahead."""
    begin = 100.0 * number
    return room(begin, begin + 10, (begin + slack + off, begin + 10 - slack + off))


def test_nothing_to_compare() -> None:
    assert compared([], Path("f")) == Clock()
    assert "taken for the capture's" in Clock().line()


def test_clocks_that_agree_are_left_alone() -> None:
    found = compared([near(1), near(2, 0.1), near(3, -0.2)], Path("f"))
    assert (found.offset, found.pairs, found.suited) == (0, 3, 3)
    assert found.line() == "its clock agrees with the capture's, by 3 of 3 pauses"


@pytest.mark.parametrize("off", [3600.0, -2.5, 0.6, 1e8])
def test_a_clock_that_is_off_is_found(off: float) -> None:
    found = compared([near(number, off) for number in range(1, 9)], Path("f"))
    assert abs(found.offset + off * S) <= 0.06 * S
    assert found.within is not None
    assert abs(found.offset + off * S) <= found.within
    assert ("ahead of" if off > 0 else "behind") in found.line()


def test_a_tool_that_runs_while_its_reply_comes_does_not_move_the_clock() -> None:
    early = room(500, 510, (498.5, 509.9), asked=495)
    found = compared([near(1), near(2), near(3), early], Path("f"))
    assert (found.offset, found.suited) == (0, 4)


def test_a_few_that_do_not_fit_are_outvoted() -> None:
    wrong = room(900, 901, (850, 990))  # longer than its pause: a tool in the background
    found = compared([*(near(number, 30.0) for number in range(1, 6)), wrong], Path("f"))
    assert abs(found.offset + 30 * S) <= 0.06 * S
    assert (found.pairs, found.suited) == (6, 5)


def test_times_that_no_difference_suits_are_refused() -> None:
    with pytest.raises(BadInput, match="suits more than 1 of 4 pauses"):
        compared([near(number, 60.0 * number) for number in range(1, 5)], Path("f"))


def test_the_tolerance_is_that_of_the_documentation() -> None:
    assert TOLERANCE == 0.25 * S
