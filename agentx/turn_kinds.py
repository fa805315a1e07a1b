"""What kind of turn a turn is, by what made its prompt: the name under which figures of turns are grouped."""

from __future__ import annotations

from agentx.core import GAP_KINDS, Session

BREAKS = ("compaction", "reset", "think_strip", "model_switch")  # events after which a prompt is another one
TURN_KINDS: tuple[str, ...] = ("first", *GAP_KINDS, *BREAKS)


def turn_kinds(session: Session) -> list[str]:
    """The kind of each turn: that of its event where one changed the prompt; `first` of its thread; else its gap's."""
    seen: set[int] = set()
    kinds: list[str] = []
    for turn in session.turns:
        if turn.event is not None and turn.event.kind in BREAKS:
            kinds.append(turn.event.kind)
        else:
            kinds.append(turn.gap.kind if turn.thread in seen else "first")
        seen.add(turn.thread)
    return kinds
