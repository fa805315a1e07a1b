"""The prompts that the embedded engine would read off the wire, as token ids: four bytes a token, no JSON, no sockets.

They are the same tokens as those of `bodies.py`, rendered as `engine/tokenizer.py` does: on the chat wire a marker
before each message, each message filled up to whole words, a marker for the reply. A prompt mostly keeps the one
before it in its thread, so the last prompt of each thread is kept and its beginning copied as one run of bytes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass

from agentx.content import Encoder, Salting
from agentx.core import Piece, Session, Text, TokenIds
from agentx.engine.tokenizer import MARKERS, WORD, ids_from_list
from agentx.replayer.moves import Send
from agentx.wire.history import Replies, introduced
from agentx.wire.messages import leading_pieces, placed
from agentx.wire.salting import Policy, salting

KEEP_BYTES = 512 << 20  # a thousand contexts of 130,000 tokens


@dataclass(slots=True)
class _Kept:
    turn: int
    ids: bytes
    ends: list[int]  # bytes up to the end of each piece
    leading: int  # pieces of the system message


class Prompts:
    """Makes the prompt of each turn. Raises BadInput for content that the wire cannot carry."""

    def __init__(
        self, encoder: Encoder, *, chat: bool, policy: Policy, salt: str, keep_bytes: int = KEEP_BYTES
    ) -> None:
        self._encoder, self._chat, self._policy, self._salt = encoder, chat, policy, salt
        self._kept: OrderedDict[tuple[int, int], _Kept] = OrderedDict()  # by play and thread
        self._held, self._limit = 0, keep_bytes
        self.replies: Replies[int] = Replies()  # by play: what goes into its later prompts, where history is live

    def ids(self, send: Send) -> bytes:
        """The whole prompt of a turn."""
        session, index = send.session, send.key.turn
        key, prompt = (send.key.serial, session.turns[index].thread), session.turns[index].prompt
        salts = salting(self._policy, self._salt, session.key, send.play)
        before = self._pop(key)
        if before is not None and prompt.base == before.turn and (prompt.keep > before.leading or not self._chat):
            ends, leading, fresh = before.ends[: prompt.keep], before.leading, [(index, one) for one in prompt.append]
            start = memoryview(before.ids)[: ends[-1] if ends else 0]
        else:
            ends, fresh, start = [], introduced(session, index), memoryview(b"")
            leading = leading_pieces(session, [piece for _, piece in fresh])
        parts = self._parts(key[0], session, fresh, ends, leading, salts)
        kept = _Kept(index, b"".join((start, *parts, MARKERS["assistant"] if self._chat else b"")), ends, leading)
        self._keep(key, kept)
        return kept.ids

    def forget(self, serial: int, session: Session) -> None:
        """A play is over."""
        self.replies.forget(serial)
        for thread in session.threads:
            self._pop((serial, thread.id))

    def _parts(
        self,
        play: int,
        session: Session,
        fresh: list[tuple[int, Piece]],
        ends: list[int],
        leading: int,
        salts: Salting,
    ) -> list[bytes]:
        """The ids of pieces that come behind those that `ends` has; their ends are added to it."""
        parts: list[bytes] = []
        at = ends[-1] if ends else 0
        for place, (turn, piece) in enumerate(fresh, len(ends)):
            reply = self.replies.in_place_of(play, session, turn, piece)
            if reply is None:
                part = self._content(session, piece, salts)
            else:
                low, high, behind = reply.cut(piece)
                part = ids_from_list((reply.ids or ())[low:high])
                part += b"" if behind is None else self._content(session, behind, salts)
            if self._chat:
                role, leads = placed(session.segment(piece.segment).layer, place <= leading if place else None)
                part = part if role is None else MARKERS[role] + part
            if not self._chat or not leads or place == leading - 1:  # the end of a message
                part += b" " * (-(at + len(part)) % WORD)
            parts.append(part)
            at += len(part)
            ends.append(at)
        return parts

    def _content(self, session: Session, piece: Piece, salts: Salting) -> bytes:
        content = session.segment(piece.segment).content
        if isinstance(content, TokenIds) and not self._chat:
            return ids_from_list(content.ids[piece.start : piece.stop])
        text = b"".join(self._encoder.piece_text(session, piece, salts))
        return str(json.loads(f'"{text.decode()}"')).encode() if isinstance(content, Text) else text

    def _pop(self, key: tuple[int, int]) -> _Kept | None:
        kept = self._kept.pop(key, None)
        self._held -= len(kept.ids) if kept else 0
        return kept

    def _keep(self, key: tuple[int, int], kept: _Kept) -> None:
        self._kept[key] = kept
        self._held += len(kept.ids)
        while self._held > self._limit and len(self._kept) > 1:
            self._held -= len(self._kept.popitem(last=False)[1].ids)
