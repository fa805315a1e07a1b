"""What happened between a model call and the one before it in its thread: what was kept, lost and appended, and why.

A step is told from the prompts, not from who made the trace. What the prompts cannot say (an opaque prompt that grew
by less than the reply before it) is counted as the smallest that can have happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from agentx.core import LEADING_LAYERS, Layer, Piece, Session, Turn

SHRUNK, LONG = 0.6, 20_000  # a context of at least LONG tokens that falls below this share of itself was compacted
Kind = Literal["start", "tool", "spawn", "human"]
What = Literal["grown", "compaction", "reset", "pull_back"]


@dataclass(frozen=True, slots=True)
class Context:
    """A thread's latest call and its whole prompt; `length`: tokens of the pieces."""

    turn: Turn
    pieces: list[Piece]
    length: int


@dataclass(frozen=True, slots=True)
class Part:
    """New content of a prompt."""

    layer: Layer
    tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """A call and how it came about. Tokens: `before` of the latest prompt and its reply, `kept` of these at the front,
    `lost` of these nowhere; `fresh` is what is new. `joined`: last calls of the subagents that it waits for.
    """

    turn: Turn
    kind: Kind
    what: What
    before: int
    kept: int
    lost: int
    fresh: tuple[Part, ...]
    joined: tuple[int, ...] = ()

    @property
    def grown(self) -> int:
        return sum(part.tokens for part in self.fresh)


def context(session: Session, turn: Turn, latest: Context | None) -> Context:
    """The prompt of a turn, resolved; at the cost of what is new in it where it goes on from `latest`."""
    prompt = turn.prompt
    if latest is not None and prompt.base == latest.turn.index:
        pieces = [*latest.pieces[: prompt.keep], *prompt.append]
        if prompt.keep == len(latest.pieces):
            return Context(turn, pieces, latest.length + sum(piece.tokens for piece in prompt.append))
    else:
        pieces = session.pieces(turn.index)
    return Context(turn, pieces, sum(piece.tokens for piece in pieces))


def step(session: Session, latest: Context | None, now: Context) -> Step:
    """How `now` came about after `latest`, the call before it in its thread (None: it opens the thread)."""
    turn = now.turn
    if latest is None:
        return Step(turn, "start", "grown", 0, 0, 0, _parts(session, now.pieces, now, 0))
    at, whole, part = _common(latest, now)
    kept = whole + part
    rest = now.pieces[at:]
    reply = latest.turn.reply
    if at == len(latest.pieces):
        new = [piece for piece in rest if piece.segment != reply]
        gone = 0
    else:
        known = {piece.segment for piece in latest.pieces} | {reply}
        new = [piece for piece in rest if piece.segment not in known]
        again = sum(piece.tokens for piece in rest) - sum(piece.tokens for piece in new) - part
        had = latest.length + (latest.turn.output.tokens if reply is not None else 0)
        gone = max(0, had - kept - again)
    shown = sum(piece.tokens for piece in rest if piece.segment == reply)
    fresh = _parts(session, new, now, latest.turn.isl - latest.length)
    if reply is None and gone == 0:  # the reply is somewhere in what is new
        fresh = _less(fresh, latest.turn.output.tokens)
    before = latest.turn.isl + (shown or latest.turn.output.tokens)
    joined = _joined(session, turn)
    kind = _kind(turn, fresh, joined)
    what = _what(turn, kind, before, gone, _leading(session, now.pieces))
    return Step(turn, kind, what, before, kept, gone, fresh, joined)


def _common(latest: Context, now: Context) -> tuple[int, int, int]:
    """How many pieces two prompts share at the front, their tokens, and those of a piece behind them that was cut."""
    base = now.turn.prompt.base
    if base == latest.turn.index:
        at = now.turn.prompt.keep
    else:
        pairs = zip(latest.pieces, now.pieces, strict=False)
        at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    kept = latest.length if at == len(latest.pieces) else sum(piece.tokens for piece in latest.pieces[:at])
    part = 0
    if at < min(len(latest.pieces), len(now.pieces)):
        old, new = latest.pieces[at], now.pieces[at]
        if old.segment == new.segment and old.start == new.start:
            part = min(old.tokens, new.tokens)
    return at, kept, part


def _parts(session: Session, pieces: list[Piece], now: Context, unattributed: int) -> tuple[Part, ...]:
    """New pieces as parts; tokens that belong to no piece, and more of them than before, are a part of their own."""
    parts = [Part(session.segment(piece.segment).layer, piece.tokens) for piece in pieces]
    more = now.turn.isl - now.length - unattributed
    if more > 0:
        parts.append(Part(parts[-1].layer if parts else "user", more))
    return tuple(parts)


def _less(parts: tuple[Part, ...], tokens: int) -> tuple[Part, ...]:
    """Parts without the first `tokens` of them; at least one token is left of the last."""
    left = []
    for part in parts:
        cut = min(part.tokens, tokens)
        tokens -= cut
        if part.tokens > cut or part is parts[-1]:
            left.append(Part(part.layer, max(1, part.tokens - cut)))
    return tuple(left)


def _joined(session: Session, turn: Turn) -> tuple[int, ...]:
    children = {thread.id for thread in session.threads if thread.kind == "subagent" and thread.parent == turn.thread}
    return tuple(index for index in turn.after if session.turns[index].thread in children)


def _kind(turn: Turn, fresh: tuple[Part, ...], joined: tuple[int, ...]) -> Kind:
    layers = {part.layer for part in fresh}
    if joined:
        return "spawn"
    if turn.tools or turn.gap.kind == "tool" or ("tool_result" in layers and turn.gap.kind != "human"):
        return "tool"
    return "human"


def _leading(session: Session, pieces: list[Piece]) -> int:
    """Tokens of the leading layers of a prompt."""
    lead = takewhile(lambda piece: session.segment(piece.segment).layer in LEADING_LAYERS, pieces)
    return sum(piece.tokens for piece in lead)


def _what(turn: Turn, kind: Kind, before: int, gone: int, leading: int) -> What:
    event = turn.event.kind if turn.event is not None else None
    if event == "compaction":
        return "compaction"
    if event == "reset":
        return "reset" if kind == "human" else "pull_back"
    if event == "think_strip" or not gone:
        return "grown"
    if turn.isl < SHRUNK * before and before >= LONG:
        return "compaction"
    if kind == "human" and turn.isl - leading < SHRUNK * (before - leading):
        return "reset"
    return "pull_back"
