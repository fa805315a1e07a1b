"""Request bodies: joined from bytes that exist already, so that a long prompt is copied and never made again.

A prompt mostly keeps the one before it in its thread. So the pieces of the last prompt of each thread are kept as
bytes, and a prompt that is made of that one only has its new pieces to make. What is kept is bounded by `keep_bytes`;
any other prompt is made from the encoder's chunks.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentx.content import Encoder, Salting
from agentx.core import Piece, Session
from agentx.replayer.moves import Send
from agentx.replayer.wires import Wire
from agentx.wire.history import LiveReply, Replies, introduced
from agentx.wire.message_json import MessageJson
from agentx.wire.messages import BEHIND, Brought, arranged, leading_pieces
from agentx.wire.openai import json_text
from agentx.wire.salting import Policy, namespace, salting
from agentx.wire.tooltext import definitions

KEEP_BYTES = 32 << 20


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
        self._json = MessageJson("messages" if wire.kind == "messages" else "chat", wire.shape)
        self._head = self._json.head(b"".join(wire.parts(1)[:-1]))
        self._tail = lru_cache(4096)(lambda tokens: wire.parts(tokens)[-1])
        self.replies: Replies[int] = Replies()  # by play: what goes into its later prompts, where history is live

    def body(self, send: Send, rid: str | None = None) -> bytes:
        """The whole body of a turn's request."""
        session, turn = send.session, send.session.turns[send.key.turn]
        salts = salting(self._policy, self._salt, session.key, send.play)
        prompt = self._prompt((send.key.serial, turn.thread), session, turn.index, salts)
        tail: bytes = self._tail(send.tokens)
        if rid is not None:
            tail = b'%b,"rid":%b}' % (tail[:-1], json.dumps(rid).encode())
        if name := namespace(self._policy, self._salt, session.key, send.play):
            tail = b'%b,"cache_salt":%b}' % (tail[:-1], json.dumps(name).encode())
        return b"".join((self._head, *prompt, tail))

    def forget(self, serial: int, session: Session) -> None:
        """A play is over."""
        self.replies.forget(serial)
        for thread in session.threads:
            kept = self._kept.pop((serial, thread.id), None)
            self._held -= kept.size if kept else 0

    def _prompt(self, key: tuple[int, int], session: Session, turn: int, salts: Salting) -> list[bytes]:
        """The prompt in parts, one for each piece."""
        prompt, before = session.turns[turn].prompt, self._kept.pop(key, None)
        chat = self._wire.text
        if before is not None:
            self._held -= before.size
        if before is not None and prompt.base == before.turn and (prompt.keep > before.leading or not chat):
            parts, leading, fresh = before.parts, before.leading, [(turn, piece) for piece in prompt.append]
            del parts[prompt.keep :]
        else:
            parts, fresh = [], introduced(session, turn)
            leading = leading_pieces(session, [piece for _, piece in fresh])
        start, make = len(parts), self._messages if chat else self._ids
        parts += make(key[0], session, fresh, start, salts)
        self._keep(key, _Kept(turn, parts, leading, sum(map(len, parts))))
        if not chat:
            return _closed(parts)
        return parts or [self._json.empty]

    def _messages(
        self, play: int, session: Session, pieces: Sequence[Brought], start: int, salts: Salting
    ) -> list[bytes]:
        """Pieces that stand at `start` and behind as messages: one of each, but one of all the leading ones."""
        made, number = [], 0
        before = BEHIND if start else None
        places = arranged(session, pieces, self._wire.shape, start=start, before=before)
        for place, ((turn, piece), here) in enumerate(zip(pieces, places, strict=True)):
            if here.definition:
                parts = definitions(session, piece, number)
                texts = [self._text(play, session, turn, one.part, salts) for one in parts]
                made.append(self._json.definitions(before, number, texts))
                number += len(parts)
            else:
                text = self._text(play, session, turn, piece, salts)
                joined = place + 1 < len(places) and places[place + 1].role is None
                made.append(self._json.piece(before, here, text, joined=joined))
            before = here
        return made

    def _text(self, play: int, session: Session, turn: int, piece: Piece, salts: Salting) -> bytes:
        reply = self.replies.in_place_of(play, session, turn, piece)
        if reply is None:
            return b"".join(self._encoder.piece_text(session, piece, salts))
        start, stop, behind = reply.cut(piece)
        rest = () if behind is None else self._encoder.piece_text(session, behind, salts)
        return b"".join((json_text(reply.part(start, stop)), *rest))

    def _ids(self, play: int, session: Session, pieces: Sequence[Brought], start: int, salts: Salting) -> list[bytes]:
        made = []
        for turn, piece in pieces:
            reply = self.replies.in_place_of(play, session, turn, piece)
            parts = _own_ids(reply, piece) if reply is not None else []
            rest = piece if reply is None else reply.cut(piece)[2]
            if rest is not None:
                parts += self._encoder.piece_ids(session, rest, salts)
            made.append(b"".join(parts))
        return made

    def _keep(self, key: tuple[int, int], kept: _Kept) -> None:
        self._kept[key] = kept
        self._held += kept.size
        while self._held > self._limit and len(self._kept) > 1:
            self._held -= self._kept.popitem(last=False)[1].size


def _closed(parts: list[bytes]) -> list[bytes]:
    """A list of ids ends without its comma; the last pieces may be empty."""
    filled = next((place for place in range(len(parts) - 1, -1, -1) if parts[place]), None)
    return [] if filled is None else [*parts[:filled], parts[filled].rstrip(b",")]


def _own_ids(reply: LiveReply, piece: Piece) -> list[bytes]:
    start, stop, _ = reply.cut(piece)
    return [b"%d," % id for id in (reply.ids or ())[start:stop]]
