"""Where tokens of a shadow cache went: the last removal of each run of tokens, and for whose sake it was removed.

A run is found by how many tokens stand above it and by its first tokens. What was removed piece by piece is found piece
by piece, as long as the pieces begin where they did; what begins elsewhere is removed without a cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentx.engine.nodes import ID_BYTES, CacheEvent

EVICTED, NOT_BACKED_UP, HOST_DROPPED = "evicted", "not_backed_up", "host_dropped"
_FIRST = 4 * ID_BYTES  # bytes that tell a run: stand-ins of two streams do not share four tokens


class Grave(NamedTuple):
    """`tokens` that were removed at `at` seconds of the run, to make room for the request number `by` (None: it is not
    known whose)."""

    cause: str
    tokens: int
    at: float
    by: int | None


class Graves:
    """Listens to a cache. Say who is at work, and when, before the cache is asked for room."""

    def __init__(self) -> None:
        self._by_start: dict[tuple[int, bytes], Grave] = {}
        self._at, self._by = 0.0, -1

    def working(self, at: float, by: int) -> None:
        self._at, self._by = at, by

    def heard(self, event: CacheEvent) -> None:
        cause = _cause(event)
        if cause is not None:
            place = event.start, event.key[:_FIRST]
            self._by_start[place] = Grave(cause, event.tokens, self._at, self._by)

    def of(self, ids: bytes, start: int, stop: int) -> Iterator[Grave]:
        """What became of a prompt's tokens [start, stop), in order; less than all of them where it is not known."""
        while start < stop:
            at = start * ID_BYTES
            grave = self._by_start.get((start, ids[at : at + _FIRST]))
            if grave is None:
                return
            yield grave._replace(tokens=min(grave.tokens, stop - start))
            start += grave.tokens


def _cause(event: CacheEvent) -> str | None:
    """Why a run of tokens is on no tier any more; None while it is on one."""
    if event.kind == "drop":
        return NOT_BACKED_UP if event.cause == "unbacked" else HOST_DROPPED
    if event.kind == "evict" and event.cause == "capacity":
        return EVICTED if event.tier == "device" else HOST_DROPPED
    return None
