"""Which replies stand in later prompts: the one rule that the client, the simulation and the reuse accounting share.

`recorded`: those of the trace. `live`: the server's own text. `live-ids`: the server's own token ids. In the live ones
a piece of a turn's reply segment is that reply, where the turn that brings the piece in waits (directly or not) for the
turn that made it, and that one was answered in this play. Everything else keeps the words of the trace, and so do the
tokens of a reply that were never asked for (a warm-up turn asks for one), so that prompts keep their lengths.

Text has no token boundaries: token i of n is an n-th of its characters. For the embedded engine that is exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from agentx.core import Attempt, Piece, Session

History = Literal["recorded", "live", "live-ids"]
WireKind = Literal["chat", "chat-ids", "generate", "completions-ids", "messages"]
TEXT_WIRES: tuple[WireKind, ...] = ("chat", "messages")
IDS, TEXT = "reply_ids", "reply_text"  # fields of a record that hold what came, where it goes into later prompts

PlayKey = TypeVar("PlayKey", bound=Hashable)


def histories_of(wire: WireKind) -> tuple[History, ...]:
    """The histories that go with a wire."""
    return ("recorded", "live") if wire in TEXT_WIRES else ("recorded", "live-ids")


@dataclass(frozen=True, slots=True)
class LiveReply:
    """What a server answered: `ids` or `text`, `tokens` long, where `asked` tokens were asked for."""

    asked: int
    tokens: int
    ids: tuple[int, ...] | None = None
    text: str | None = None

    def part(self, start: int, stop: int) -> str:
        """Text of tokens `start ... stop - 1`."""
        text = self.text or ""
        return text[len(text) * start // self.tokens : len(text) * stop // self.tokens] if self.tokens else ""

    def words(self) -> Sequence[Hashable]:
        """Its tokens, as things that can be compared."""
        if self.ids is not None:
            return self.ids
        return [self.part(at, at + 1) for at in range(self.tokens)]

    def cut(self, piece: Piece) -> tuple[int, int, Piece | None]:
        """(start, stop) of the reply's tokens in a piece, and the piece of recorded words behind them."""
        stop = max(piece.start, min(piece.stop, self.tokens))
        behind = max(piece.start, self.asked)
        return piece.start, stop, piece._replace(start=behind) if behind < piece.stop else None

    @property
    def digest(self) -> str:
        """What a record keeps beside the reply itself."""
        plain = repr(self.ids) if self.text is None else self.text
        return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def kept_reply(attempt: Attempt) -> LiveReply | None:
    """The reply that a record holds."""
    ids, text = attempt.extra.get(IDS), attempt.extra.get(TEXT)
    if isinstance(ids, list | tuple):
        return LiveReply(attempt.osl, len(ids), ids=tuple(ids))
    if isinstance(text, str) and attempt.completion_tokens:
        return LiveReply(attempt.osl, attempt.completion_tokens, text=text)
    return None


def reply_fields(reply: LiveReply | None) -> dict[str, object]:
    """What a record keeps of a reply beside its digest."""
    if reply is None:
        return {}
    return {TEXT: reply.text} if reply.ids is None else {IDS: list(reply.ids)}


def introduced(session: Session, index: int) -> list[tuple[int, Piece]]:
    """The resolved prompt of a turn, each piece with the turn that brought it in."""
    parts: list[list[tuple[int, Piece]]] = []
    turn, limit = index, None
    while True:
        prompt = session.turns[turn].prompt
        own = prompt.append if limit is None else prompt.append[: max(0, limit - prompt.keep)]
        parts.append([(turn, piece) for piece in own])
        limit = prompt.keep if limit is None else min(limit, prompt.keep)
        if prompt.base is None or limit == 0:
            break
        turn = prompt.base
    return [piece for part in reversed(parts) for piece in part]


class _Sources:
    """Of one session: which turn made a segment, and which turns each one waits for."""

    def __init__(self, session: Session) -> None:
        self.makers: dict[int, int] = {}
        self.before: list[int] = []  # a bit for each turn that has ended when this one is sent
        for turn in session.turns:
            waited = 0
            for earlier in turn.after:
                waited |= self.before[earlier] | 1 << earlier
            self.before.append(waited)
            if turn.reply is not None:
                self.makers.setdefault(turn.reply, turn.index)

    def maker(self, turn: int, piece: Piece) -> int | None:
        made = self.makers.get(piece.segment)
        return made if made is not None and self.before[turn] >> made & 1 else None


class Replies(Generic[PlayKey]):
    """The replies of plays, by whatever key their owner has for a play."""

    def __init__(self) -> None:
        self._replies: dict[PlayKey, dict[int, LiveReply]] = {}
        self._sources: dict[PlayKey, _Sources] = {}

    def keep(self, play: PlayKey, turn: int, reply: LiveReply) -> None:
        self._replies.setdefault(play, {})[turn] = reply

    def forget(self, play: PlayKey) -> None:
        self._replies.pop(play, None)
        self._sources.pop(play, None)

    def in_place_of(self, play: PlayKey, session: Session, turn: int, piece: Piece) -> LiveReply | None:
        """The reply that stands in a piece which `turn` brings in; None: the words of the trace do."""
        maker = self.maker(play, session, turn, piece)
        return None if maker is None else self._replies[play].get(maker)

    def maker(self, play: PlayKey, session: Session, turn: int, piece: Piece) -> int | None:
        """The turn that made what stands in such a piece; None: it is no reply, or none of this play."""
        if play not in self._replies:
            return None
        sources = self._sources.get(play)
        if sources is None:
            sources = self._sources[play] = _Sources(session)
        return sources.maker(turn, piece)


class _Point:
    __slots__ = ("edges",)

    def __init__(self) -> None:
        self.edges: dict[Hashable, tuple[int, int, _Point]] = {}  # first token -> owner, stop, point


class Generated:
    """Names for generated tokens, so that equal beginnings of replies have equal names.

    A token is named by (the first reply that had it behind the same tokens, its position).
    """

    def __init__(self) -> None:
        self._owners: list[Sequence[Hashable]] = []
        self._root = _Point()

    def named(self, tokens: Sequence[Hashable]) -> list[tuple[int, int, int]]:
        """A whole reply as runs (owner, start, stop)."""
        point, at = self._root, 0
        runs: list[tuple[int, int, int]] = []
        while at < len(tokens):
            edge = point.edges.get(tokens[at])
            if edge is None:
                self._owners.append(tokens)
                point.edges[tokens[at]] = (len(self._owners) - 1, len(tokens), _Point())
                return [*runs, (len(self._owners) - 1, at, len(tokens))]
            owner, stop, child = edge
            known, same = self._owners[owner], at
            while same < min(stop, len(tokens)) and known[same] == tokens[same]:
                same += 1
            if same < stop:
                middle = _Point()
                middle.edges[known[same]] = (owner, stop, child)
                point.edges[tokens[at]] = (owner, same, middle)
                child = middle
            runs.append((owner, at, same))
            point, at = child, same
        return runs


def cut_runs(runs: Sequence[tuple[int, int, int]], start: int, stop: int) -> list[tuple[int, int, int]]:
    """Positions `start ... stop - 1` of a reply's runs."""
    return [(owner, max(low, start), min(high, stop)) for owner, low, high in runs if low < stop and high > start]
