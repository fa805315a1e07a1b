"""What the schedule and its drivers say to each other, and the rules that a schedule follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agentx.core import Session
from agentx.replayer.arrivals import RateRule

Fate = Literal["send", "drop", "end", "stop"]  # of a turn that is due: drop it, end its session, or stop the run
OnFailure = Literal["end_session", "continue", "stop"]
StartBy = Literal["time", "turns", "equilibrium"]
StartPhase = Literal["spread", "burst"]
MEASURE, WARMUP = "measure", "warmup"  # phases of a run


def always_send(session: Session, turn: int) -> Fate:
    return "send"


class Key(NamedTuple):
    """A turn of a play; `serial` numbers the plays in the order in which they began."""

    serial: int
    turn: int


@dataclass(frozen=True, slots=True)
class StartRule:
    """Where the first session of a lane begins: at a share of it between `least` and `most`, drawn by `seed`."""

    by: StartBy = "time"
    least: float = 0.0
    most: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a plan decides when turns are sent. None: no limit.

    `lanes` sessions are played at a time; None: as many as arrive by `rate`, or without one as it takes to keep
    `requests` in flight. More than `requests` are never in flight: a turn that is due then waits. `turns` is how many
    turns each lane sends, `warmup` how many before they count. `phase` places the next turns of all lanes when the run
    begins, or when it is warm.
    """

    lanes: int | None = 1
    requests: int | None = None
    rate: RateRule | None = None
    scale: float = 1.0
    tree_idle_cap: float | None = None
    system_idle_cap: float | None = None
    plays: int | None = None
    turns: int | None = None
    seconds: float | None = None
    drain: float = math.inf
    on_failure: OnFailure = "end_session"
    start: StartRule | None = None
    phase: StartPhase = "spread"
    warmup: int = 0


class Ended(NamedTuple):
    key: Key


class Failed(NamedTuple):
    """`policy`: what this failure means, where it is not what the rules say of all."""

    key: Key
    policy: OnFailure | None = None


class Cut(NamedTuple):
    """The driver gave the turn up because it was told to."""

    key: Key


Event = Ended | Failed | Cut


class Send(NamedTuple):
    """Send this turn now.

    `moved` is by how many seconds idle caps brought it forward, `held` how long it waited because as many requests as
    the plan allows were in flight.
    """

    key: Key
    session: Session
    play: int
    lane: int
    due: float
    moved: float
    phase: str = MEASURE
    held: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens to ask for: as recorded, one where nothing was recorded, and one to warm up."""
        return 1 if self.phase == WARMUP else max(1, self.session.turns[self.key.turn].output.tokens)


class Wait(NamedTuple):
    """Nothing to do until then (None: until the next event)."""

    until: float | None


class Cancel(NamedTuple):
    """Give these turns up, and feed a Cut for each."""

    keys: tuple[Key, ...]


class Done(NamedTuple):
    pass


Step = list[Send] | Wait | Cancel | Done
