"""When each turn is sent: a state machine without clock, sockets or tasks.

The rules:

1. A lane plays one session at a time. In a closed loop there are `lanes` of them, and each takes the next session when
   the whole tree of the one before has ended. In an open loop (`rate`) a session begins when it arrives, in a lane of
   its own; with `requests` alone one begins whenever fewer are in flight and no turn is due.
2. A turn is due when all turns that it waits for have ended, plus its gap. The first turn is due at once; another turn
   that waits for nothing has its gap counted from the start of the play.
3. With a start rule the first session of each lane begins in the middle (`starts.py`), and with a warm-up every lane
   sends some turns first, without pauses (`warmup.py`). When the last lane has sent its last such turn the run begins:
   the next turns of all lanes are placed at their recorded distances.
4. When a whole tree has been idle for `tree_idle_cap` seconds, all its timers move forward together until the first
   is due; when nothing at all has been in flight for `system_idle_cap`, all timers of all trees do. Idleness is what
   happened, not what was recorded, so a gap beside a working thread is never clipped.
5. A failed turn ends its session (running siblings are left to end), counts as ended, or stops the run.
6. After `seconds` nothing new is sent, nor by a lane that has sent `turns`; what is in flight has `drain` seconds.
7. With `requests` in flight nothing more is sent; what is due goes in order of due times when there is room.
8. Ties are broken by a counter: the same events give the same sends in the same order.

`next(now)` says what to do, `feed(now, event)` what happened; `now` never runs backwards by more than the driver's own
delay, and an event carries its own time. Each event costs O(log n) in the number of live plays.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from operator import itemgetter

from agentx.core import Play, Session
from agentx.replayer.intake import Intake, Taken
from agentx.replayer.moves import (
    MEASURE,
    WARMUP,
    Cancel,
    Cut,
    Done,
    Ended,
    Event,
    Failed,
    Fate,
    Key,
    Rules,
    Send,
    Step,
    Wait,
    always_send,
)
from agentx.replayer.plays import LivePlay, Timer
from agentx.replayer.split import Part
from agentx.replayer.starts import placed
from agentx.replayer.wakes import Wakes
from agentx.replayer.warmup import Warmup

__all__ = ["Cancel", "Cut", "Done", "Ended", "Event", "Failed", "Rules", "Schedule", "Send", "Wait", "always_send"]


WHOLE = Part()
NUDGE = 1e-9  # s; far more than rounding can leave of a wake behind the moment that it was moved to


class Schedule:
    """Plays `sessions` under `rules`. `fate` says what becomes of a turn that is due (context overflow, aborts).

    The iterator is read as lanes become free. It must end, or hold sessions of which something is sent.
    """

    def __init__(
        self,
        sessions: Iterator[Session],
        rules: Rules,
        fate: Callable[[Session, int], Fate] = always_send,
        part: Part = WHOLE,
    ) -> None:
        self.rules, self.part = rules, part
        self.live: dict[int, LivePlay] = {}
        self.began = 0.0
        self.stopped: str | None = None  # why the run ended before its plan did
        self._intake = Intake(sessions, rules, part)
        self._fate = fate
        self._order = count()
        self._wakes = Wakes(self.live, self._order)
        self._finished: list[Play] = []
        self._books: Counter[str] = Counter()
        self._warmup: Warmup | None = None  # while the run has not begun
        self._free: list[int] = []  # lanes of an open loop that are free again, a heap
        self._lanes_made = 0
        self._lane_turns: Counter[int] = Counter()
        self._most = math.inf if rules.requests is None else len(part.numbers(rules.requests))  # in flight
        self._idle_since = 0.0  # of the whole system, while nothing is in flight
        self._flying = 0
        self._room_since = -math.inf  # when a request could last go out again that the cap had held
        self._begun = self._closed = self._cancelled = False
        self._deadline = self._kill = math.inf

    def next(self, now: float) -> Step:
        """What to do at `now`: send turns, cancel some, wait, or nothing ever again."""
        if not self._begun:
            self._begin(now)
        if self._warmup is not None and (warming := self._warm(self._warmup, now)):
            return warming
        if now >= self._deadline and not self._closed:
            self._close(self._deadline, self._deadline + self.rules.drain)
        self._pass_over_idleness(now)
        self._arrive(now)
        sends = self._due(now)
        sends += self._fill(now)
        if sends:
            return sends
        if not self.live and (self._closed or self._expected() is None):
            return Done()
        if now >= self._kill and not self._cancelled:
            self._cancelled = True
            return Cancel(tuple(Key(serial, turn) for serial, play in self.live.items() for turn in play.in_flight))
        return Wait(self._wake())

    def feed(self, now: float, event: Event) -> None:
        """Tell that a turn ended at `now`. Raises KeyError for a turn that is not in flight."""
        play = self.live[event.key.serial]
        play.land(event.key.turn, now)
        self._room_since = now if self._room <= 0 else self._room_since
        self._flying -= 1
        self._idle_since = max(self._idle_since, now)
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
    def empty(self) -> int:
        """Sessions without turns, which are dropped."""
        return self._intake.empty

    @property
    def in_flight(self) -> int:
        return self._flying

    @property
    def warming(self) -> bool:
        """Whether the run proper is still to begin."""
        return not self._begun or self._warmup is not None

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
        if self.rules.start is not None or self.rules.warmup:
            self._warmup = Warmup(self.rules.warmup)
        else:
            self._start_clock(now)
        for lane in self.part.numbers(self.rules.lanes or 0):
            if not self._closed:
                self._open(lane, now, first=True)

    def _start_clock(self, now: float) -> None:
        self.began = self._idle_since = now
        if self.rules.seconds is not None:
            self._deadline = now + self.rules.seconds

    def _warm(self, warmup: Warmup, now: float) -> Step | None:
        """Send what the lanes still need to be warm; when all are, let the run begin."""
        sends: list[tuple[Timer, Send]] = []
        while not self._closed:
            each = ((play, turn) for play in self.live.values() if (turn := warmup.next_turn(play)) is not None)
            able = list(islice(each, None if self._room == math.inf else int(self._room)))
            if not able:
                break
            for play, turn in able:
                self._fire(play, Timer(now, next(self._order), turn, 0.0), sends)
                self._settle(play, now)
        if sends or self._closed:
            return [send for _, send in sends]
        if not all(map(warmup.is_warm, self.live.values())):
            return Wait(None)
        return self._warmed(now)

    def _warmed(self, now: float) -> Step | None:
        """All lanes are warm."""
        self._hand_off(now)
        return None

    def _distances(self) -> dict[int, dict[int, float]]:
        return {serial: play.distances(self.rules.scale) for serial, play in self.live.items()}

    def _hand_off(self, now: float, first: float | None = None) -> None:
        """The run begins: the next turns of all lanes are placed, whatever is still in flight."""
        self._warmup = None
        self._start_clock(now)
        for serial, offsets in placed(self._distances(), self.rules.phase, first).items():
            play = self.live[serial]
            play.place({turn: now + offset for turn, offset in offsets.items()}, now, self._order)
            self._settle(play, now)

    def _open(self, lane: int, now: float, *, first: bool = False) -> None:
        """Give the lane its next session, if there is one and the lane has turns left."""
        if self.rules.turns is not None and self._lane_turns[lane] >= self.rules.turns:
            return
        taken = self._intake.take()
        if taken is not None:
            self._play(taken, lane, now, first=first)

    def _play(self, taken: Taken, lane: int, now: float, *, first: bool = False) -> None:
        serial, session, number = taken
        play = LivePlay(serial, session, number, lane, now)
        self._books["plays"] += 1
        self._books["turns"] += len(session.turns)
        self.live[serial] = play
        if self._warmup is not None:
            self._warmup.enter(play, self.rules.start if first else None)
        else:
            play.begin(now, self.rules.scale, self._order)
            self._arm(play)

    def _expected(self) -> float | None:
        """When the next session arrives; None: no more do, or none ever does."""
        after = self._intake.expected()
        return None if after is None else self.began + after

    def _arrive(self, now: float) -> None:
        """Begin the sessions that have arrived; they are due when they did."""
        while not self._closed and (due := self._expected()) is not None and due <= now:
            self._play(self._intake.arrived(), self._lane(), due)

    def _fill(self, now: float) -> list[Send]:
        """With nothing but a number of requests to keep in flight: begin as many sessions as it takes."""
        sends: list[Send] = []
        if self.rules.lanes is None and not self._intake.opens:
            for _ in range(int(self._room)):  # each once: where none of their turns is sent, time has to pass
                if self._closed or self._room <= 0 or (taken := self._intake.take()) is None:
                    break
                self._play(taken, self._lane(), now)
                sends += self._due(now)
        return sends

    def _lane(self) -> int:
        """The lowest lane that is free."""
        if self._free:
            return heapq.heappop(self._free)
        self._lanes_made += 1
        return self.part.index + self.part.of * (self._lanes_made - 1)

    @property
    def _room(self) -> float:
        """How many more requests may be in flight."""
        return self._most - self._flying

    def _due(self, now: float) -> list[Send]:
        sends: list[tuple[Timer, Send]] = []
        while not self._closed and self._room > 0 and (play := self._wakes.pop(now)) is not None:
            self._bring_forward(play, now)
            while not self._closed and self._room > 0 and (due := play.first_due()) is not None and due <= now:
                self._fire(play, play.pop(), sends)
            self._settle(play, now)
        return [send for _, send in sorted(sends, key=itemgetter(0))]

    def _pass_over_idleness(self, now: float) -> None:
        """When all have been idle for too long, let the rest of the idleness have passed, for every tree alike."""
        cap, first = self.rules.system_idle_cap, self._wakes.first()
        if cap is None or first is None or self._flying or self._closed:
            return
        to = self._idle_since + cap
        if first <= to or now < to:
            return
        self.pass_over(first - to + NUDGE, to)

    def pass_over(self, by: float, to: float) -> None:
        """Move all timers forward by so much, none before `to`."""
        for play in self.live.values():
            play.idle_since -= by
            play.move(by, to)
            self._arm(play)

    def _bring_forward(self, play: LivePlay, now: float) -> None:
        cap, due = self.rules.tree_idle_cap, play.first_due()
        if cap is not None and due is not None and not play.in_flight and play.idle_since + cap <= min(due, now):
            play.bring_forward(play.idle_since + cap)

    def _fire(self, play: LivePlay, timer: Timer, sends: list[tuple[Timer, Send]]) -> None:
        """A turn's time has come: send it, or do what its fate is."""
        fate = self._fate(play.session, timer.turn)
        if fate == "send":
            sends.append((timer, self._launch(play, timer)))
        elif fate == "drop":
            play.dropped += 1
            play.release(timer.turn, timer.due, self.rules.scale, self._order)
        else:
            play.give_up("overflow")
            if fate == "stop":
                self.stop(timer.due, f"turn {timer.turn} of session {play.session.key!r} does not fit the context")

    def _launch(self, play: LivePlay, timer: Timer) -> Send:
        play.launch(timer.turn)
        self._flying += 1
        if self._warmup is not None:
            self._warmup.count(play, timer.turn)
        else:
            self._lane_turns[play.lane] += 1
            if self._lane_turns[play.lane] == self.rules.turns:
                play.stop()
        phase = MEASURE if self._warmup is None else WARMUP
        key = Key(play.serial, timer.turn)
        held = max(0.0, self._room_since - timer.due)
        return Send(key, play.session, play.play, play.lane, timer.due, timer.moved, phase, held)

    def _settle(self, play: LivePlay, now: float) -> None:
        """Set the play's next wake, or end it when nothing of it is left."""
        if not play.over and (play.in_flight or not self._closed):
            self._arm(play)
        elif play.serial in self.live:
            self._finish(play, now)

    def _arm(self, play: LivePlay) -> None:
        due = None if self._closed else play.first_due()
        if due is not None and self.rules.tree_idle_cap is not None and not play.in_flight:
            due = min(due, play.idle_since + self.rules.tree_idle_cap)
        self._wakes.set(play, due)

    def _finish(self, play: LivePlay, now: float) -> None:
        del self.live[play.serial]
        record = play.record(now)
        self._finished.append(record)
        self._books[record.outcome] += 1
        self._books["turns completed"] += play.completed
        self._books["turns failed"] += play.failures + play.cut
        self._books["turns unsent"] += record.turns - record.sent
        if self.rules.lanes is None:
            heapq.heappush(self._free, play.lane)
        elif not self._closed:
            self._open(play.lane, now)

    def _close(self, now: float, kill: float) -> None:
        """No new sends from `now` on; plays with nothing in flight end here, all others by `kill`."""
        self._kill = min(self._kill, kill)
        if self._closed:
            return
        self._closed = True
        self._wakes.clear()
        for play in list(self.live.values()):
            play.close(now)
            if not play.in_flight:
                self._finish(play, now)

    def _wake(self) -> float | None:
        first, cap = self._wakes.first() if self._room > 0 else None, self.rules.system_idle_cap
        times = [] if first is None else [first]
        if not self._closed and (arrival := self._expected()) is not None:
            times.append(arrival)
        if first is not None and cap is not None and not self._flying:
            times.append(self._idle_since + cap)
        if not self._closed:
            times.append(self._deadline)
        elif not self._cancelled:
            times.append(self._kill)
        until = min(times, default=math.inf)
        return None if until == math.inf else until
