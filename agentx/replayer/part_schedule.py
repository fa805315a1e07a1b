"""The schedule of one worker of several: what it may not decide alone, it tells and is told.

Three things belong to the whole run: when it begins after the warm-up, whether everything has been idle for too long,
and that it stops. `idle` and `nearest` are told to the others' coordinator; `begin`, `pass_over` and `stop` are its
answers. Second 0 of the run's clock is the same for all, so the run of each begins there and not when it first looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from agentx.core import Session
from agentx.replayer.moves import Fate, Rules, Step, Wait, always_send
from agentx.replayer.schedule import Schedule
from agentx.replayer.split import Part
from agentx.replayer.starts import nearest


class PartSchedule(Schedule):
    """Plays `part` of the rules. Of the system's idleness it decides nothing itself."""

    def __init__(
        self,
        sessions: Iterator[Session],
        rules: Rules,
        fate: Callable[[Session, int], Fate] = always_send,
        *,
        part: Part,
    ) -> None:
        super().__init__(sessions, replace(rules, system_idle_cap=None), fate, part)
        self.nearest: float | None = None  # s to the first turn behind the warm-up, once all lanes are warm
        self._agreed: tuple[float, float] | None = None

    def begin(self, at: float, first: float) -> None:
        """All workers are warm: the run begins at `at`, and `first` is the distance to the first turn of all."""
        self._agreed = (at, first)

    @property
    def idle(self) -> tuple[float, float] | None:
        """(since when, until when) nothing is in flight here; infinite: nothing waits here. None: something is."""
        if self.in_flight:
            return None
        first = self._wakes.first()
        return self._idle_since, math.inf if first is None else first

    def _begin(self, now: float) -> None:
        super()._begin(0.0)

    def _warmed(self, now: float) -> Step | None:
        if self._agreed is None:
            self.nearest = nearest(self._distances())
            return Wait(None)
        self._hand_off(*self._agreed)
        return None
