"""Side calls of a trace: on which occasion each kind is made, and on what."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from agentx.core import Session, Thread, Turn
from agentx.generator.fit_steps import Context


@dataclass(slots=True)
class SideSeen:
    """All side calls of one name."""

    prompts: list[float] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)
    systems: list[int] = field(default_factory=list)
    occasions: Counter[str] = field(default_factory=Counter)
    whole: int = 0  # of them, on the conversation's context
    joined: int = 0  # of them, that the conversation waited for
    models: Counter[str | None] = field(default_factory=Counter)
    others: int = 0  # of them, by another model than the conversation's


def side_call(sides: dict[str, SideSeen], session: Session, thread: Thread, turn: Turn, main: Context | None) -> None:
    """Note one side call, made when `main` was the conversation's latest call."""
    seen = sides.setdefault(thread.type or "side", SideSeen())
    pieces = session.pieces(turn.index)
    known = {piece.segment for piece in main.pieces} if main is not None else set()
    system = sum(p.tokens for p in pieces if session.segment(p.segment).layer in ("tools", "system"))
    last = pieces[-1].tokens if pieces else turn.isl
    beside = {each.id for each in session.threads if each.kind != "main"}
    behind = next((each for each in session.turns[turn.index + 1 :] if each.thread not in beside), None)
    whole = any(p.segment in known for p in pieces if session.segment(p.segment).layer not in ("tools", "system"))
    seen.whole += whole
    seen.systems.append(0 if whole else system)
    seen.prompts.append(max(1, last if whole else turn.isl - system))
    seen.replies.append(turn.output.tokens)
    seen.models[turn.model] += 1
    talk = behind if main is None else main.turn
    seen.others += talk is not None and turn.model != talk.model
    seen.joined += behind is not None and turn.index in behind.after
    compacts = behind is not None and behind.event is not None and behind.event.kind == "compaction"
    seen.occasions["start" if main is None else "compaction" if compacts else "message"] += 1
