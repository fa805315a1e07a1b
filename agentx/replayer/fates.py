"""What becomes of a turn before it is sent: whether its prompt and reply fit the target, and whether it was aborted.

Lengths are of what would be sent: the pieces of the prompt, and what the chat template is known to add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentx.core import Session
from agentx.replayer.moves import Fate, OnFailure
from agentx.reuse_template import PLAIN, Template, template_tokens
from agentx.wire.history import introduced
from agentx.wire.messages import Shape, counted

SPARE = 6  # tokens of the pool that a prompt must leave free (SGLang 0.5.23: one for the reply, five in reserve)
_FATES: dict[str, Fate] = {"drop_turn": "drop", "end_session": "end", "fail": "stop"}
_POLICIES: dict[str, OnFailure] = {"drop_turn": "continue", "end_session": "end_session", "fail": "stop"}

Overflow = Literal["drop_turn", "end_session", "fail"]


@dataclass(frozen=True, slots=True)
class Fates:
    """Judges turns. `context` and `pool` are the target's, in tokens; None: not known, so nothing is too long for it.

    `template` is what the chat template adds, as far as that is known.
    """

    overflow: Overflow = "drop_turn"
    skip_aborted: bool = False
    context: int | None = None
    pool: int | None = None
    page: int = 1
    template: Template = PLAIN
    shape: Shape = "plain"

    def __call__(self, session: Session, turn: int) -> Fate:
        if self.skip_aborted and session.turns[turn].output.tokens == 0:
            return "drop"
        return "send" if self.fits(session, turn) else _FATES[self.overflow]

    def fits(self, session: Session, turn: int) -> bool:
        if self.context is None and self.pool is None:
            return True
        asked = session.turns[turn]
        template = self.template
        most = asked.isl + template.start + template.per_message * (asked.prompt.keep + len(asked.prompt.append))
        if self.shape == "plain" and self._has_room(most, most + max(1, asked.output.tokens)):
            return True  # the usual case, without a look at the pieces
        prompt = self.prompt_tokens(session, turn)
        return self._has_room(prompt, prompt + max(1, asked.output.tokens))

    def prompt_tokens(self, session: Session, turn: int) -> int:
        """What is sent of a turn's prompt, with what the chat template is known to add."""
        pieces = introduced(session, turn)
        prompt = sum(piece.tokens for _, piece in pieces)
        if self.template == PLAIN:
            return prompt
        return prompt + template_tokens(self.template, session, counted(session, pieces, self.shape))

    def _has_room(self, prompt: int, whole: int) -> bool:
        if self.context is not None and (whole > self.context or prompt >= self.context - SPARE):
            return False
        return self.pool is None or prompt < self.pool - max(SPARE, self.page)

    def plays(self, session: Session) -> bool:
        """Whether anything of a session is sent, or the run is to stop at it."""
        return any(self(session, turn.index) in ("send", "stop") for turn in session.turns)

    @property
    def when_refused(self) -> OnFailure:
        """What it means when the server finds a turn too long that was thought to fit."""
        return _POLICIES[self.overflow]
