"""Compaction: a context that grew past its trigger is replaced by leading layers and a summary before the next call."""

from __future__ import annotations

from dataclasses import dataclass

from agentx.core import Gap, Piece, TurnEvent
from agentx.generator.line import Line
from agentx.generator.shared import Shared
from agentx.generator.side import side_calls
from agentx.generator.spec import WorkloadSpec
from agentx.generator.spec_events import Compaction


@dataclass(slots=True)
class Compactor:
    """Watches one line. The trigger is drawn anew after each compaction."""

    spec: WorkloadSpec
    rules: Compaction
    trigger: int

    def check(self, line: Line, shared: Shared, wait: Gap) -> Gap:
        """Compact if the next prompt has reached the trigger, and a summary would make it shorter.

        Returns what is left to wait for the next turn.
        """
        if line.last is None or line.isl < self.trigger:
            return wait
        wait = side_calls(line, self.spec, shared, "compaction", wait)
        kept = self._kept(line)
        length = sum(piece.tokens for piece in kept)
        before, summary = line.isl, line.count("compaction_summary", self.rules.summary)
        self.trigger = line.count("compaction_trigger", self.rules.trigger)
        if length + summary >= before:
            return wait
        same = next((at for at, piece in enumerate(kept) if line.pieces[at] != piece), len(kept))
        line.replace(same, kept[same:])
        line.append("summary", summary)
        line.event = TurnEvent("compaction", before, length, summary)
        return wait

    def _kept(self, line: Line) -> list[Piece]:
        """The leading pieces of the layers that stay."""
        kept = []
        for piece in line.pieces:
            if (layer := line.layer(piece)) in self.rules.keep:
                kept.append(piece)
            elif layer not in ("tools", "system", "shared"):
                break
        return kept


def compactor(line: Line, spec: WorkloadSpec) -> Compactor | None:
    """The compactor of a session, or None if its contexts are never compacted."""
    rules = spec.compaction
    if rules is None or not line.chance("compacts", rules.share):
        return None
    return Compactor(spec, rules, line.count("compaction_trigger", rules.trigger))
