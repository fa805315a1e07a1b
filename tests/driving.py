"""A driver of schedules in virtual time, for tests."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from agentx.replayer.moves import Cancel, Cut, Done, Ended, Failed, Key, Send, Wait
from agentx.replayer.schedule import Schedule


@dataclass
class World:
    """A driver in virtual time: every turn takes `seconds(send)`, and fails when `fails(send)`."""

    schedule: Schedule
    seconds: object = lambda send: 1.0
    fails: object = lambda send: False
    now: float = 0.0
    sends: list[tuple[float, Send]] = field(default_factory=list)
    ends: dict[Key, float] = field(default_factory=dict)
    cuts: list[Key] = field(default_factory=list)
    most: int = 0

    def run(self, steps=100_000):
        flying, order = [], 0
        for _ in range(steps):
            step = self.schedule.next(self.now)
            self.schedule.check_integrity()
            self.most = max(self.most, len(self.schedule.live))
            if isinstance(step, Done):
                return self
            if isinstance(step, Cancel):
                self.cuts += step.keys
                flying = [item for item in flying if item[2].key not in step.keys]
                heapq.heapify(flying)
                for key in step.keys:
                    self.schedule.feed(self.now, Cut(key))
            elif isinstance(step, Wait):
                times = [t for t in (step.until, flying[0][0] if flying else None) if t is not None]
                assert times, "waits for nothing"
                assert min(times) >= self.now
                self.now = min(times)
                if flying and flying[0][0] <= self.now:
                    send = heapq.heappop(flying)[2]
                    self.ends[send.key] = self.now
                    self.schedule.feed(self.now, (Failed if self.fails(send) else Ended)(send.key))
            else:
                for send in step:
                    self.sends.append((self.now, send))
                    heapq.heappush(flying, (self.now + self.seconds(send), order, send))
                    order += 1
        raise AssertionError("did not end")

    @property
    def when(self):
        """(time, session, turn) of all sends."""
        return [(at, send.session.id, send.key.turn) for at, send in self.sends]

    @property
    def outcomes(self):
        return [(play.session, play.outcome) for play in self.schedule.take_finished()]
