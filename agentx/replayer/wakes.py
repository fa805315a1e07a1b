"""When each live play has something to do next: a heap of which only the newest entry of each play counts."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from agentx.replayer.plays import LivePlay


class Wakes:
    """`order` breaks ties. A play's version tells its newest entry from those that it has outlived."""

    def __init__(self, live: Mapping[int, LivePlay], order: Iterator[int]) -> None:
        self._live, self._order = live, order
        self._heap: list[tuple[float, int, int, int]] = []  # time, tie-break, serial, version of the play

    def set(self, play: LivePlay, at: float | None) -> None:
        """The play's only wake from now on; None: it has none."""
        play.version += 1
        if at is not None:
            heapq.heappush(self._heap, (at, next(self._order), play.serial, play.version))

    def first(self) -> float | None:
        """The earliest wake of all."""
        while self._heap and self._play(self._heap[0]) is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> LivePlay | None:
        """The play whose wake came first, by `now`; its wake is gone then."""
        first = self.first()
        return None if first is None or first > now else self._play(heapq.heappop(self._heap))

    def __len__(self) -> int:
        """Entries that are kept, outlived ones included."""
        return len(self._heap)

    def clear(self) -> None:
        self._heap.clear()

    def _play(self, wake: tuple[float, int, int, int]) -> LivePlay | None:
        play = self._live.get(wake[2])
        return play if play is not None and play.version == wake[3] else None
