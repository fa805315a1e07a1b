"""Edits of a context: full resets, pull-backs, reasoning that is dropped at user messages.

Each edit leaves the pieces in front of it as they were; a cache loses what is behind.
"""

from __future__ import annotations

from agentx.core import LEADING_LAYERS, Piece, TurnEvent
from agentx.distributions import whole
from agentx.generator.line import Line
from agentx.generator.spec_events import PullBacks


def leading(line: Line) -> int:
    """How many pieces of tools, system and shared layers stand in front."""
    count = 0
    while count < len(line.pieces) and line.layer(line.pieces[count]) in LEADING_LAYERS:
        count += 1
    return count


def reset(line: Line) -> None:
    """Clear all but the leading layers."""
    line.replace(leading(line), [])
    line.event = TurnEvent("reset")


def strip_reasoning(line: Line) -> None:
    """Drop the reasoning of all replies; a reply's reasoning is in front of what was visible of it."""
    reasoning = {turn.reply: turn.output.reasoning for turn in line.draft.turns if turn.output.reasoning}
    first = next((at for at, piece in enumerate(line.pieces) if piece.start < reasoning.get(piece.segment, 0)), None)
    if first is None:
        return
    visible = []
    for piece in line.pieces[first:]:
        start = max(piece.start, reasoning.get(piece.segment, 0))
        if start < piece.stop:
            visible.append(Piece(piece.segment, start, piece.stop))
    line.replace(first, visible)
    line.event = TurnEvent("think_strip")


def pull_back(line: Line, spec: PullBacks) -> None:
    """By chance, lose the end of the context; the tool results that were just appended stay behind it."""
    if not line.chance("pull_back", spec.share):
        return
    sent = line.kept
    fresh = line.pieces[sent + 1 :]  # behind the latest prompt and the reply to it
    floor = min(leading(line), sent)
    old = line.isl - sum(piece.tokens for piece in fresh)
    lost = whole(spec.lost.draw(line.bits("pull_back_lost")) * old)
    at, cut = len(line.pieces) - len(fresh), 0
    while at > floor and cut < lost:
        at -= 1
        cut += line.pieces[at].tokens
    rest: list[Piece] = []
    if cut > lost:  # the piece on the border stays in part
        border = line.pieces[at]
        rest = [Piece(border.segment, border.start, border.start + cut - lost)]
    lost = min(cut, lost)
    if not lost:
        return
    line.replace(at, rest)
    if line.chance("pull_back_rewritten", spec.rewritten):
        line.append("user", lost)
    for piece in fresh:
        line.pieces.append(piece)
        line.isl += piece.tokens
