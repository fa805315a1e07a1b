"""One timer that goes off on time.

asyncio's own timers are as exact as the time-out of its selector: epoll counts whole milliseconds and rounds up, so
every send would be half a millisecond late on average. Linux has timers that are files, exact to microseconds; where
there is none, asyncio's is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from functools import lru_cache

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, getattr(os, "O_CLOEXEC", 0)
_MONOTONIC = 1  # CLOCK_MONOTONIC, the clock of asyncio's loops
_SOON = 1e-9  # s; a timer set to 0 would never go off


class _Spec(ctypes.Structure):
    """struct itimerspec: interval, then value, each in seconds and nanoseconds."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("again", "again_ns", "at", "at_ns"))


class Alarm:
    """Calls `ring` at a time of the running loop; the last one that was set counts. Close it in the same loop."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring, self._loop = ring, asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._file = _timer_file()
        if self._file is not None:
            self._loop.add_reader(self._file, self._rang)

    def at(self, when: float) -> None:
        """Ring at `when`, in seconds of the loop's clock; at once if that has passed."""
        if self._file is None:
            self.off()
            self._handle = self._loop.call_at(when, self._ring)
        else:
            _set(self._file, max(when, _SOON))

    def off(self) -> None:
        """Do not ring."""
        if self._handle is not None:
            self._handle.cancel()
        if self._file is not None:
            _set(self._file, 0.0)

    def close(self) -> None:
        self.off()
        if self._file is not None:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = None

    def _rang(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it was set anew in the meantime
            os.read(self._file or 0, 8)
            self._ring()


def _timer_file() -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        file = int(_libc().timerfd_create(_MONOTONIC, _NONBLOCK | _CLOEXEC))
    except (OSError, AttributeError):
        return None
    return file if file >= 0 else None


def _set(file: int, when: float) -> None:
    seconds = int(when)
    spec = _Spec(0, 0, seconds, int((when - seconds) * 1e9))
    _libc().timerfd_settime(file, _ABSOLUTE, ctypes.byref(spec), None)


@lru_cache(1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
