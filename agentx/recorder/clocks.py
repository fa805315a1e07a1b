"""Two clocks are compared by what must lie between two moments: tools run after the reply that asked for them, and
before the prompt that brings their results.

Each such pair leaves room for the difference of the clocks; the difference that most pairs agree on, within
`TOLERANCE`, is taken, none at all where that suits as many. Where too few agree on any, the files are not of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentx.errors import BadInput
from agentx.recorder.pauses import Interval

TOLERANCE = 250_000_000  # ns by which times of two programs may differ and still be the same moment
AGREE = 0.8  # of the pairs, that one difference must suit


class Clock(NamedTuple):
    """What is added to a file's times to make them the capture's, nanoseconds; how far it may be off; by how many."""

    offset: int = 0
    within: int | None = None
    pairs: int = 0
    suited: int = 0

    def line(self) -> str:
        if not self.pairs:
            return "its clock is taken for the capture's: no tool call is known by an id"
        of = f"by {self.suited:,} of {self.pairs:,} pauses"
        if not self.offset:
            return f"its clock agrees with the capture's, {of}"
        side = "behind" if self.offset > 0 else "ahead of"
        off = f" (+-{self.within / 1e9:.3f} s)" if self.within is not None else ""
        return f"its clock is {abs(self.offset) / 1e9:,.3f} s {side} the capture's{off}, corrected, {of}"


class Room(NamedTuple):
    """Where tools ran on one clock, the pause that they must lie in on the other, and when their call was asked for."""

    tools: Interval
    pause: Interval
    asked: int


def compared(rooms: Sequence[Room], path: Path) -> Clock:
    """The difference of two clocks. Raises BadInput when there is none that suits them."""
    if not rooms:
        return Clock()
    bounds = [(room.pause[0] - room.tools[0], room.pause[1] - room.tools[1]) for room in rooms]
    offset, within = _agreed(bounds)
    suited = sum(1 for room in rooms if _suits(room, offset))
    if suited < AGREE * len(rooms):
        raise BadInput(
            f"no difference of its clock to the capture's suits more than {suited:,} of {len(rooms):,} pauses",
            file=path,
            hint="its times are not those of the recorded run, or its clock was set while it ran",
        )
    return Clock(offset, within, len(rooms), suited)


def _suits(room: Room, offset: int) -> bool:
    """A tool may start while its reply still comes."""
    begin, end = room.tools[0] + offset, room.tools[1] + offset
    return begin >= room.asked - TOLERANCE and end <= room.pause[1] + TOLERANCE


def _agreed(bounds: Sequence[Interval]) -> tuple[int, int | None]:
    """The middle of the differences that suit most pairs, and half their width; 0 where that suits as many."""
    wide = [(low - TOLERANCE, high + TOLERANCE) for low, high in bounds if low - TOLERANCE <= high + TOLERANCE]
    if not wide:
        return 0, None
    steps = sorted([(low, 0) for low, _ in wide] + [(high, 1) for _, high in wide])  # beginnings before ends
    count = most = 0
    best = (0, 0)
    for at, (moment, ends) in enumerate(steps):
        count += -1 if ends else 1
        if count > most:
            most, best = count, (moment, steps[at + 1][0])
    if sum(1 for low, high in wide if low <= 0 <= high) == most:
        return 0, None
    return (best[0] + best[1]) // 2, (best[1] - best[0] + 1) // 2
