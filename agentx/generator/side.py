"""Side calls: a model call beside the conversation, in a thread of its own, such as one for a title or a summary."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from agentx.core import Gap, Output, Piece, Prompt, Segment, Thread
from agentx.generator.line import Line
from agentx.generator.shared import Shared
from agentx.generator.spec import WorkloadSpec
from agentx.generator.spec_events import SideCall

Occasion = Literal["start", "message", "compaction"]


def side_calls(line: Line, spec: WorkloadSpec, shared: Shared, occasion: Occasion, wait: Gap) -> Gap:
    """Make the side calls of one occasion. They wait for what the line's next turn waits for, `wait` long.

    Returns what is left to wait for the next turn: nothing, if it waits for one of them.
    """
    joined: list[int] = []
    for name, side in spec.side_calls.items():
        if side.at == occasion and line.chance(f"side/{name}", side.share):
            index = _call(line, name, side, shared.sides[name], wait)
            if side.waits and index is not None:
                joined.append(index)
    if not joined:
        return wait
    line.waits = (*line.waits, *joined)
    return Gap("spawn", 0.0, "drawn")


def _call(line: Line, name: str, side: SideCall, system: Segment, wait: Gap) -> int | None:
    """The index of the side call's turn, or None if it does not fit."""
    draft, stream = line.draft, f"side/{name}/"
    asked = Segment(draft.new_id(), "user", line.count(f"{stream}prompt", side.prompt))
    output = Output(line.count(f"{stream}reply", side.reply))
    ask = Piece(asked.id, 0, asked.tokens)
    if side.context == "whole":
        prompt, isl = line.prompt(ask), line.isl + asked.tokens
    else:
        own = (Piece(system.id, 0, system.tokens),) if system.tokens else ()
        prompt, isl = Prompt((*own, ask)), system.tokens + asked.tokens
    if isl + output.tokens > line.limit:
        return None
    thread = Thread(len(draft.threads), line.thread, "side", name)
    draft.threads.append(thread)
    beside = Line(draft, line.limit, thread.id, model=side.model or line.model, fresh={asked.id: asked})
    if side.context == "whole":
        beside.fresh = {**line.fresh, asked.id: asked}
        line.fresh = {}
    after = tuple(sorted({*(() if line.last is None else (line.last,)), *line.waits}))
    return beside.send(prompt, isl, output, replace(wait, kind="spawn"), after).index
