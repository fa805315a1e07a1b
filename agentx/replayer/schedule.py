"""When each turn is sent: a state machine without clock, sockets or tasks.

The rules, for `lanes` sessions in closed loop:

1. A lane plays one session at a time, and takes the next one when the whole tree of it has ended.
2. A turn is due when all turns that it waits for have ended, plus its gap. The first turn is due at once; another turn
   that waits for nothing has its gap counted from the start of the play.
3. When a whole tree has been idle for `tree_idle_cap` seconds, all its timers move forward together until the first
   is due. Idleness is what happened, not what was recorded, so a gap beside a working thread is never clipped.
4. A failed turn ends its session (running siblings are left to end), counts as ended, or stops the run.
5. After `seconds` nothing new is sent; what is in flight has `drain` seconds, then it is cut.
6. Ties are broken by a counter: the same events give the same sends in the same order.

`next(now)` says what to do, `feed(now, event)` what happened; `now` never runs backwards by more than the driver's own
delay, and an event carries its own time. Each event costs O(log n) in the number of live plays.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from typing import Literal, NamedTuple

from agentx.core import Play, Session
from agentx.replayer.plays import Key, LivePlay, Timer

Fate = Literal["send", "drop", "end", "stop"]  # of a turn that is due: drop it, end its session, or stop the run
OnFailure = Literal["end_session", "continue", "stop"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a plan decides when turns are sent. None: no limit."""

    lanes: int = 1
    scale: float = 1.0
    tree_idle_cap: float | None = None
    plays: int | None = None
    seconds: float | None = None
    drain: float = math.inf
    on_failure: OnFailure = "end_session"


class Ended(NamedTuple):
    key: Key


class Failed(NamedTuple):
    """`policy`: what this failure means, where it is not what the rules say of all."""

    key: Key
    policy: OnFailure | None = None


class Cut(NamedTuple):
    """The driver gave the turn up because it was told to."""

    key: Key


Event = Ended | Failed | Cut


class Send(NamedTuple):
    """Send this turn now. `moved` is by how many seconds idle caps brought it forward."""

    key: Key
    session: Session
    play: int
    lane: int
    due: float
    moved: float


class Wait(NamedTuple):
    """Nothing to do until then (None: until the next event)."""

    until: float | None


class Cancel(NamedTuple):
    """Give these turns up, and feed a Cut for each."""

    keys: tuple[Key, ...]


class Done(NamedTuple):
    pass


Step = list[Send] | Wait | Cancel | Done


def always_send(session: Session, turn: int) -> Fate:
    return "send"


