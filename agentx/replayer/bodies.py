"""Request bodies: joined from bytes that exist already, so that a long prompt is copied and never made again.

A prompt mostly keeps the one before it in its thread. So the pieces of the last prompt of each thread are kept as
bytes, and a prompt that is made of that one only has its new pieces to make. What is kept is bounded by `keep_bytes`;
any other prompt is made from the encoder's chunks.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agentx.content import Encoder, Salting
from agentx.core import Piece, Session
from agentx.replayer.moves import Send
from agentx.wire.messages import ROLES, leading_pieces, placed
from agentx.wire.openai import chat_request
from agentx.wire.salting import Policy, salting
from agentx.wire.sglang import generate_request

KEEP_BYTES = 32 << 20
_OPEN = {role: b'{"role":"%b","content":"' % role.encode() for role in {"system", *ROLES.values()}}
_CLOSE = b'"}'


@dataclass(frozen=True, slots=True)
class Wire:
    """How a prompt becomes a request. `exact`: the server is to make exactly as many tokens as were recorded."""

    kind: Literal["chat", "generate"]
    model: str
    exact: bool = True

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.kind == "chat" else "/generate"


@dataclass(slots=True)
class _Kept:
    turn: int
    parts: list[bytes]  # one for each piece of its prompt
    leading: int  # pieces of the system message
    size: int


class Bodies:
    """Makes the body of each turn. Raises BadInput for content that the wire cannot carry."""

    def __init__(
        self, encoder: Encoder, wire: Wire, *, policy: Policy, salt: str, keep_bytes: int = KEEP_BYTES
    ) -> None:
        self._encoder, self._wire, self._policy, self._salt = encoder, wire, policy, salt
        self._kept: OrderedDict[tuple[int, int], _Kept] = OrderedDict()  # by play and thread
        self._held, self._limit = 0, keep_bytes
        self._head = b"".join(_parts(wire, 1)[:-1])
        self._tail = lru_cache(4096)(lambda tokens: _parts(wire, tokens)[-1])

    def body(self, send: Send, rid: str | None = None) -> bytes:
        """The whole body of a turn's request."""
        session, turn = send.session, send.session.turns[send.key.turn]
        salts = salting(self._policy, self._salt, session.key, send.play)
        prompt = self._prompt((send.key.serial, turn.thread), session, turn.index, salts)
        tail: bytes = self._tail(send.tokens)
        if rid is not None:
            tail = b'%b,"rid":%b}' % (tail[:-1], json.dumps(rid).encode())
        return b"".join((self._head, *prompt, tail))

    def forget(self, serial: int, session: Session) -> None:
        """A play is over."""
        for thread in session.threads:
            kept = self._kept.pop((serial, thread.id), None)
            self._held -= kept.size if kept else 0

    def _prompt(self, key: tuple[int, int], session: Session, turn: int, salts: Salting) -> list[bytes]:
        """The prompt in parts, one for each piece."""
        prompt, before = session.turns[turn].prompt, self._kept.pop(key, None)
        chat = self._wire.kind == "chat"
        if before is not None:
            self._held -= before.size
        if before is not None and prompt.base == before.turn and (prompt.keep > before.leading or not chat):
            parts, leading, fresh = before.parts, before.leading, list(prompt.append)
            del parts[prompt.keep :]
        else:
            parts, fresh = [], session.pieces(turn)
            leading = leading_pieces(session, fresh)
        parts += (
            self._messages(session, fresh, len(parts), leading, salts) if chat else self._ids(session, fresh, salts)
        )
        self._keep(key, _Kept(turn, parts, leading, sum(map(len, parts))))
        return parts if chat else _closed(parts)

    def _messages(self, session: Session, pieces: list[Piece], start: int, leading: int, salts: Salting) -> list[bytes]:
        """Pieces that stand at `start` and behind as messages: one of each, but one of all the leading ones."""
        made = []
        for place, piece in enumerate(pieces, start):
            text = b"".join(self._encoder.piece_text(session, piece, salts))
            role, _ = placed(session.segment(piece.segment).layer, place <= leading if place else None)
            opens = b"" if role is None else _OPEN[role]
            closes = b"" if place < leading - 1 else _CLOSE
            made.append(b"%b%b%b%b" % (b"," if place and opens else b"", opens, text, closes))
        return made

    def _ids(self, session: Session, pieces: list[Piece], salts: Salting) -> list[bytes]:
        return [b"".join(self._encoder.piece_ids(session, piece, salts)) for piece in pieces]

    def _keep(self, key: tuple[int, int], kept: _Kept) -> None:
        self._kept[key] = kept
        self._held += kept.size
        while self._held > self._limit and len(self._kept) > 1:
            self._held -= self._kept.popitem(last=False)[1].size


def _closed(parts: list[bytes]) -> list[bytes]:
    """A list of ids ends without its comma; the last pieces may be empty."""
    filled = next((place for place in range(len(parts) - 1, -1, -1) if parts[place]), None)
    return [] if filled is None else [*parts[:filled], parts[filled].rstrip(b",")]


def _parts(wire: Wire, tokens: int) -> list[bytes]:
    """A request without a prompt: what comes before it, in parts, and last what comes behind."""
    fewest = tokens if wire.exact else None
    if wire.kind == "chat":
        return chat_request([], model=wire.model, max_tokens=tokens, min_tokens=fewest, ignore_eos=True)
    return generate_request([], max_new_tokens=tokens, min_new_tokens=fewest, ignore_eos=True)
