"""A play in outline: the schedule of a run in virtual time, with a cache of lines and a server that is a few sums.

For questions that want thousands of plays. A request waits until there is room for it beside those that run, and until
the prefills before it are done; a prefill stalls the replies that stream; a reply's steps take what they take with the
requests that run when it begins. Reuse comes from `lines.py`: lines of context against a pool, no pages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agentx.core import Session
from agentx.engine.settings import EngineSettings
from agentx.engine.timing import decode_seconds, prefill_seconds
from agentx.replayer.lines import Lines
from agentx.replayer.moves import MEASURE, Cancel, Cut, Done, Ended, Fate, Key, Rules, Send, Wait
from agentx.replayer.schedule import Schedule

Prefix = Callable[[Session, int], int]
"""Tokens of a turn's prompt that an unlimited cache would have."""


@dataclass(slots=True)
class Rough:
    """Sums over the measured phase, in tokens; `seconds` is how long it was."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    unlimited: int = 0
    output: float = 0.0
    seconds: float = 0.0

    @property
    def reuse(self) -> float | None:
        return self.cached / self.prompt if self.prompt else None

    @property
    def lost(self) -> float | None:
        """Share of the prompt tokens that an unlimited cache would have had, and this one had not."""
        return (self.unlimited - self.cached) / self.prompt if self.prompt else None

    @property
    def rate(self) -> float:
        """Output tokens per second."""
        return self.output / self.seconds if self.seconds > 0 else 0.0


@dataclass(slots=True)
class _Flight:
    send: Send
    line: tuple[int, int]
    end: float
    prefilled: float


@dataclass(slots=True)
class RoughServer:
    """The server: requests wait, run and end. `found` is summed as they are taken in."""

    settings: EngineSettings
    lines: Lines
    prefix: Prefix
    found: Rough = field(default_factory=Rough)
    flying: list[_Flight] = field(default_factory=list)
    waiting: deque[tuple[float, Send]] = field(default_factory=deque)
    free_at: float = 0.0

    def admit(self, now: float) -> None:
        """Take in what waits, first come first served."""
        timing, speculation = self.settings.timing, self.settings.speculation
        while self.waiting and len(self.flying) < self.settings.scheduler.max_running:
            came, send = self.waiting[0]
            turn = send.session.turns[send.key.turn]
            line, wanted = (send.key.serial, turn.thread), self.prefix(send.session, send.key.turn)
            hit = self.lines.begin(line, wanted, turn.isl, send.tokens)
            if hit is None:
                return
            self.waiting.popleft()
            begin = max(now, came + timing.request, self.free_at)
            took = prefill_seconds(timing, [(hit, turn.isl)], 0)
            self.free_at = begin + took
            for other in self.flying:
                other.end += took if other.end > begin else 0.0
            context = turn.isl + sum(each.send.session.turns[each.send.key.turn].isl for each in self.flying)
            step = decode_seconds(timing, len(self.flying) + 1, context, speculation.algorithm is not None)
            end = self.free_at + step * (send.tokens - 1) / speculation.acceptance.length
            self.flying.append(_Flight(send, line, end, self.free_at))
            if send.phase == MEASURE:
                self.found.requests += 1
                self.found.prompt += turn.isl
                self.found.cached += hit
                self.found.unlimited += wanted

    def over(self, now: float) -> list[Key]:
        """Requests that have ended by `now`."""
        done = [each for each in self.flying if each.end <= now]
        self.flying = [each for each in self.flying if each.end > now]
        for each in done:
            self.lines.end(each.line)
        return [each.send.key for each in sorted(done, key=lambda each: each.end)]

    def count(self, each: _Flight, start: float, stop: float) -> None:
        """Tokens of a reply that come inside the window, evenly spread over the time that it streams."""
        streams = max(each.end - each.prefilled, 1e-9)
        inside = min(each.end, stop) - max(each.prefilled, start)
        self.found.output += each.send.tokens * min(1.0, max(0.0, inside / streams))


def play(
    sessions: Iterator[Session],
    rules: Rules,
    fate: Callable[[Session, int], Fate],
    settings: EngineSettings,
    prefix: Prefix,
) -> Rough:
    """Play `sessions` by `rules` against a server of these settings."""
    schedule = Schedule(sessions, rules, fate)
    server = RoughServer(settings, Lines(capacity_of(settings), settings.cache.pool, settings.scheduler.chunk), prefix)
    now, ended = 0.0, []
    while True:
        step = schedule.next(now)
        schedule.take_finished()
        if isinstance(step, Done):
            break
        if isinstance(step, Cancel):
            ended += _cancel(server, step)
            for key in step.keys:
                schedule.feed(now, Cut(key))
        elif isinstance(step, Wait):
            times = [at for at in (step.until, *(each.end for each in server.flying)) if at is not None]
            now = max(now, min(times))
            before = list(server.flying)
            keys = server.over(now)
            ended += [each for each in before if each.send.key in set(keys)]
            for key in keys:
                schedule.feed(now, Ended(key))
            server.admit(now)
        else:
            server.waiting.extend((now, send) for send in step)
            server.admit(now)
    return _summed(server, ended, schedule.began, rules.seconds, now)


def _cancel(server: RoughServer, step: Cancel) -> list[_Flight]:
    cut = [each for each in server.flying if each.send.key in step.keys]
    server.flying = [each for each in server.flying if each.send.key not in step.keys]
    server.waiting = deque(each for each in server.waiting if each[1].key not in step.keys)
    for each in cut:
        server.lines.end(each.line)
    return cut


def _summed(server: RoughServer, ended: list[_Flight], began: float, seconds: float | None, now: float) -> Rough:
    stop = now if seconds is None else min(now, began + seconds)
    for each in ended:
        if each.send.phase == MEASURE:
            server.count(each, began, stop)
    server.found.seconds = stop - began
    return server.found


def capacity_of(settings: EngineSettings) -> int:
    """Tokens that device and host hold together: their sum under write_back, else the larger of the two, since what is
    on the device is on the host too (docs/fidelity.md)."""
    pool, host = settings.cache.pool, settings.cache.host
    return pool + host.tokens if host.write == "write_back" else max(pool, host.tokens)
