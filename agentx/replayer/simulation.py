"""Runs a schedule against the embedded engine in virtual time: the second of the schedule's two drivers.

The clock jumps to the next thing that happens: a turn that is due, the end of a batch, a look at the counters. So an
hour costs what its events cost, and the same plan, trace, seed and salt give the same records to the last byte.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from agentx.core import Failure, Sample
from agentx.engine.engine import Admitted, Engine, Event, Finished, Refused, Request, Tokens
from agentx.engine.http_calls import Call, Rejected, check_context, check_limit, namespace_of
from agentx.errors import BadInput
from agentx.replayer.embedded import ENDPOINT, MODEL, counters_of
from agentx.replayer.exchange import told_failure
from agentx.replayer.flights import Flight
from agentx.replayer.moves import Cancel, Cut, Done, Ended, Failed, Key, OnFailure, Send, Wait
from agentx.replayer.moves import Event as Told
from agentx.replayer.prompts import Prompts
from agentx.replayer.schedule import Schedule
from agentx.replayer.wires import Wire
from agentx.results import ResultsWriter
from agentx.wire.reply import ServerError

SAMPLE_EVERY = 5.0  # s between samples of the engine's counters
REFUSAL = 1e-3  # s that a refusal takes at least: a loop of refusals must not stop the clock


@dataclass(slots=True)
class Simulation:
    """Everything that one run needs. `told` hears of the time as it goes on, `stopping` says whether to stop."""

    schedule: Schedule
    engine: Engine
    prompts: Prompts
    writer: ResultsWriter
    wire: Wire
    namespace: Callable[[Send], str]
    stall: float
    on_overflow: OnFailure
    measured: float | None = None
    told: Callable[[float], None] = lambda now: None
    stopping: Callable[[], str | None] = lambda: None
    now: float = 0.0
    error: BadInput | None = None
    interrupted: bool = False
    _flying: dict[str, Flight] = field(default_factory=dict)
    _landed: list[tuple[float, str, Flight]] = field(default_factory=list)  # a heap: what is over, and when it is
    _silent: list[tuple[float, str]] = field(default_factory=list)  # a heap: when to look at a request again
    _wake: float = math.inf  # the engine's
    _sample_at: float = SAMPLE_EVERY
    _warming: bool = True
    _fresh: bool = False  # the engine has not stepped since something was sent
    _heard: bool = False  # something has happened that the schedule has to hear of

    def run(self) -> None:
        """Play until the schedule is done. Raises WriteFailed when a record cannot be written."""
        if self.schedule.rules.warmup:
            self._sample()
        while not self._step():
            pass
        self._sample()

    def _step(self) -> bool:
        """Hear what has ended, do what is due, and let time go on. Returns whether all is over."""
        while self._landed and self._landed[0][0] <= self.now:
            self._land(heapq.heappop(self._landed)[2])
        if not self.interrupted and (why := self.stopping()):
            self.interrupted = True
            self.schedule.stop(self.now, why)
        try:
            step = self.schedule.next(self.now)
        except BadInput as error:  # the trace, which is read as the run goes on
            self._give_up(error)
            return False
        finally:
            for play in self.schedule.take_finished():
                self.writer.play(play)
        if self._warming and not self.schedule.warming:
            self._warming = False
            self._sample()  # what the window is measured against
        if isinstance(step, list):
            for send in step:
                self._launch(send)
        elif isinstance(step, Cancel):
            self._cut(step.keys)
        elif isinstance(step, Wait):
            self._wait(math.inf if step.until is None else step.until)
        return isinstance(step, Done)

    def _wait(self, until: float) -> None:
        """Let time go on until then, or until something has happened that the schedule has to hear of."""
        self._heard = False
        while not self._heard:
            if not self._fresh:
                over = self._landed[0][0] if self._landed else math.inf
                silent = self._silent[0][0] if self._silent else math.inf
                self.now = max(self.now, min(until, self._wake, self._sample_at, over, silent))
                self._heard = self.now >= until or self.now >= over
            self._go_on()

    def _go_on(self) -> None:
        """What happens at this time, apart from the schedule."""
        now = self.now
        if self._fresh or now >= self._wake:
            self._fresh = False
            events, wake = self.engine.step(now)
            self._wake = math.inf if wake is None else wake
            self._hear(events)
        while self._silent and self._silent[0][0] <= now:
            self._look(heapq.heappop(self._silent)[1])
        if now >= self._sample_at:
            self._sample()
            self._sample_at += SAMPLE_EVERY
            self.told(now)
            self._heard = True  # so that a signal is not left waiting

    def _launch(self, send: Send) -> None:
        rid = f"sim-{send.key.serial}-{send.key.turn}"
        flight = Flight(send, self.now, rid)
        most = send.tokens
        try:
            prompt = self.prompts.ids(send)
            self._check(rid, prompt, most)
            request = self._request(send, rid, prompt)
            self.engine.submit(request, self.now)
        except BadInput as error:  # content that this wire cannot carry
            flight.fail(Failure("input", str(error)), self.now)
            self._over(flight)
            self._give_up(error)
        except (Rejected, Refused) as error:
            self._refuse(flight, error)
        else:
            self._fresh = True
            self._flying[rid] = flight
            heapq.heappush(self._silent, (self.now + self.stall, rid))

    def _request(self, send: Send, rid: str, prompt: bytes) -> Request:
        free = self.wire.kind == "messages"  # an API that knows no fewest tokens, and no end that is ignored
        fewest = send.tokens if self.wire.exact and not free else 0
        name = namespace_of(self.namespace(send), None)
        return Request(rid, prompt, send.tokens, min_new=fewest, ignore_eos=not free, namespace=name)

    def _check(self, rid: str, prompt: bytes, most: int) -> None:
        """What a server looks at before it asks the engine. Raises Rejected."""
        settings = self.engine.settings
        if self.wire.text or self.wire.kind == "chat-ids":
            check_limit(most, settings)
            if self.wire.text and len(prompt) // 4 <= 1:
                raise Rejected("Messages cannot be empty.")
        check_context(Call(rid, MODEL, prompt, most, 0, True, "", True), settings)

    def _refuse(self, flight: Flight, error: Rejected | Refused) -> None:
        """Answered like a server: chat's own checks by status, all else in a stream that has begun."""
        in_stream = isinstance(error, Refused) or self.wire.kind in ("generate", "messages")
        failure = told_failure(ServerError(error.status, error.message), "stream" if in_stream else "http")
        flight.fail(failure, self.now + max(REFUSAL, self.engine.settings.timing.request))
        flight.status = 200 if in_stream else error.status
        self._over(flight)

    def _over(self, flight: Flight) -> None:
        heapq.heappush(self._landed, (flight.end, flight.rid, flight))

    def _hear(self, events: Iterable[Event]) -> None:
        for event in events:
            flight = self._flying.get(event.rid)
            if flight is None:  # it was given up
                continue
            if isinstance(event, Tokens):
                flight.take(event)
            elif isinstance(event, Finished):
                flight.finish(event)
                self._land(self._flying.pop(event.rid))
            elif isinstance(event, Admitted):
                flight.admitted = event

    def _look(self, rid: str) -> None:
        """Give a request up of which nothing was heard for too long."""
        flight = self._flying.get(rid)
        if flight is None:
            return
        if flight.heard + self.stall > self.now:
            heapq.heappush(self._silent, (flight.heard + self.stall, rid))
            return
        self._abort(rid, Failure("stall", f"no byte came for {self.stall:g} s"))

    def _cut(self, keys: Iterable[Key]) -> None:
        for key in keys:
            rid = f"sim-{key.serial}-{key.turn}"
            if rid in self._flying:
                self._abort(rid, Failure("cut", "the run ended first"))

    def _abort(self, rid: str, failure: Failure) -> None:
        flight = self._flying.pop(rid)
        self.engine.abort(rid, self.now)
        self._fresh = True
        flight.fail(failure, self.now)
        self._land(flight)

    def _land(self, flight: Flight) -> None:
        self._heard = True
        self.writer.attempt(flight.attempt(self.wire))
        send = flight.send
        if (reply := flight.reply(self.wire)) is not None:
            self.prompts.replies.keep(send.key.serial, send.key.turn, reply)
        self.schedule.feed(flight.end, self._event(send.key, flight.failure))
        if send.key.serial not in self.schedule.live:
            self.prompts.forget(send.key.serial, send.session)

    def _event(self, key: Key, failure: Failure | None) -> Told:
        if failure is None:
            return Ended(key)
        if failure.kind == "cut":
            return Cut(key)
        return Failed(key, self.on_overflow if failure.kind == "overflow" else None)

    def _give_up(self, error: BadInput) -> None:
        self.error = self.error or error
        self.schedule.stop(self.now, str(error))

    def _sample(self) -> None:
        rising, gauges = counters_of(self.engine.counters())
        self.writer.sample(Sample(self.now, ENDPOINT, rising, {"gauges": gauges}))

    def facts(self) -> dict[str, Any]:
        """What only the driver knows, for the end of the results."""
        if self.schedule.stopped:
            return {"reason": self.schedule.stopped}
        if self.measured is not None:
            return {"window": [self.schedule.began, self.schedule.began + self.measured]}
        return {}
