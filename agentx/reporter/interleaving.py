"""The order in which a trace's prompts would be sent: many sessions at once, each with its pauses.

Sessions that say when they arrive begin then; the others are played by so many lanes, each taking the next session of
the file when its own has ended. A turn is sent when it was recorded, else when its gap is over, with an assumed time
for each call (`agentx.replayer.starts`). Pauses are those of the trace, none is cut short.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentx.core import Session
from agentx.replayer.starts import span, starts_of

AT_ONCE = 16


class Step(NamedTuple):
    """A turn that is sent. `last`: no other turn of its session follows."""

    session: Session
    turn: int
    last: bool


def interleaved(sessions: Iterable[Session], at_once: int | None = None) -> Iterator[Step]:
    """Every turn, by the time at which it is sent; holds the sessions that have begun and one more.

    With `at_once` arrivals are not looked at. Sessions without turns are passed over.
    """
    playing: list[tuple[float, int, Iterator[tuple[float, Step]], Step]] = []
    lanes = [0.0] * (at_once or AT_ONCE)
    now = 0.0
    for number, session in enumerate(each for each in sessions if each.turns):
        arrives = at_once is None and session.arrival is not None
        begins = max(now, session.arrival or 0.0) if arrives else lanes[0]
        while playing and playing[0][0] < begins:
            now = playing[0][0]
            yield _next(playing)
        begun = starts_of(session)
        if not arrives:
            heapq.heapreplace(lanes, begins + span(session, begun))
        steps = _steps(session, begins, begun)
        at, step = next(steps)
        heapq.heappush(playing, (at, number, steps, step))
    while playing:
        yield _next(playing)


def _steps(session: Session, begins: float, begun: list[float]) -> Iterator[tuple[float, Step]]:
    order = sorted(range(len(begun)), key=lambda turn: (begun[turn], turn))
    for place, turn in enumerate(order):
        yield begins + begun[turn], Step(session, turn, place == len(order) - 1)


def _next(playing: list[tuple[float, int, Iterator[tuple[float, Step]], Step]]) -> Step:
    """The turn that is due first; the next one of its session takes its place."""
    _, number, steps, step = playing[0]
    if step.last:
        heapq.heappop(playing)
    else:
        at, following = next(steps)
        heapq.heapreplace(playing, (at, number, steps, following))
    return step
