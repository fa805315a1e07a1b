"""How the client itself is doing while it measures: lateness, CPU, pauses, open files.

What a process of Python does late, it measures late. So the event loop looks at its own lateness all the time, and once
a second at the CPU time of its own thread (an embedded engine has another one), at what the kernel made it wait for a
CPU, and at its open files. The garbage collector says when it stops everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLLECT = (50_000, 20, 100)  # objects, and generations, between collections
TICK = 0.05  # s between looks at the loop's lateness
LOOK = 1.0  # s between looks at CPU time and files
FULL = 0.9  # of a core: a loop that uses more has no time left
_FILES = Path("/proc/self/fd")


@contextlib.contextmanager
def seldom_collecting() -> Iterator[None]:
    """Keep Python's garbage collector from stopping the clock: what exists is set aside, and it looks less often.

    A replay makes many small objects and hardly any cycles. The settings of before come back at the end.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@dataclass(slots=True)
class LoopLag:
    """By how much the event loop was late for a timer, sampled every TICK seconds: time-stamps are off by as much."""

    late: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK
            await asyncio.sleep(TICK)
            self.late.append(loop.time() - due)

    def facts(self) -> dict[str, Any]:
        """Seconds; None when the run was too short to tell."""
        if not self.late:
            return {"samples": 0, "mean": None, "p99": None, "max": None}
        ordered = sorted(self.late)
        return {
            "samples": len(ordered),
            "mean": sum(ordered) / len(ordered),
            "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
            "max": ordered[-1],
        }


@dataclass(slots=True)
class Pauses:
    """Collections of garbage: how many, how long in all, and the longest, in seconds."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    clock: Callable[[], float] = time.perf_counter
    _began: float = 0.0

    def hear(self, phase: str, _: object) -> None:
        """What `gc.callbacks` calls."""
        if phase == "start":
            self._began = self.clock()
            return
        took = self.clock() - self._began
        self.count, self.seconds, self.longest = self.count + 1, self.seconds + took, max(self.longest, took)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        gc.callbacks.append(self.hear)
        try:
            yield
        finally:
            gc.callbacks.remove(self.hear)


@dataclass(slots=True)
class Cpu:
    """CPU time of the thread that runs the loop, by seconds. `busiest`: the largest share of a core in one of them."""

    clock: Callable[[], float] = time.monotonic
    used: Callable[[], float] = time.thread_time
    seconds: int = 0
    full: int = 0  # of those, in which the loop used more than FULL of a core
    busiest: float = 0.0
    _began: tuple[float, float] | None = None
    _last: tuple[float, float] | None = None

    def look(self) -> None:
        now = (self.clock(), self.used())
        if self._last is None or self._began is None:
            self._began = self._last = now
            return
        passed = now[0] - self._last[0]
        if passed > 0:
            share = (now[1] - self._last[1]) / passed
            self.seconds, self.full = self.seconds + 1, self.full + (share > FULL)
            self.busiest, self._last = max(self.busiest, share), now

    def facts(self) -> dict[str, Any]:
        if not self.seconds or self._began is None or self._last is None:
            return {"seconds": 0, "full": 0, "mean": None, "busiest": None}
        mean = (self._last[1] - self._began[1]) / (self._last[0] - self._began[0])
        return {"seconds": self.seconds, "full": self.full, "mean": mean, "busiest": self.busiest}


@dataclass(slots=True)
class Health:
    """All of it, for as long as `watch` is awaited inside `measured`."""

    lag: LoopLag = field(default_factory=LoopLag)
    pauses: Pauses = field(default_factory=Pauses)
    cpu: Cpu = field(default_factory=Cpu)
    files: int | None = None  # most that were open
    _waited: float | None = None
    _process: float = 0.0

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        self._waited, self._process = waited_for_cpu(), time.process_time()
        with seldom_collecting(), self.pauses.heard():
            yield

    async def watch(self) -> None:
        await asyncio.gather(self.lag.watch(), self._look())

    async def _look(self) -> None:
        while True:
            self.cpu.look()
            if (files := open_files()) is not None:
                self.files = max(files, self.files or 0)
            await asyncio.sleep(LOOK)

    def facts(self) -> dict[str, Any]:
        """For the end of the results; None where the system does not tell."""
        self.cpu.look()
        waited = waited_for_cpu()
        return {
            "loop_lag": self.lag.facts(),
            "cpu_seconds": time.process_time() - self._process,
            "loop_cpu": self.cpu.facts(),
            "cpu_wait": None if waited is None or self._waited is None else waited - self._waited,
            "gc": {"pauses": self.pauses.count, "seconds": self.pauses.seconds, "longest": self.pauses.longest},
            "files": {"most": self.files, "limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0]},
        }


def waited_for_cpu() -> float | None:
    """Seconds that this thread was able to run and did not get a CPU, by Linux; None: not told."""
    try:
        told = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()
        return int(told[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def open_files() -> int | None:
    """File descriptors of this process; None: not told."""
    try:
        return len(os.listdir(_FILES))
    except OSError:
        return None
