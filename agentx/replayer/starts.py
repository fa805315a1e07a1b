"""Where in a session a lane begins, and how far from there its next turns are.

A session lies on a clock of its own: by its recorded times where every turn has one, else by its gaps and an estimate
of how long each call took. Turns that began before the start are not sent; what is live at the start is: the next turn
of every thread, at its recorded distance. A seed, a session and a lane always give the same start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from agentx.core import Session, Turn
from agentx.replayer.draws import share
from agentx.replayer.moves import StartPhase, StartRule

# Only for sessions without recorded times: the order of magnitude of a frontier model behind an API.
CALL = 2.0  # s before the first token
PER_TOKEN = 0.02  # s per token of the reply


class Position(NamedTuple):
    """A point of a session: `before` are the turns that are over by then, `at` is its time on the session's clock."""

    before: frozenset[int]
    at: float


BEGINNING = Position(frozenset(), 0.0)


def starts_of(session: Session) -> list[float]:
    """When each turn began, in seconds on the session's clock."""
    recorded = [turn.observed.start if turn.observed else None for turn in session.turns]
    known = [at for at in recorded if at is not None]
    if known and len(known) == len(recorded):
        first = min(known)
        return [at - first for at in known]
    begun: list[float] = []
    for turn in session.turns:
        gap = turn.gap.seconds if turn.index else 0.0
        ready = max((begun[earlier] + _took(session.turns[earlier]) for earlier in turn.after), default=0.0)
        begun.append(ready + gap)
    return begun


def _took(turn: Turn) -> float:
    return CALL + PER_TOKEN * max(1, turn.output.tokens)


def span(session: Session, begun: list[float] | None = None) -> float:
    """Seconds from the first turn's start to the last one's end."""
    begun = starts_of(session) if begun is None else begun
    return max((at + _took(turn) for at, turn in zip(begun, session.turns, strict=True)), default=0.0)


def start_of(session: Session, lane: int, rule: StartRule) -> Position:
    """Where `lane` begins with this session. At least one turn is left to send."""
    begun = starts_of(session)
    drawn = rule.least + (rule.most - rule.least) * share(rule.seed, "start", session.key, lane)
    order = sorted(range(len(begun)), key=lambda turn: (begun[turn], turn))
    if rule.by == "turns":
        at = begun[order[min(int(drawn * len(order)), len(order) - 1)]] if order else 0.0
    else:
        at = drawn * span(session, begun)
    before: set[int] = set()
    for turn in session.turns:
        if begun[turn.index] < at and before.issuperset(turn.after):
            before.add(turn.index)
    if len(before) == len(order) and order:
        last = max(before, key=lambda turn: (begun[turn], turn))
        before.discard(last)  # nothing waits for the last one
        at = begun[last]
    return Position(frozenset(before), at)


def last_of_live_threads(session: Session, position: Position) -> list[int]:
    """Of each thread that goes on behind the position, the turn before it: what a cache would still hold."""
    live = {turn.thread for turn in session.turns if turn.index not in position.before}
    last = {session.turns[index].thread: index for index in sorted(position.before)}
    return sorted(index for thread, index in last.items() if thread in live)


def nearest(distances: Mapping[int, Mapping[int, float]]) -> float:
    """The distance of the first turn of all; infinite where there is none."""
    return min((min(each.values()) for each in distances.values() if each), default=math.inf)


def placed(
    distances: Mapping[int, Mapping[int, float]], phase: StartPhase, first: float | None = None
) -> dict[int, dict[int, float]]:
    """Seconds from now to each turn, by play and turn, from their distances to the starts of their plays.

    spread: on one clock, whose zero is the first turn of all (`first`: one of another worker may be nearer). burst: the
    first turn of every play is now.
    """
    common = nearest(distances) if first is None else first
    return {
        play: {turn: at - (common if phase == "spread" else min(each.values())) for turn, at in each.items()}
        for play, each in distances.items()
    }


def equilibrium(
    sessions: Iterable[Session], lanes: int, seed: int, keep: Callable[[Session], bool] = lambda session: True
) -> list[int]:
    """Positions in the trace of the sessions that a look at a running system would find in its lanes.

    A session is found as often as it is long: `lanes` points at equal distances on the line of all durations, end to
    end, with a drawn beginning; then in a drawn order, so that lanes do not follow the file.
    """
    ends: list[tuple[float, int]] = []
    total = 0.0
    for place, session in enumerate(sessions):
        if session.turns and keep(session):
            total += span(session)
            ends.append((total, place))
    if not ends:
        return []
    found, at = [], 0
    for lane in range(lanes):
        point = (lane + share(seed, "equilibrium")) * total / lanes
        while at < len(ends) - 1 and ends[at][0] <= point:
            at += 1
        found.append(ends[at][1])
    return [place for _, place in sorted((share(seed, "lane", lane), place) for lane, place in enumerate(found))]
