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

MAX_SHUFFLED = 500_000  # turns, at about 1 KB each


class Source:
    """The sessions of `trace` (which can be iterated again and again) in order of play; iterate once.

    `keep` says whether anything of a session would be sent; the others are dropped and counted, and a pass that keeps
    nothing is the last one. `first` are the positions in the trace of sessions that are played before all others, in
    this order, and then not again in the first pass.
    """

    def __init__(
        self,
        trace: Iterable[Session],
        *,
        shuffle: bool = False,
        seed: int = 0,
        recycle: bool = False,
        keep: Callable[[Session], bool] = lambda session: True,
        first: Sequence[int] = (),
    ) -> None:
        self._first = first
        self._trace, self._shuffle, self._seed, self._recycle, self._keep = trace, shuffle, seed, recycle, keep
        self.dropped: list[str] = []  # keys of sessions of which nothing is sent, first pass
        self.torn: list[str] = []  # keys of sessions whose end the file has lost

    def __iter__(self) -> Iterator[Session]:
        held = self._hold() if self._shuffle else None
        chosen = self._chosen()
        yield from (chosen[place] for place in self._first)
        played = {session.key for session in chosen.values()}
        number = 0
        while True:
            kept = 0 if number else len(chosen)
            for session in self._checked(number) if held is None else _shuffled(held, f"{self._seed}/{number}"):
                if session.key in played and not number:
                    continue
                if self._keep(session):
                    kept += 1
                    yield session
                elif not number:
                    self.dropped.append(session.key)
            if not self._recycle or not kept:
                return
            number += 1

    def _chosen(self) -> dict[int, Session]:
        wanted = set(self._first)
        return {place: session for place, session in enumerate(self._trace) if place in wanted} if wanted else {}

    def _checked(self, number: int) -> Iterator[Session]:
        """One pass over the trace; what its end has lost is noted on the first one."""
        for session in self._trace:
            if not number and not session.complete:
                self.torn.append(session.key)
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
