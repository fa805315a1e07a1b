"""One session that is being played: which of its turns wait, are timed, are in flight, and how many came back."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentx.core import Play, Session
from agentx.replayer.starts import Position, starts_of


class Timer(NamedTuple):
    """When a turn is due. `order` breaks ties, `moved` is by how many seconds it was brought forward."""

    due: float
    order: int
    turn: int
    moved: float


class LivePlay:
    """The state of one play, changed by the schedule alone.

    While it is `held`, no turn has a timer: which one is sent is decided from outside (`hold`, `earliest`, `place`).
    """

    __slots__ = (
        "begun", "completed", "cut", "dependents", "dropped", "failures", "full", "given_up", "held", "idle_since",
        "in_flight", "lane", "moved", "origin", "overdue", "passed", "placed", "play", "ready", "sent", "serial",
        "session", "skipped", "started", "timers", "version", "waiting",
    )  # fmt: skip

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
        self.passed = bytearray(len(session.turns))  # turns that were sent, dropped, or lie before the start
        self.placed: Mapping[int, float] = {}  # turns that are not due before this
        self.idle_since = now
        self.moved = self.origin = 0.0
        self.version = self.sent = self.completed = self.failures = self.cut = self.dropped = self.skipped = 0
        self.overdue = 0  # turns that were due and not sent when the run ended
        self.given_up: str | None = None
        self.held = self.full = False
        self.begun: list[float] = []

    def begin(self, now: float, scale: float, order: Iterator[int]) -> None:
        """Set the timers of the turns that wait for nothing."""
        for turn in self.session.turns:
            if not turn.after:
                gap = turn.gap.seconds * scale if turn.index else 0.0
                self._set(now + gap, turn.index, order)

    def hold(self, position: Position) -> None:
        """Begin at a position, with no timers yet."""
        self.held = True
        self.begun, self.origin = starts_of(self.session), position.at
        self.skipped = len(position.before)
        for turn in sorted(position.before):
            self.passed[turn] = True
            for later in self.dependents[turn]:
                self.waiting[later] -= 1

    def earliest(self) -> int | None:
        """Of the turns that wait for nothing, the one that was recorded first."""
        able = (turn for turn, passed in enumerate(self.passed) if not passed and not self.waiting[turn])
        return min(able, key=lambda turn: (self.begun[turn], turn), default=None)

    def distances(self, scale: float) -> dict[int, float]:
        """Recorded seconds, scaled, from where the play began to each turn that comes next."""
        turns = self.session.turns
        able = [turn for turn in turns if not self.passed[turn.index] and all(map(self.passed.__getitem__, turn.after))]
        return {turn.index: (self.begun[turn.index] - self.origin) * scale for turn in able}

    def place(self, dues: Mapping[int, float], now: float, order: Iterator[int]) -> None:
        """Let it go: the turns that come next are due at these times; those that wait for a reply not before it."""
        self.held, self.placed, self.idle_since = False, dues, now
        for turn, due in dues.items():
            if not self.waiting[turn]:
                self._set(max(now, due), turn, order)

    def release(self, turn: int, now: float, scale: float, order: Iterator[int]) -> None:
        """`turn` ended at `now`: set the timers of those that waited for it last."""
        self.passed[turn] = True
        for later in self.dependents[turn]:
            self.waiting[later] -= 1
            self.ready[later] = max(self.ready[later], now)
            if self.waiting[later] or self.passed[later] or self.held or self.full or self.given_up:
                continue
            due = self.ready[later] + self.session.turns[later].gap.seconds * scale
            self._set(max(self.placed[later], now) if later in self.placed else due, later, order)

    def _set(self, due: float, turn: int, order: Iterator[int]) -> None:
        heapq.heappush(self.timers, Timer(due, next(order), turn, 0.0))

    def first_due(self) -> float | None:
        return self.timers[0].due if self.timers else None

    def pop(self) -> Timer:
        return heapq.heappop(self.timers)

    def timer_of(self, turn: int) -> Timer | None:
        """The timer of a turn that waits for its time."""
        return next((timer for timer in self.timers if timer.turn == turn), None)

    def take(self, timer: Timer) -> None:
        """Its time has come, whatever is due before it. Raises ValueError when it is not there."""
        self.timers.remove(timer)
        heapq.heapify(self.timers)

    def bring_forward(self, to: float) -> None:
        """Move all timers by the same time, so that the first is due at `to`."""
        first, by = min(self.timers), self.timers[0].due - to
        self.move(by, to)
        self.timers = sorted(timer._replace(due=to) if timer.order == first.order else timer for timer in self.timers)

    def move(self, by: float, earliest: float) -> None:
        """Move all timers forward, none before `earliest`: idleness passes over."""
        self.timers = sorted(
            Timer(max(earliest, timer.due - by), timer.order, timer.turn, timer.moved + by) for timer in self.timers
        )
        self.moved += by

    def launch(self, turn: int) -> None:
        self.in_flight[turn] = None
        self.passed[turn] = True
        self.sent += 1

    def land(self, turn: int, now: float) -> None:
        """The turn is no longer in flight. Raises KeyError when it was not."""
        del self.in_flight[turn]
        self.idle_since = max(self.idle_since, now)

    def give_up(self, why: str) -> None:
        """Send nothing more of this session: something went wrong."""
        self.given_up = self.given_up or why
        self.timers.clear()

    def stop(self) -> None:
        """Send nothing more of this session: its lane has sent what it was to send."""
        self.full = True
        self.timers.clear()

    def close(self, now: float) -> None:
        """The run sends nothing more: what was due by now and still waits was missed."""
        self.overdue = sum(timer.due <= now for timer in self.timers)

    @property
    def over(self) -> bool:
        """Whether nothing more of it will be sent or heard."""
        if self.in_flight or self.timers:
            return False
        return not self.held or self.given_up is not None or all(self.passed)

    def record(self, now: float) -> Play:
        turns = len(self.session.turns)
        reached = self.completed + self.failures + self.dropped + self.skipped
        outcome = "failed" if self.given_up else "done" if reached == turns else "cut"
        extra: dict[str, Any] = {}
        if self.dropped:
            extra["dropped"] = self.dropped
        if self.skipped:
            extra["skipped"] = self.skipped
        if self.given_up == "overflow":
            extra["reason"] = self.given_up
        if self.overdue:
            extra["overdue"] = self.overdue
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
