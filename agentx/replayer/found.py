"""What became of the sessions of a trace when they were to be played, and how much of it was never sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from agentx.core import Session
from agentx.room import LOST


@dataclass(slots=True)
class Amount:
    """So many sessions, their turns, and the tokens of their prompts."""

    sessions: int = 0
    turns: int = 0
    tokens: int = 0

    def add(self, session: Session) -> None:
        self.sessions += 1
        self.turns += len(session.turns)
        self.tokens += sum(turn.isl for turn in session.turns)


@dataclass(slots=True)
class Found:
    """What became of the trace's sessions on the first pass, as far as it went; keys of sessions.

    `dropped`: nothing of them would be sent. `skipped`: a turn of them does not fit, and the plan plays no such
    session. `torn`: the file has lost their end. `shortened`: those with prompts that lost history to fit; its turns
    are those alone, its tokens what they lost.
    """

    dropped: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    read: Amount = field(default_factory=Amount)
    removed: Amount = field(default_factory=Amount)
    shortened: Amount = field(default_factory=Amount)

    def shorten(self, session: Session) -> None:
        lost = [turn.extra[LOST] for turn in session.turns if LOST in turn.extra]
        if lost:
            self.shortened = Amount(
                self.shortened.sessions + 1, self.shortened.turns + len(lost), self.shortened.tokens + sum(lost)
            )

    def facts(self) -> dict[str, Any]:
        """For the end of the results: what of the trace was not sent, beside what was read of it."""
        told = {"skipped": self.removed, "shortened": self.shortened}
        facts: dict[str, Any] = {name: asdict(amount) for name, amount in told.items() if amount.sessions}
        return {**facts, "read": asdict(self.read)} if facts else {}

    def notes(self) -> Iterator[str]:
        """What is to be said of the trace when it has been played."""
        if self.dropped:
            yield f"{_were(self.dropped)} dropped, as nothing would have been sent: {_some(self.dropped)}"
        if self.skipped:
            yield f"{_were(self.skipped)} not played, as a turn does not fit: {_some(self.skipped)}; {self.share}"
        if self.shortened.sessions:
            yield (
                f"{self.shortened.turns:,} turns of {self.shortened.sessions:,} sessions lost "
                f"{self.shortened.tokens:,} tokens of their oldest history, to fit"
            )
        if self.torn:
            yield f"the trace is cut short: session {self.torn[0]} was played as far as it goes"

    @property
    def share(self) -> str:
        """How much of what was read the skipped sessions are."""
        removed, read = self.removed, self.read
        parts = [
            f"{removed.sessions:,} of {read.sessions:,} sessions",
            f"{removed.turns:,} of {read.turns:,} turns",
            f"{100 * removed.tokens / max(1, read.tokens):.0f}% of the prompt tokens",
        ]
        return ", ".join(parts)


def _were(keys: list[str]) -> str:
    return "1 session was" if len(keys) == 1 else f"{len(keys)} sessions were"


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:5])
