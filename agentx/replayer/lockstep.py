"""Lockstep: the turns that another run sent, in the order in which it sent them.

The order in which prompts reach a cache is part of what it can reuse, and a faster server makes another order. Held to
one order, two servers differ by what their caches do, not by what their speed made of the traffic. The rules:

1. A turn is sent when it is due by the schedule's own rules and all turns before it in that order were sent: then it
   is due, so that waiting for the order is no lag of the client.
2. What the other run did not send is not sent: what it passed over is passed over, a session ends where it ended there.
3. A turn that can never come (its session failed here, or does not fit) is left out of the order and counted.
4. The warm-up is held to the other run's as well, turn by turn, and the run begins when the last of them was sent.
5. How much is sent is the other run's: of the plan's `measure` only a duration counts, which may end it sooner.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from agentx.core import Session
from agentx.errors import BadInput
from agentx.replayer.intake import Taken
from agentx.replayer.moves import MEASURE, WARMUP, Fate, Rules, Send, Step, Wait, always_send
from agentx.replayer.plays import LivePlay, Timer
from agentx.replayer.schedule import Schedule
from agentx.replayer.warmup import Warmup
from agentx.results import read_results, sha256_of


class Place(NamedTuple):
    """A turn of a play, as both runs name it."""

    session: str
    play: int
    turn: int


@dataclass(frozen=True, slots=True)
class Course:
    """The order of the run in the folder `name`; `warm` are the turns of its warm-up."""

    name: str
    salt: str | None
    places: tuple[Place, ...]
    warm: tuple[Place, ...] = ()

    def record(self) -> dict[str, Any]:
        """What the run folder says of it."""
        return {"run": self.name, "salt": self.salt, "turns": len(self.places)}

    @property
    def note(self) -> str:
        return (
            f"sent in the order of the run {self.name} ({len(self.places)} turns): what its speed made of the traffic "
            "is not in these figures"
        )


def schedule_of(
    sessions: Iterator[Session], rules: Rules, fate: Callable[[Session, int], Fate], course: Course | None
) -> Schedule:
    """A schedule by the plan alone, or held to a course."""
    return Schedule(sessions, rules, fate) if course is None else LockstepSchedule(sessions, rules, fate, course=course)


def told_of(schedule: Schedule) -> dict[str, Any]:
    """What the end of the results says of the order; nothing without one."""
    if not isinstance(schedule, LockstepSchedule):
        return {}
    return {"lockstep": {"turns": schedule.turns, "left_out": schedule.left_out}}


def left_out_notes(schedule: Schedule) -> Iterator[str]:
    """What is to be said of the order when the run is over."""
    if isinstance(schedule, LockstepSchedule) and schedule.left_out:
        yield f"{schedule.left_out} of the {schedule.turns} turns of that order were not sent here"


def course_of(folder: Path | str | None, trace: Path) -> Course | None:
    """The order of a run of `trace`; None for none. Raises BadInput for a run of another trace, or one of no turns."""
    if folder is None:
        return None
    run = read_results(folder)
    kept = run.settings.get("trace")
    known = kept.get("sha256") if isinstance(kept, Mapping) else None
    if known != sha256_of(trace):
        name = kept.get("name") if isinstance(kept, Mapping) else None
        raise BadInput(
            f"replayed another trace ({name or 'unknown'}, sha256 {str(known or 'unknown')[:12]})", file=folder,
            hint="--order-from needs a run of this very trace",
        )  # fmt: skip
    sent = sorted(run.attempts, key=lambda one: (one.sent, one.due, one.lane))  # what is sent at once: by when due
    places, warm = (
        tuple(dict.fromkeys(Place(one.session, one.play, one.turn) for one in sent if one.phase == phase))
        for phase in (MEASURE, WARMUP)
    )
    if not places:
        raise BadInput("sent nothing that was measured: there is no order to follow", file=folder)
    return Course(run.folder.resolve().name, run.settings.get("salt"), places, warm)


def _listed(sessions: Iterable[Session], plays: Collection[tuple[str, int]], spare: int) -> Iterator[Session]:
    """The sessions of these plays. The source may be endless: `spare` plays behind the last one, no more come."""
    seen, most, left = Counter[str](), max(number for _, number in plays) + spare, len(plays)
    for session in sessions:
        number = seen[session.key]
        seen[session.key] += 1
        if number > most:
            return
        if (session.key, number) in plays:
            yield session
            left -= 1
            if not left:
                return


@dataclass(slots=True)
class _Follow:
    """How far the order is. `left`: how many turns of a play are still to come; `begun`: serials of plays."""

    places: tuple[Place, ...]
    at: int = 0
    skipped: int = 0
    left: Counter[tuple[str, int]] = field(default_factory=Counter)
    begun: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def head(self) -> Place | None:
        return self.places[self.at] if self.at < len(self.places) else None


class LockstepSchedule(Schedule):
    """A schedule that is held to a course. Sessions that are not in it are not played."""

    def __init__(
        self,
        sessions: Iterator[Session],
        rules: Rules,
        fate: Callable[[Session, int], Fate] = always_send,
        *,
        course: Course,
    ) -> None:
        plays = {(place.session, place.play) for place in (*course.places, *course.warm)}
        listed = _listed(sessions, plays, (rules.lanes or 0) + 1)
        super().__init__(listed, replace(rules, plays=None, turns=None), fate)
        left = Counter((place.session, place.play) for place in course.places)
        self._follow = _Follow(course.places, left=left)
        self._to_warm = deque(course.warm)
        self._ready = 0.0  # when the turns before the head were due, or known not to come
        self._listed = frozenset(course.places)

    @property
    def turns(self) -> int:
        """Turns of the order."""
        return len(self._follow.places)

    @property
    def left_out(self) -> int:
        """Turns of the order that could not be sent."""
        return self._follow.skipped + len(self._follow.places) - self._follow.at

    def _warm(self, warmup: Warmup, now: float) -> Step | None:
        sends: list[tuple[Timer, Send]] = []
        while self._to_warm and not self._closed and self._room > 0:
            place = self._to_warm[0]
            play = self._live(place)
            if play is not None and not play.in_flight and not play.passed[place.turn]:
                self._fire(play, Timer(now, next(self._order), place.turn, 0.0), sends)
                self._settle(play, now)
            elif self._flying:
                break  # its play is still busy, or still to begin
            self._to_warm.popleft()
        if sends or self._closed:
            return [send for _, send in sends]
        return Wait(None) if self._to_warm else self._warmed(now)

    def _due(self, now: float) -> list[Send]:
        sends: list[tuple[Timer, Send]] = []
        while not self._closed and self._room > 0 and (found := self._first(now)) is not None:
            play, timer = found
            self._fire(play, timer, sends)
            self._pass(play, now)
        return [send for _, send in sends]

    def _first(self, now: float) -> tuple[LivePlay, Timer] | None:
        """The head of the order, if its time has come; its timer is taken. What can never come is left out."""
        while (head := self._follow.head) is not None:
            play = self._play_of(head, now)
            if play is None and self._may_begin(head):
                return None
            if play is not None:
                self._bring_forward(play, now)
                if (timer := play.timer_of(head.turn)) is not None:
                    if timer.due > now:
                        return None
                    play.take(timer)
                    self._ready = max(self._ready, timer.due)
                    return play, timer._replace(due=self._ready)
                if play.in_flight and not play.passed[head.turn] and not play.given_up:
                    return None
            self._follow.skipped += 1
            self._ready = max(self._ready, now)
            self._pass(play, now)
        return None

    def _pass(self, play: LivePlay | None, now: float) -> None:
        """The head is done with: go on, and end its play if it was the last of it."""
        head = self._follow.head
        if head is None:
            return
        self._follow.at += 1
        self._follow.left[head.session, head.play] -= 1
        if play is not None:
            self._settle(play, now)
        if (then := self._follow.head) is not None and (after := self._live(then)) is not None:
            self._arm(after)

    def _live(self, place: Place) -> LivePlay | None:
        return self.live.get(self._follow.begun.get((place.session, place.play), -1))

    def _play_of(self, head: Place, now: float) -> LivePlay | None:
        """The head's play; with nothing but a number of requests, sessions begin until it is there."""
        key = (head.session, head.play)
        while self.rules.lanes is None and not self._intake.opens and key not in self._follow.begun:
            if (taken := self._intake.take()) is None:
                break
            self._play(taken, self._lane(), now)
        return self._live(head)

    def _may_begin(self, head: Place) -> bool:
        """Whether the head's play may still begin: a lane may become free, or it may arrive."""
        if (head.session, head.play) in self._follow.begun:
            return False
        return self._flying > 0 or super()._expected() is not None

    def _play(self, taken: Taken, lane: int, now: float, *, first: bool = False) -> None:
        key = (taken.session.key, taken.play)
        self._follow.begun[key] = taken.serial
        super()._play(taken, lane, now, first=first)
        self._settle(self.live[taken.serial], now)

    def _open(self, lane: int, now: float, *, first: bool = False) -> None:
        if self._follow.head is not None:
            super()._open(lane, now, first=first)

    def _expected(self) -> float | None:
        return super()._expected() if self._follow.head is not None else None

    def _fill(self, now: float) -> list[Send]:
        return []  # sessions begin when it is their turn

    def _settle(self, play: LivePlay, now: float) -> None:
        """What the other run did not send of it is passed over, and behind its last turn there the play ends."""
        if not play.held and not self._closed:
            self._pass_over_unlisted(play)
            if not self._follow.left[play.session.key, play.play]:
                play.stop()
        super()._settle(play, now)

    def _pass_over_unlisted(self, play: LivePlay) -> None:
        while unlisted := [one for one in play.timers if self._place(play, one.turn) not in self._listed]:
            for timer in unlisted:
                play.take(timer)
                play.dropped += 1
                play.release(timer.turn, timer.due, self.rules.scale, self._order)

    def _place(self, play: LivePlay, turn: int) -> Place:
        return Place(play.session.key, play.play, turn)

    def _arm(self, play: LivePlay) -> None:
        """Only the head of the order has a wake."""
        head = self._follow.head
        timer = play.timer_of(head.turn) if head is not None and self._live(head) is play else None
        due = None if timer is None or self._closed else timer.due
        if due is not None and self.rules.tree_idle_cap is not None and not play.in_flight:
            due = min(due, play.idle_since + self.rules.tree_idle_cap)
        self._wakes.set(play, due)
