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


def messages(session: Session, pieces: Sequence[Piece]) -> list[Message]:
    """The messages of a resolved prompt, in order."""
    leading = tuple(takewhile(lambda piece: session.segment(piece.segment).layer in LEADING_LAYERS, pieces))
    rest = [Message(ROLES[session.segment(piece.segment).layer], (piece,)) for piece in pieces[len(leading) :]]
    return [Message("system", leading), *rest] if leading else rest
