"""The server's own replies in the prompts of a run with live history: what was sent for each piece, and what of each
reply the server has KV of.

Tokens are compared by what they are, so replies that begin alike share that beginning. The last token of a reply was
sampled and never computed, so it has no KV; with speculative decoding the last step may have computed beyond it
(SGLang 0.5.23: prompt + min(tokens accepted in all steps, tokens of the reply)). A reply that did not come to its end
leaves only its prompt in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentx.core import Attempt, Piece, Session, Stream
from agentx.reuse import Live, Walk
from agentx.reuse_template import Span
from agentx.wire.history import Generated, Replies, cut_runs, kept_reply

Play = tuple[str, int]  # a session's key, and the number of its play
_Runs = list[tuple[int, int, int]]


class RunReplies:
    """Of all attempts of a run. Without `live` every prompt is the trace's own, and no reply counts."""

    def __init__(self, attempts: Iterable[Attempt], *, live: bool) -> None:
        self.live = live
        self._replies: Replies[Play] = Replies()
        self._runs: dict[tuple[str, int, int], _Runs] = {}
        self._owned: dict[tuple[str, int, int], int] = {}
        names = Generated()
        for attempt in attempts:
            reply = kept_reply(attempt) if live and attempt.ok else None
            if reply is not None:
                self._replies.keep((attempt.session, attempt.play), attempt.turn, reply)
                key = attempt.session, attempt.play, attempt.turn
                self._runs[key] = names.named(reply.words())
                self._owned[key] = owned(reply.tokens, attempt.extra.get("spec"))

    def of(self, walk: Walk, play: int) -> Live | None:
        """For one play of a session; None with recorded history."""
        if not self.live:
            return None
        name, session = (walk.session.key, play), walk.session

        def piece(turn: int, piece: Piece) -> list[Span] | None:
            reply = self._replies.in_place_of(name, session, turn, piece)
            if reply is None:
                return None
            start, stop, behind = reply.cut(piece)
            made = self._replies.maker(name, session, turn, piece)
            if made is None:
                own = []
            else:
                source = (*name, made)
                own = _spans(cut_runs(self._runs[source], start, stop))
            return own + ([] if behind is None else walk.spans(behind))

        def reply(turn: int) -> list[Span]:
            key = (*name, turn)
            return _spans(cut_runs(self._runs[key], 0, self._owned[key])) if key in self._runs else []

        return Live(piece, reply)

    def length(self, session: Session, play: int, pieces: Iterable[tuple[int, Piece]]) -> int:
        """Tokens of a prompt as it was sent, without the template's; `pieces` with the turns that brought them in."""
        if not self.live:
            return sum(piece.tokens for _, piece in pieces)
        total = 0
        for brought, piece in pieces:
            reply = self._replies.in_place_of((session.key, play), session, brought, piece)
            if reply is None:
                total += piece.tokens
            else:
                start, stop, behind = reply.cut(piece)
                total += stop - start + (0 if behind is None else behind.tokens)
        return total


def owned(tokens: int, spec: Mapping[str, Any] | None) -> int:
    """Tokens of a whole reply that have KV. `spec`: what the server told of its speculative decoding."""
    steps, drafts = (spec or {}).get("spec_verify_ct"), (spec or {}).get("spec_num_correct_drafts")
    if isinstance(steps, int) and isinstance(drafts, int):
        return min(steps + drafts, tokens)
    return tokens - 1


def _spans(runs: _Runs) -> list[Span]:
    return [Span((Stream("reply", "literal", owner), ""), start, stop) for owner, start, stop in runs]
