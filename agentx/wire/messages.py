"""Which chat messages a prompt is sent as: the one rule that the client and the reuse accounting share.

One message per piece; the leading tools, system and shared pieces join into one system message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from agentx.core import LEADING_LAYERS, Layer, Piece, Session

ROLES: dict[Layer, str] = {
    "tools": "user",  # tools, system and shared pieces keep the system role only at the start of a prompt
    "system": "user",
    "shared": "user",
    "summary": "user",
    "user": "user",
    "tool_result": "user",
    "assistant": "assistant",
    "reasoning": "assistant",
}


class Message(NamedTuple):
    role: str
    pieces: tuple[Piece, ...]


def placed(layer: Layer, leading: bool | None) -> tuple[str | None, bool]:
    """Where a piece of `layer` goes, after a piece that was `leading` or not (None: it is the first).

    Returns (the role of the message that it begins, None when it joins the message before it; whether it leads).
    """
    leads = layer in LEADING_LAYERS and leading is not False
    if not leads:
        return ROLES[layer], False
    return (None if leading else "system"), True


def leading_pieces(session: Session, pieces: Sequence[Piece]) -> int:
    """How many pieces at the front join into the system message."""
    return sum(1 for _ in takewhile(lambda piece: session.segment(piece.segment).layer in LEADING_LAYERS, pieces))


def messages(session: Session, pieces: Sequence[Piece]) -> list[Message]:
    """The messages of a resolved prompt, in order."""
    made: list[Message] = []
    leading: bool | None = None
    for piece in pieces:
        role, leading = placed(session.segment(piece.segment).layer, leading)
        if role is None:
            made[-1] = Message(made[-1].role, (*made[-1].pieces, piece))
        else:
            made.append(Message(role, (piece,)))
    return made
