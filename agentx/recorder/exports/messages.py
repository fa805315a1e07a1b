"""Prompts as chat messages with text, for formats that hold text.

One piece is one message; leading tools, system and shared pieces join into one system message, since chat templates
ignore later ones. A tool's result is a user's message: without its call no template takes it as a tool's. Synthetic
and opaque content becomes words of the shipped lexicon, four bytes a token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentx.content import Encoder, WordList, lexicon
from agentx.core import LEADING_LAYERS, Layer, Piece, Session, Turn

Message = dict[str, str]
ROLES: dict[Layer, str] = {"assistant": "assistant", "reasoning": "assistant"}


class Texts:
    """Writes pieces as messages."""

    def __init__(self) -> None:
        self._encoder = Encoder(WordList(lexicon()))

    def text(self, session: Session, piece: Piece) -> str:
        """A piece's text. Raises BadInput for literal token ids."""
        parts = self._encoder.piece_text(session, piece, lambda _: "")
        text: str = json.loads(b'"' + b"".join(parts) + b'"')
        return text

    def messages(self, session: Session, pieces: Sequence[Piece], *, first: bool = True) -> list[Message]:
        """The pieces as messages; `first`: they open the context, so the leading ones are its system prompt."""
        leading = 0
        while first and leading < len(pieces) and self._layer(session, pieces[leading]) in LEADING_LAYERS:
            leading += 1
        found = []
        if leading:
            text = "".join(self.text(session, piece) for piece in pieces[:leading])
            found.append({"role": "system", "content": text})
        for piece in pieces[leading:]:
            role = ROLES.get(self._layer(session, piece), "user")
            found.append({"role": role, "content": self.text(session, piece)})
        return found or [{"role": "user", "content": ""}]

    def _layer(self, session: Session, piece: Piece) -> Layer:
        return session.segment(piece.segment).layer


class News(NamedTuple):
    """A turn, and the pieces that a conversation appends for it: its whole prompt when it is the first one."""

    turn: Turn
    pieces: list[Piece]


def stretches(session: Session, turns: Sequence[Turn]) -> Iterator[list[News]]:
    """The turns of one thread, cut where one appends nothing, or not to the prompt and reply before it."""
    found: list[News] = []
    for turn in turns:
        new = appended(session, found[-1].turn, turn) if found else None
        if not new:
            if found:
                yield found
            found, new = [], session.pieces(turn.index)
        found.append(News(turn, new))
    if found:
        yield found


def appended(session: Session, before: Turn, turn: Turn) -> list[Piece] | None:
    """The pieces of a prompt behind the prompt and the whole reply before it; None when it does not go on from them."""
    old, new = session.pieces(before.index), session.pieces(turn.index)
    if before.output.tokens:
        if before.reply is None:
            return None
        old.append(Piece(before.reply, 0, before.output.tokens))
    return new[len(old) :] if new[: len(old)] == old else None
