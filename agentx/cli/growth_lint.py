"""A prompt that goes on from a reply holds it: the reply's tokens are among those that it grew by.

So are the last replies of the subagents whose results it brings. Where a prompt that keeps all of the one before grew
by less, prompts and replies were counted by different tokenizers (or a part of the reply was not sent again, such as
reasoning that a source counts among visible tokens). How much larger it may grow says nothing: tool results are of any
length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentx.core import Session, Turn

RULE = (
    "prompts grew by less than the replies that they must hold: prompts and replies are counted by different "
    "tokenizers, or a part of the replies, such as reasoning, is not sent again"
)


@dataclass(slots=True)
class Growth:
    """Turns that go on from a reply, and those of them that grew by less."""

    turns: int = 0
    less: int = 0
    grown: int = 0  # tokens, of the latter
    held: int = 0  # tokens that they must hold
    first: str = ""

    def add(self, session: Session) -> None:
        pieces: list[int] = []  # of each prompt
        for turn in session.turns:
            base = turn.prompt.base
            pieces.append(turn.prompt.keep + len(turn.prompt.append))
            if base is not None and turn.prompt.keep == pieces[base] and _goes_on(turn, session.turns[base]):
                self._turn(session, turn, session.turns[base])

    def _turn(self, session: Session, turn: Turn, before: Turn) -> None:
        agents = {thread.id for thread in session.threads if thread.kind == "subagent" and thread.id != turn.thread}
        results = [session.turns[index] for index in turn.after if session.turns[index].thread in agents]
        held = before.output.visible + sum(result.output.visible for result in results)
        grown = turn.isl - before.isl
        self.turns += 1
        if 0 <= grown < held:
            self.less += 1
            self.grown += grown
            self.held += held
            self.first = self.first or f"first in session {session.id} turn {turn.index}: {grown:,} for {held:,}"

    def end(self) -> Iterator[tuple[str, str, str]]:
        if self.less:
            figures = f"{self.less:,} of {self.turns:,} turns, {self.grown:,} tokens for {self.held:,}"
            yield "note", RULE, f"{figures}; {self.first}"


def _goes_on(turn: Turn, before: Turn) -> bool:
    """Whether a turn's prompt must hold the whole reply of the one before."""
    cut = before.event is not None and before.event.kind in ("abort", "error")
    return turn.thread == before.thread and turn.event is None and not cut