class Schedule:
    """Plays `sessions` under `rules`. `fate` says what becomes of a turn that is due (context overflow, aborts).

    The iterator is read as lanes become free. It must end, or hold sessions of which something is sent.
    """

    def __init__(
        self, sessions: Iterator[Session], rules: Rules, fate: Callable[[Session, int], Fate] = always_send
    ) -> None:
        self.rules = rules
        self.live: dict[int, LivePlay] = {}
        self.empty = 0  # sessions without turns: dropped
        self.began = 0.0
        self.stopped: str | None = None  # why the run ended before its plan did
        self._sessions = sessions
        self._fate = fate
        self._wakes: list[tuple[float, int, int, int]] = []  # time, tie-break, serial, version of the play
        self._order = count()
        self._played: Counter[str] = Counter()
        self._finished: list[Play] = []
        self._books: Counter[str] = Counter()
        self._begun = self._closed = self._cancelled = False
        self._deadline = self._kill = math.inf

    def next(self, now: float) -> Step:
        """What to do at `now`: send turns, cancel some, wait, or nothing ever again."""
        if not self._begun:
            self._begin(now)
        if now >= self._deadline and not self._closed:
            self._close(self._deadline, self._deadline + self.rules.drain)
        sends = self._due(now)
        if sends:
            return sends
        if not self.live:
            return Done()
        if now >= self._kill and not self._cancelled:
            self._cancelled = True
            return Cancel(tuple(Key(serial, turn) for serial, play in self.live.items() for turn in play.in_flight))
        return Wait(self._wake())

    def feed(self, now: float, event: Event) -> None:
        """Tell that a turn ended at `now`. Raises KeyError for a turn that is not in flight."""
        play = self.live[event.key.serial]
        play.land(event.key.turn, now)
        if isinstance(event, Ended):
            play.completed += 1
        elif isinstance(event, Failed):
            play.failures += 1
        else:
            play.cut += 1
        policy = (event.policy or self.rules.on_failure) if isinstance(event, Failed) else "continue"
        if policy != "continue":
            play.give_up("failed")
            if policy == "stop":
                self.stop(now, f"turn {event.key.turn} of session {play.session.key!r} failed")
        elif not isinstance(event, Cut):
            play.release(event.key.turn, now, self.rules.scale, self._order)
        self._settle(play, now)

    def stop(self, now: float, why: str) -> None:
        """Send nothing more and cut what is in flight."""
        self.stopped = self.stopped or why
        self._close(now, now)

    def take_finished(self) -> list[Play]:
        """Records of the plays that are over and were not taken yet."""
        taken, self._finished = self._finished, []
        return taken

    @property
    def in_flight(self) -> int:
        return sum(len(play.in_flight) for play in self.live.values())

    def check_integrity(self) -> None:
        """Recount the books. Raises RuntimeError when a play or a turn is missing: a bug, never an input."""
        books = self._books
        if books["plays"] != books["done"] + books["failed"] + books["cut"] + len(self.live):
            raise RuntimeError(f"plays do not balance: {dict(books)}, {len(self.live)} live")
        for play in self.live.values():
            play.check_integrity()
        live = sum(len(play.session.turns) for play in self.live.values())
        if books["turns"] != books["turns completed"] + books["turns failed"] + books["turns unsent"] + live:
            raise RuntimeError(f"turns do not balance: {dict(books)}, {live} live")

    def _begin(self, now: float) -> None:
        self._begun = True
        self.began = now
        if self.rules.seconds is not None:
            self._deadline = now + self.rules.seconds
        for lane in range(self.rules.lanes):
            if not self._closed:
                self._open(lane, now)

    def _open(self, lane: int, now: float) -> None:
        """Give the lane its next session, if there is one."""
        if self.rules.plays is not None and self._books["plays"] >= self.rules.plays:
            return
        for session in self._sessions:
            if not session.turns:
                self.empty += 1
                continue
            serial = self._books["plays"]
            play = LivePlay(serial, session, self._played[session.key], lane, now)
            self._played[session.key] += 1
            self._books["plays"] += 1
            self._books["turns"] += len(session.turns)
            self.live[serial] = play
            play.begin(now, self.rules.scale, self._order)
            self._arm(play)
            return

    def _due(self, now: float) -> list[Send]:
        sends: list[tuple[Timer, Send]] = []
        while self._wakes and self._wakes[0][0] <= now and not self._closed:
            _, _, serial, version = heapq.heappop(self._wakes)
            play = self.live.get(serial)
            if play is None or play.version != version:
                continue
            self._bring_forward(play, now)
            while not self._closed and (due := play.first_due()) is not None and due <= now:
                self._fire(play, sends)
            self._settle(play, now)
        return [send for _, send in sorted(sends, key=itemgetter(0))]

    def _bring_forward(self, play: LivePlay, now: float) -> None:
        cap, due = self.rules.tree_idle_cap, play.first_due()
        if cap is not None and due is not None and not play.in_flight and play.idle_since + cap <= min(due, now):
            play.bring_forward(play.idle_since + cap)

    def _fire(self, play: LivePlay, sends: list[tuple[Timer, Send]]) -> None:
        """The play's first timer has run out: send the turn, or do what its fate is."""
        timer = play.pop()
        fate = self._fate(play.session, timer.turn)
        if fate == "send":
            play.launch(timer.turn)
            key = Key(play.serial, timer.turn)
            sends.append((timer, Send(key, play.session, play.play, play.lane, timer.due, timer.moved)))
        elif fate == "drop":
            play.dropped += 1
            play.release(timer.turn, timer.due, self.rules.scale, self._order)
        else:
            play.give_up("overflow")
            if fate == "stop":
                self.stop(timer.due, f"turn {timer.turn} of session {play.session.key!r} does not fit the context")

    def _settle(self, play: LivePlay, now: float) -> None:
        """Set the play's next wake, or end it when nothing of it is left."""
        if play.in_flight or (play.timers and not self._closed):
            self._arm(play)
        elif play.serial in self.live:
            self._finish(play, now)

    def _arm(self, play: LivePlay) -> None:
        play.version += 1
        due = play.first_due()
        if due is None or self._closed:
            return
        if self.rules.tree_idle_cap is not None and not play.in_flight:
            due = min(due, play.idle_since + self.rules.tree_idle_cap)
        heapq.heappush(self._wakes, (due, next(self._order), play.serial, play.version))

    def _finish(self, play: LivePlay, now: float) -> None:
        del self.live[play.serial]
        record = play.record(now)
        self._finished.append(record)
        self._books[record.outcome] += 1
        self._books["turns completed"] += play.completed
        self._books["turns failed"] += play.failures + play.cut
        self._books["turns unsent"] += record.turns - record.sent
        if not self._closed:
            self._open(play.lane, now)

    def _close(self, now: float, kill: float) -> None:
        """No new sends from `now` on; plays with nothing in flight end here, all others by `kill`."""
        self._kill = min(self._kill, kill)
        if self._closed:
            return
        self._closed = True
        self._wakes.clear()
        for play in [play for play in self.live.values() if not play.in_flight]:
            self._finish(play, now)

    def _wake(self) -> float | None:
        while self._wakes and self._stale(self._wakes[0]):
            heapq.heappop(self._wakes)
        times = [self._wakes[0][0]] if self._wakes else []
        if not self._closed:
            times.append(self._deadline)
        elif not self._cancelled:
            times.append(self._kill)
        until = min(times, default=math.inf)
        return None if until == math.inf else until

    def _stale(self, wake: tuple[float, int, int, int]) -> bool:
        play = self.live.get(wake[2])
        return play is None or play.version != wake[3]
