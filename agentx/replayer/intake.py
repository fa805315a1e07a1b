"""Which session begins next, as which play of it, and when it arrives.

The whole run's plays are counted here, also those of other workers: serial numbers, play numbers and arrivals are the
same with any number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from agentx.core import Session
from agentx.replayer.arrivals import Arrivals
from agentx.replayer.moves import Rules
from agentx.replayer.split import Part


class Taken(NamedTuple):
    """A session that is to be played: the run's play number `serial`, and the session's own number `play`."""

    serial: int
    session: Session
    play: int


class Intake:
    """Reads `sessions` as they are asked for. `part`: whose plays are taken; the others are counted and passed over."""

    def __init__(self, sessions: Iterator[Session], rules: Rules, part: Part) -> None:
        self.empty = 0  # sessions without turns: dropped
        self.opens = rules.rate is not None
        self._sessions, self._most, self._part = sessions, rules.plays, part
        self._slots = rules.lanes or rules.requests or part.of
        self._arrivals = None if rules.rate is None else Arrivals(rules.rate)
        self._count = 0
        self._played: Counter[str] = Counter()
        self._coming: tuple[float, Taken] | None = None

    def take(self) -> Taken | None:
        """The next play that is this part's, if the run is to play another one."""
        while (taken := self._next()) is not None:
            if self._part.takes(taken.serial, self._slots):
                return taken
        return None

    def expected(self) -> float | None:
        """When the next session of this part arrives, in seconds from the run's beginning; None: no more do."""
        while self._coming is None and self._arrivals is not None and (taken := self._next()) is not None:
            at = self._arrivals.next(taken.session, taken.play > 0)
            if self._part.takes(taken.serial, self._slots):
                self._coming = (at, taken)
        return None if self._coming is None else self._coming[0]

    def arrived(self) -> Taken:
        """The one that was expected. Raises RuntimeError when none was: a bug."""
        if self._coming is None:
            raise RuntimeError("no session was expected")
        _, taken = self._coming
        self._coming = None
        return taken

    def _next(self) -> Taken | None:
        if self._most is not None and self._count >= self._most:
            return None
        for session in self._sessions:
            if session.turns:
                taken = Taken(self._count, session, self._played[session.key])
                self._count += 1
                self._played[session.key] += 1
                return taken
            self.empty += 1
        return None
