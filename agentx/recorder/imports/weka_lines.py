"""Which calls of a Weka strand belong to one line of context.

The file lists an agent's calls flat, side calls among them. A call joins the line whose last prompt it continues.
One that overlaps in time with every line it could join, or that leaves a line's context while a later call returns
to it, opens a side line. A shorter prompt that later calls build on is a compaction of its line (a reset when it
keeps nothing), which `weaving` says.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from agentx.recorder.imports.blocks import common
from agentx.recorder.imports.weka_times import Call, Strand

SHARE = 0.5  # a side line goes on only with calls that keep this part of its last prompt


@dataclass(slots=True, eq=False)
class Context:
    """A line of context: its calls in order. `root` is the call whose prompt its first one branches from."""

    calls: list[Call]
    side: bool = False
    root: Call | None = None

    @property
    def last(self) -> Call:
        return self.calls[-1]


def whole_blocks(call: Call, block: int) -> int:
    """Leading ids of a call's prompt that stand for whole blocks: a cut block's id changes when it grows."""
    return min(len(call.request.ids), call.request.isl // block)


def contexts(strand: Strand, block: int) -> list[Context]:
    """The lines of a strand; the first is its main line, side lines follow in order of their first calls."""
    lines: list[Context] = []
    for position, call in enumerate(strand.calls):
        home = _home(lines, call, strand, block, strand.calls[position + 1 :]) if lines else None
        if home is not None:
            home.calls.append(call)
            continue
        near, shared = _nearest(lines, call, block)
        side = any(not line.side for line in lines)
        lines.append(Context([call], side, root=near.last if side and near is not None and shared else None))
    return sorted(lines, key=lambda line: line.side)


def _nearest(lines: Sequence[Context], call: Call, block: int) -> tuple[Context | None, int]:
    """The line whose last prompt shares most ids with the call's, and how many; of equals one that it goes on from."""
    best: tuple[Context | None, int] = None, 0
    exact = False
    for line in lines:
        ids = line.last.request.ids
        if best[1] and not _starts_with(ids, call.request.ids, best[1]):
            continue  # shares less
        shared = common(ids, call.request.ids)
        goes_on = shared > 0 and shared >= whole_blocks(line.last, block)
        if best[0] is None or (shared, goes_on) > (best[1], exact):
            best, exact = (line, shared), goes_on
    return best


def _home(lines: list[Context], call: Call, strand: Strand, block: int, later: Sequence[Call]) -> Context | None:
    """The line that the call continues, None for a new one."""
    idle = [line for line in lines if line.last.over <= call.start + strand.slack]
    line, kept = _nearest(idle, call, block)
    if line is None:
        return None
    longer = call.request.isl >= line.last.request.isl
    if kept and longer and kept >= whole_blocks(line.last, block):
        return line
    if line.side and kept < SHARE * len(line.last.request.ids):
        line = next((other for other in idle if not other.side), None)
        if line is None:
            return None
        kept = common(line.last.request.ids, call.request.ids)
    if _returned_to(line.last.request.ids, kept, later):
        return None
    if _built_on(call.request.ids, kept, later):
        return None if _was_aside(line, call, kept) else line
    leading = max((end for end, _ in strand.lead), default=0)
    return line if kept and (longer or kept * block > leading + block) else None


def _was_aside(line: Context, call: Call, kept: int) -> bool:
    """Whether a main line was none: one small call of another context, before the real one. Then it becomes a side."""
    small = 2 * line.last.request.isl <= call.request.isl
    line.side = line.side or (not kept and small and len(line.calls) == 1)
    return line.side and not kept


def _returned_to(ids: array[int], kept: int, later: Sequence[Call]) -> bool:
    """Whether a later call shares more with this chain than the first `kept` ids."""
    return kept < len(ids) and any(_starts_with(call.request.ids, ids, kept + 1) for call in later)


def _built_on(ids: array[int], kept: int, later: Sequence[Call]) -> bool:
    """Whether a later call goes on from this chain, beyond what it kept of an earlier one."""
    need = min(kept + 1, len(ids))
    return need > 0 and any(_starts_with(call.request.ids, ids, need) for call in later)


def _starts_with(ids: array[int], chain: array[int], count: int) -> bool:
    # The last id first: in chains of prefix hashes it alone settles nearly every case.
    return len(ids) >= count and ids[count - 1] == chain[count - 1] and ids[:count] == chain[:count]
