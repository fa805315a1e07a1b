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
    """The lines of a strand, in order of their first calls; the first is the strand's main line."""
    lines: list[Context] = []
    for position, call in enumerate(strand.calls):
        if not lines:
            lines.append(Context([call]))
            continue
        shared = [common(line.last.request.ids, call.request.ids) for line in lines]
        home = _home(lines, shared, call, strand, block, strand.calls[position + 1 :])
        if home is not None:
            home.calls.append(call)
            continue
        best = max(range(len(lines)), key=shared.__getitem__)
        lines.append(Context([call], side=True, root=lines[best].last if shared[best] else None))
    return lines


def _home(
    lines: list[Context], shared: list[int], call: Call, strand: Strand, block: int, later: Sequence[Call]
) -> Context | None:
    """The line that the call continues, None for a new one."""
    idle = [i for i, line in enumerate(lines) if line.last.over <= call.start + strand.slack]
    exact = [i for i in idle if shared[i] and shared[i] >= whole_blocks(lines[i].last, block)]
    exact = [i for i in exact if call.request.isl >= lines[i].last.request.isl]
    if exact:
        return lines[max(exact, key=lambda i: (shared[i], -i))]
    if not idle:
        return None
    best = max(idle, key=lambda i: (shared[i], -i))
    line, kept = lines[best], shared[best]
    if line.side and kept < SHARE * len(line.last.request.ids):
        best, line, kept = 0, lines[0], shared[0]
        if 0 not in idle:
            return None
    if _returned_to(line.last.request.ids, kept, later):
        return None
    goes_on = _built_on(call.request.ids, kept, later)
    leading = max((end for end, _ in strand.lead), default=0)
    shrinks = call.request.isl < line.last.request.isl
    if not goes_on and ((shrinks and kept * block <= leading + block) or not kept):
        return None
    return line


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
