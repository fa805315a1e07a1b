"""A pause between two turns, taken apart by what the client itself says it did: tools, its user, the rest its own time.

Tools that ran side by side count once: a pause's tool time is the union of their runs, as far as it lies in the pause.
While no tool ran, its user was awaited where the client says so: for leave to run a tool, or for the next message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentx.core import GapParts

Interval = tuple[int, int]  # begin and end, nanoseconds


class ToolTime(NamedTuple):
    """What a source tells of a tool call. None and (): not told.

    `ran`, `waited`: seconds that it ran, and that it waited for its user's leave. `runs`, `waits`: when, nanoseconds on
    the source's clock. `exact` false: a run reaches from the call to its result, and waiting is inside. `spawns`: it
    starts a subagent, which `agent` is a pseudonym of.
    """

    ran: float | None = None
    waited: float | None = None
    runs: tuple[Interval, ...] = ()
    waits: tuple[Interval, ...] = ()
    exact: bool = True
    spawns: bool = False
    agent: str | None = None

    def moved(self, by: int) -> ToolTime:
        """The same on a clock that is `by` nanoseconds ahead."""
        return self._replace(
            runs=tuple((begin + by, end + by) for begin, end in self.runs),
            waits=tuple((begin + by, end + by) for begin, end in self.waits),
        )


class Run(NamedTuple):
    """A tool that ran without an id to know it by: its name, and when."""

    name: str
    time: ToolTime


@dataclass(slots=True)
class Told:
    """What is known of pauses beside the calls, on the calls' clock.

    `calls`: by the id of a tool call. `turns`: of tools that have no id, by the index of the turn that came after
    them. `asked`: when the user's message was written that a turn brings, by the turn's index. `by_times`: turns of
    which this was found by times alone.
    """

    calls: Mapping[str, ToolTime] = field(default_factory=dict)
    turns: Mapping[int, Sequence[Run]] = field(default_factory=dict)
    asked: Mapping[int, int] = field(default_factory=dict)
    by_times: frozenset[int] = frozenset()


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same stretches without overlaps, in order; empty and inverted ones are left out."""
    made: list[Interval] = []
    for begin, end in sorted(intervals):
        if end <= begin:
            continue
        if made and begin <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((begin, end))
    return made


def length(intervals: Iterable[Interval]) -> int:
    """Nanoseconds that any of the stretches covers."""
    return sum(end - begin for begin, end in union(intervals))


def within(intervals: Iterable[Interval], pause: Interval) -> list[Interval]:
    """What of the stretches lies inside a pause."""
    return [(max(begin, pause[0]), min(end, pause[1])) for begin, end in intervals]


def parts(
    pause: Interval, tools: Sequence[ToolTime], asked: int | None = None, certain: bool = True
) -> GapParts | None:
    """A pause's parts by the tools that ended in it, or by when its user's message was written; None: nothing told.

    `certain` false: the tools, or the message, were found by times alone.
    """
    tools = [tool for tool in tools if any(_touch(each, pause) for each in (*tool.runs, *tool.waits))]
    runs = within((run for tool in tools for run in tool.runs), pause)
    waits = within((wait for tool in tools for wait in tool.waits), pause)
    if asked is not None and pause[0] <= asked <= pause[1]:
        waits.append((pause[0], asked))
    if not runs and not waits:
        return None
    ran = length(runs)
    awaited = length([*runs, *waits]) - ran
    return GapParts(
        tool=round(ran / 1e9, 6) if runs else None,
        human=round(awaited / 1e9, 6) if waits else None,
        provenance="recorded" if certain and all(tool.exact for tool in tools if tool.runs) else "inferred",
    )


def _touch(each: Interval, pause: Interval) -> bool:
    return each[0] <= pause[1] and each[1] >= pause[0]
