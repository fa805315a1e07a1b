"""Which sessions are played, and in which order: an iterator that reads the trace as lanes become free.

In file order one session is in memory at a time, however long the trace; playing them again reads the file again.
Shuffling holds all sessions, so it is refused for traces of more than MAX_SHUFFLED turns; each pass has an order of
its own, by a hash of (seed, pass, position).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b

from agentx.core import Session
from agentx.errors import BadInput
from agentx.replayer.found import Found

MAX_SHUFFLED = 500_000  # turns, at about 1 KB each


class Source:
    """The sessions of `trace` (which can be iterated again and again) in order of play; iterate once.

    `skip` says whether a session is not played at all, `fit` makes it what is played, `keep` says whether anything of
    that would be sent; the others are counted, and a pass that keeps nothing is the last one. `first` are the positions
    in the trace of sessions that are played before all others, in this order, and then not again in the first pass.
    """

    def __init__(
        self,
        trace: Iterable[Session],
        *,
        shuffle: bool = False,
        seed: int = 0,
        recycle: bool = False,
        keep: Callable[[Session], bool] = lambda session: True,
        skip: Callable[[Session], bool] = lambda session: False,
        fit: Callable[[Session], Session] = lambda session: session,
        first: Sequence[int] = (),
    ) -> None:
        self._first, self._skip, self._fit = first, skip, fit
        self._trace, self._shuffle, self._seed, self._recycle, self._keep = trace, shuffle, seed, recycle, keep
        self.found = Found()

    def __iter__(self) -> Iterator[Session]:
        held = self._hold() if self._shuffle else None
        chosen = self._chosen()
        begun: set[str] = set()
        for place in self._first:
            session = chosen[place]
            if (played := self._played(session, first=session.key not in begun)) is not None:
                yield played
            begun.add(session.key)
        number = 0
        while True:
            kept = 0 if number else len(chosen)
            for session in self._checked(number) if held is None else _shuffled(held, f"{self._seed}/{number}"):
                if session.key in begun and not number:
                    continue
                if (played := self._played(session, first=not number)) is not None:
                    kept += 1
                    yield played
            if not self._recycle or not kept:
                return
            number += 1

    def _played(self, session: Session, *, first: bool) -> Session | None:
        """What of a session is played, if it is; the first time it is counted."""
        if first:
            self.found.read.add(session)
        if self._skip(session):
            if first:
                self.found.skipped.append(session.key)
                self.found.removed.add(session)
            return None
        played = self._fit(session)
        if first:
            self.found.shorten(played)
        if self._keep(played):
            return played
        if first:
            self.found.dropped.append(session.key)
        return None

    def _chosen(self) -> dict[int, Session]:
        wanted = set(self._first)
        return {place: session for place, session in enumerate(self._trace) if place in wanted} if wanted else {}

    def _checked(self, number: int) -> Iterator[Session]:
        """One pass over the trace; what its end has lost is noted on the first one."""
        for session in self._trace:
            if not number and not session.complete:
                self.found.torn.append(session.key)
            yield session

    def _hold(self) -> list[Session]:
        held, turns = [], 0
        for session in self._checked(0):
            held.append(session)
            turns += len(session.turns)
            if turns > MAX_SHUFFLED:
                raise BadInput(
                    f"a trace of more than {MAX_SHUFFLED:,} turns is too long to shuffle in memory", hint="order: file"
                )
        return held


def _shuffled(sessions: list[Session], key: str) -> list[Session]:
    places = sorted(range(len(sessions)), key=lambda place: blake2b(f"{key}/{place}".encode()).digest())
    return [sessions[place] for place in places]
