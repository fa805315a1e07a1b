"""What becomes of a turn before it is sent: whether its prompt and reply fit the target, and whether it was aborted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentx.core import Session
from agentx.replayer.moves import Fate, OnFailure
from agentx.room import Room

Overflow = Literal["drop_turn", "end_session", "skip_session", "truncate", "fail"]

ANY = Room()  # of a target of which nothing is known
_FATES: dict[Overflow, Fate] = {
    "drop_turn": "drop",
    "end_session": "end",
    "skip_session": "end",  # never asked of a turn that does not fit: its session is not played
    "truncate": "drop",  # what no shortening makes fit
    "fail": "stop",
}
_POLICIES: dict[Overflow, OnFailure] = {
    "drop_turn": "continue",
    "end_session": "end_session",
    "skip_session": "end_session",
    "truncate": "continue",
    "fail": "stop",
}


@dataclass(frozen=True, slots=True)
class Fates:
    """Judges turns by the room that the target has."""

    overflow: Overflow = "drop_turn"
    skip_aborted: bool = False
    room: Room = ANY

    def __call__(self, session: Session, turn: int) -> Fate:
        if self.skip_aborted and session.turns[turn].output.tokens == 0:
            return "drop"
        return "send" if self.room.fits(session, turn) else _FATES[self.overflow]

    def plays(self, session: Session) -> bool:
        """Whether anything of a session is sent, or the run is to stop at it."""
        return any(self(session, turn.index) in ("send", "stop") for turn in session.turns)

    def skips(self, session: Session) -> bool:
        """Whether a session is not played because a turn of it does not fit."""
        if self.overflow != "skip_session":
            return False
        asked = (turn for turn in session.turns if not (self.skip_aborted and turn.output.tokens == 0))
        return not all(self.room.fits(session, turn.index) for turn in asked)

    def made_to_fit(self, session: Session) -> Session:
        """The session as it is played."""
        return self.room.shortened(session) if self.overflow == "truncate" else session

    @property
    def when_refused(self) -> OnFailure:
        """What it means when the server finds a turn too long that was thought to fit."""
        return _POLICIES[self.overflow]
