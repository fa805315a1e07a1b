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
from agentx.wire.messages import BEHIND, Brought, Placed, Shape, arranged, leading_pieces
from agentx.wire.salting import Policy, salting
from agentx.wire.tooltext import (
    bare_definition,
    calls_text,
    definition_closes,
    definition_opens,
    definitions,
    whole_words,
)

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
        self,
        encoder: Encoder,
        *,
        chat: bool,
        policy: Policy,
        salt: str,
        shape: Shape = "plain",
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self._encoder, self._chat, self._policy, self._salt, self._shape = encoder, chat, policy, salt, shape
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
        make = self._messages if self._chat else self._pieces
        parts = make(key[0], session, fresh, ends, salts)
        kept = _Kept(index, b"".join((start, *parts, MARKERS["assistant"] if self._chat else b"")), ends, leading)
        self._keep(key, kept)
        return kept.ids

    def forget(self, serial: int, session: Session) -> None:
        """A play is over."""
        self.replies.forget(serial)
        for thread in session.threads:
            self._pop((serial, thread.id))

    def _pieces(
        self, play: int, session: Session, fresh: list[Brought], ends: list[int], salts: Salting
    ) -> list[bytes]:
        """The ids of pieces that come behind those that `ends` has; their ends are added to it."""
        parts: list[bytes] = []
        for brought in fresh:
            part = self._text(play, session, brought, salts)
            _add(parts, ends, part, whole=True)
        return parts

    def _messages(
        self, play: int, session: Session, fresh: list[Brought], ends: list[int], salts: Salting
    ) -> list[bytes]:
        """The same where pieces are messages."""
        parts: list[bytes] = []
        before, number = BEHIND if ends else None, 0
        places = arranged(session, fresh, self._shape, start=len(ends), before=before)
        for place, (brought, here) in enumerate(zip(fresh, places, strict=True)):
            if here.definition:
                part = self._definitions(session, brought[1], number, salts)
                number += len(definitions(session, brought[1], number))
                _add(parts, ends, part, whole=False)
            else:
                text = self._front(here, before, number, ends[-1] if ends else 0)
                text += MARKERS[here.role] if here.role else b""
                text += self._text(play, session, brought, salts)
                text += b"[" + calls_text(here.calls, "words") + b"]" if here.calls else b""
                joined = place + 1 < len(places) and places[place + 1].role is None
                _add(parts, ends, text, whole=not joined)
            before = here
        return parts

    def _front(self, here: Placed, before: Placed | None, number: int, at: int) -> bytes:
        """What the engine makes of definitions, as far as it stands at `at`, before the first message."""
        if here.bare:
            return MARKERS["system"] + whole_words(b"[" + bare_definition("words") + b"]")
        if before is not None and before.definition:
            closes = definition_closes(number - 1, "words") + b"]"
            return closes + b" " * (-(at + len(closes)) % WORD)
        return b""

    def _definitions(self, session: Session, piece: Piece, number: int, salts: Salting) -> bytes:
        made = b"" if number else MARKERS["system"]
        for one in definitions(session, piece, number):
            made += definition_closes(one.number - 1, "words") + b"," if one.number else b"["
            made += definition_opens(one.number, "words")
            made += b"".join(self._encoder.piece_text(session, one.part, salts))
        return made

    def _text(self, play: int, session: Session, brought: Brought, salts: Salting) -> bytes:
        turn, piece = brought
        reply = self.replies.in_place_of(play, session, turn, piece)
        if reply is None:
            return self._content(session, piece, salts)
        low, high, behind = reply.cut(piece)
        part = ids_from_list((reply.ids or ())[low:high])
        return part + (b"" if behind is None else self._content(session, behind, salts))

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


def _add(parts: list[bytes], ends: list[int], part: bytes, *, whole: bool) -> None:
    """Put `part` behind the others; `whole`: a message ends there, which is filled up to whole words."""
    at = (ends[-1] if ends else 0) + len(part)
    if whole and at % WORD:
        part += b" " * (-at % WORD)
        at += -at % WORD
    parts.append(part)
    ends.append(at)
