"""A run's requests played on the embedded engine in virtual time, as the agents of the run would have sent them.

A turn is sent as long after the end of what it waits for as it was in the run: in a slower simulation it comes later,
and one that comes right after an end does so here. Where in a decode step another turn comes is chance: a constant's
twelfth digit moves it. So a run is played several times with pauses that differ by up to half a step, and what is
looked at is all these plays together.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median

from agentx.engine.engine import Admitted, Engine, Event, Finished, Refused, Request, Tokens
from agentx.engine.nodes import ID_BYTES
from agentx.engine.settings import EngineSettings, Timing
from agentx.replayer.calibration_run import CalibrationRun

PLAYED = 240  # requests that are enough to even chance out: a run with fewer is played more often
LEAST, MOST = 2, 4  # times that a run is played


@dataclass(slots=True)
class Played:
    """What the engine did with one request. Seconds and tokens; None: it did not come to that."""

    ttft: float | None = None
    tpot: float | None = None
    cached: int | None = None
    prompt: int | None = None
    sent: float = 0.0
    _first: float = 0.0
    _head: int = 0

    def take(self, event: Tokens) -> None:
        if self.ttft is None:
            self.ttft, self._first, self._head = event.at - self.sent, event.at, len(event.ids) // ID_BYTES

    def finish(self, event: Finished) -> None:
        self.prompt = event.prompt_tokens
        rest = event.completion_tokens - self._head
        if self.ttft is not None and rest > 0 and event.reason != "abort":
            self.tpot = (event.at - self._first) / rest


def with_timing(settings: EngineSettings, timing: Timing) -> EngineSettings:
    return settings.model_copy(update={"timing": timing})


def plays(run: CalibrationRun, timing: Timing, times: int | None = None) -> list[list[Played]]:
    """What the run's requests would have seen under `timing`, in each of several plays (None: as many as it needs)."""
    times = times or min(MOST, max(LEAST, PLAYED // len(run.sent)))
    return [play(run, timing, _pauses(run, number)) for number in range(times)]


def play(run: CalibrationRun, timing: Timing, pauses: Sequence[float] | None = None) -> list[Played]:
    """What each of the run's requests would have seen under `timing`, with these `pauses` (None: the run's own)."""
    one = _Play(run, Engine(with_timing(run.settings, timing)), pauses or [each.pause for each in run.sent])
    one.run_out()
    return one.played


@dataclass(slots=True)
class _Play:
    run: CalibrationRun
    engine: Engine
    pauses: Sequence[float]
    played: list[Played] = field(default_factory=list)
    _waiting: list[int] = field(default_factory=list)  # ends that a request still waits for
    _agenda: list[tuple[float, int, bool]] = field(default_factory=list)  # when, which, whether it is given up

    def __post_init__(self) -> None:
        self.played = [Played() for _ in self.run.sent]
        self._waiting = [len(each.after) for each in self.run.sent]
        self._agenda = [(pause, index, False) for index, pause in enumerate(self.pauses) if not self._waiting[index]]
        heapq.heapify(self._agenda)

    def run_out(self) -> None:
        """Until nothing is left to send or to end."""
        wake: float | None = None
        while self._agenda or wake is not None:
            now = min(self._agenda[0][0] if self._agenda else math.inf, math.inf if wake is None else wake)
            while self._agenda and self._agenda[0][0] <= now:
                _, index, given_up = heapq.heappop(self._agenda)
                self._give_up(index, now) if given_up else self._send(index, now)
            events, wake = self.engine.step(now)
            for event in events:
                self._hear(event)

    def _send(self, index: int, now: float) -> None:
        """A request that this engine refuses has ended, without figures."""
        sent = self.run.sent[index]
        self.played[index].sent = now
        request = Request(str(index), self.run.prompt(index), sent.reply, min_new=sent.reply, ignore_eos=True)
        try:
            self.engine.submit(request, now)
        except Refused:
            self._ended(index, now)
            return
        if sent.given_up is not None:
            heapq.heappush(self._agenda, (now + sent.given_up, index, True))

    def _give_up(self, index: int, now: float) -> None:
        self.engine.abort(str(index), now)

    def _hear(self, event: Event) -> None:
        index = int(event.rid)
        if isinstance(event, Tokens):
            self.played[index].take(event)
        elif isinstance(event, Admitted):
            self.played[index].cached = event.cached_device + event.cached_host
        elif isinstance(event, Finished):
            self.played[index].finish(event)
            self._ended(index, event.at)

    def _ended(self, index: int, at: float) -> None:
        for later in self.run.followers[index]:
            self._waiting[later] -= 1
            if not self._waiting[later]:
                heapq.heappush(self._agenda, (at + self.pauses[later], later, False))


def _pauses(run: CalibrationRun, number: int) -> list[float]:
    """The run's pauses, those longer than a decode step moved by up to half of one; the same for every timing."""
    speculation = run.settings.speculation
    length = speculation.acceptance.length if speculation.algorithm else 1.0
    step = length * median([each.tpot for each in run.sent if each.tpot] or [0.0])
    chance = Random(number)
    return [each.pause + (step * (chance.random() - 0.5) if each.pause > step else 0.0) for each in run.sent]
