"""Whether a turn fits a target, and sessions whose prompts were shortened until they do.

Lengths are of what would be sent: the pieces of the prompt, and what the chat template is known to add.

A prompt that does not fit loses its oldest history, whole pieces, until it and its reply do; what leads it (tools,
system, shared pieces) and its last piece stay. What a prompt has lost stays lost in those that keep it, so the server
meets the same prefix again until the next one does not fit. A turn that does not fit without any history keeps its
prompt as it is: it is for the plan to say what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentx.core import Piece, Prompt, Session, Turn
from agentx.reuse_template import PLAIN, Template, template_tokens
from agentx.wire.history import introduced
from agentx.wire.messages import Shape, counted, leading_pieces

SPARE = 6  # tokens of the pool that a prompt must leave free (SGLang 0.5.23: one for the reply, five in reserve)
LOST = "shortened"  # in a turn's extra, and a record's: tokens of its prompt that are not sent


@dataclass(frozen=True, slots=True)
class Room:
    """`context` and `pool` are the target's, in tokens; None: not known, so nothing is too long for it.

    `template` is what the chat template adds, as far as that is known.
    """

    context: int | None = None
    pool: int | None = None
    page: int = 1
    template: Template = PLAIN
    shape: Shape = "plain"

    @property
    def known(self) -> bool:
        return self.context is not None or self.pool is not None

    def fits(self, session: Session, turn: int) -> bool:
        if not self.known:
            return True
        asked, template = session.turns[turn], self.template
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

    def shortened(self, session: Session) -> Session:
        """The session with prompts that fit, as far as dropping history can make them."""
        if all(self.fits(session, turn.index) for turn in session.turns):
            return session
        made: list[Turn] = []
        lost: list[int] = []  # pieces of each turn's history that are not sent, the oldest ones
        for turn in session.turns:
            pieces = session.pieces(turn.index)
            leading = leading_pieces(session, pieces)
            kept = 0 if turn.prompt.base is None else lost[turn.prompt.base]
            kept = max(0, min(kept, turn.prompt.keep - leading))
            own = replace(turn, prompt=_without(turn, pieces, leading, kept, kept))
            here = kept
            while here < len(pieces) - leading - 1 and not self._would_fit(session, made, own):
                here = max(here + 1, self._enough(session, made, own, pieces[leading:], here))
                here = min(here, len(pieces) - leading - 1)
                own = replace(turn, prompt=_without(turn, pieces, leading, here, kept))
            if here > kept and not self._would_fit(session, made, own):
                here, own = kept, replace(turn, prompt=_without(turn, pieces, leading, kept, kept))
            gone = sum(piece.tokens for piece in pieces[leading : leading + here])
            extra = {**turn.extra, LOST: gone} if gone else turn.extra
            made.append(replace(own, isl=max(0, turn.isl - gone), extra=extra))
            lost.append(here)
        return replace(session, turns=tuple(made))

    def _would_fit(self, session: Session, made: list[Turn], own: Turn) -> bool:
        return self.fits(replace(session, turns=(*made, own)), own.index)

    def _enough(self, session: Session, made: list[Turn], own: Turn, history: list[Piece], lost: int) -> int:
        """How many pieces of the history have to go, by their own tokens alone."""
        prompt = self.prompt_tokens(replace(session, turns=(*made, own)), own.index)
        while lost < len(history) - 1 and not self._has_room(prompt, prompt + max(1, own.output.tokens)):
            prompt -= history[lost].tokens
            lost += 1
        return lost

    def _has_room(self, prompt: int, whole: int) -> bool:
        if self.context is not None and (whole > self.context or prompt >= self.context - SPARE):
            return False
        return self.pool is None or prompt < self.pool - max(SPARE, self.page)


def _without(turn: Turn, pieces: list[Piece], leading: int, lost: int, kept: int) -> Prompt:
    """The prompt without `lost` pieces behind the leading ones; its base has lost `kept` of them."""
    if lost == kept:
        return replace(turn.prompt, keep=turn.prompt.keep - lost) if lost else turn.prompt
    return Prompt((*pieces[:leading], *pieces[leading + lost :]))


def room_of_run(settings: Mapping[str, Any]) -> Room:
    """The room that a run's turns had, from its `run.json`."""
    server, plan, known = settings.get("server") or {}, settings["plan"], settings.get("template")
    shape: Shape = "tools" if plan.get("messages") == "tools" else "plain"
    template = PLAIN if known is None else Template(known["start"], known["per_message"], words=True)
    return room_of(server, template, shape)


def room_of(server: Mapping[str, Any], template: Template, shape: Shape) -> Room:
    """The room on a server, by what it says of itself."""
    page = server.get("page_size") or 1
    return Room(server.get("context"), server.get("max_total_num_tokens"), page, template, shape)
