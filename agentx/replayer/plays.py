"""One session that is being played: which of its turns wait, are timed, are in flight, and how many came back."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

from agentx.core import Play, Session


class Key(NamedTuple):
    """A turn of a play; `serial` numbers the plays in the order in which they began."""

    serial: int
    turn: int


class Timer(NamedTuple):
    """When a turn is due. `order` breaks ties, `moved` is by how many seconds it was brought forward."""

    due: float
    order: int
    turn: int
    moved: float


class LivePlay:
    """The state of one play, changed by the schedule alone."""

    __slots__ = (
        "completed",
        "cut",
        "dependents",
        "dropped",
        "failures",
        "given_up",
        "idle_since",
        "in_flight",
        "lane",
        "moved",
        "play",
        "ready",
        "sent",
        "serial",
        "session",
        "started",
        "timers",
        "version",
        "waiting",
    )

    def __init__(self, serial: int, session: Session, play: int, lane: int, now: float) -> None:
        self.serial, self.session, self.play, self.lane, self.started = serial, session, play, lane, now
        self.waiting = [len(turn.after) for turn in session.turns]
        self.ready = [now] * len(session.turns)  # latest end of what the turn waits for
        self.dependents: list[list[int]] = [[] for _ in session.turns]
        for turn in session.turns:
            for earlier in turn.after:
                self.dependents[earlier].append(turn.index)
        self.timers: list[Timer] = []  # a heap
        self.in_flight: dict[int, None] = {}  # a set that keeps its order
        self.idle_since = now
        self.moved = 0.0
        self.version = self.sent = self.completed = self.failures = self.cut = self.dropped = 0
        self.given_up: str | None = None

    def begin(self, now: float, scale: float, order: Iterator[int]) -> None:
        """Set the timers of the turns that wait for nothing."""
        for turn in self.session.turns:
            if not turn.after:
                gap = turn.gap.seconds * scale if turn.index else 0.0
                self._set(now + gap, turn.index, order)

    def release(self, turn: int, now: float, scale: float, order: Iterator[int]) -> None:
        """`turn` ended at `now`: set the timers of those that waited for it last."""
        if self.given_up:
            return
        for later in self.dependents[turn]:
            self.waiting[later] -= 1
            self.ready[later] = max(self.ready[later], now)
            if not self.waiting[later]:
                self._set(self.ready[later] + self.session.turns[later].gap.seconds * scale, later, order)

    def _set(self, due: float, turn: int, order: Iterator[int]) -> None:
        heapq.heappush(self.timers, Timer(due, next(order), turn, 0.0))

    def first_due(self) -> float | None:
        return self.timers[0].due if self.timers else None

    def pop(self) -> Timer:
        return heapq.heappop(self.timers)

    def bring_forward(self, to: float) -> None:
        """Move all timers by the same time, so that the first is due at `to`."""
        by = self.timers[0].due - to
        self.timers = [
            Timer(max(to, timer.due - by) if place else to, timer.order, timer.turn, timer.moved + by)
            for place, timer in enumerate(sorted(self.timers))
        ]
        self.moved += by

    def launch(self, turn: int) -> None:
        self.in_flight[turn] = None
        self.sent += 1

    def land(self, turn: int, now: float) -> None:
        """The turn is no longer in flight. Raises KeyError when it was not."""
        del self.in_flight[turn]
        self.idle_since = max(self.idle_since, now)

    def give_up(self, why: str) -> None:
        """Send nothing more of this session."""
        self.given_up = self.given_up or why
        self.timers.clear()

    def record(self, now: float) -> Play:
        turns = len(self.session.turns)
        reached = self.completed + self.failures + self.dropped
        outcome = "failed" if self.given_up else "done" if reached == turns else "cut"
        extra: dict[str, Any] = {}
        if self.dropped:
            extra["dropped"] = self.dropped
        if self.given_up == "overflow":
            extra["reason"] = self.given_up
        if self.moved:
            extra["moved"] = self.moved
        return Play(
            session=self.session.key,
            play=self.play,
            lane=self.lane,
            outcome=outcome,
            turns=turns,
            sent=self.sent,
            completed=self.completed,
            started=self.started,
            ended=now,
            extra=extra,
        )

    def check_integrity(self) -> None:
        """Raises RuntimeError when the turns that were sent are not all accounted for."""
        if self.sent != self.completed + self.failures + self.cut + len(self.in_flight):
            raise RuntimeError(f"play {self.serial} of session {self.session.key!r} lost a turn")
