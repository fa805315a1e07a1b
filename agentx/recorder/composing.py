"""Linked turns become sessions of a trace: relative times, gaps with their kinds, tools, events.

A gap before a turn that brings tool results is a tool's, one before new user text is a human's; waiting for a
permission is inside either, unless the source tells how long a tool ran (`pauses.py`). Calls of a source without clocks
(`timed` false) have no times: their gaps are 0 and inferred, and nothing was observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentx.core import Gap, Observed, Session, Thread, Tool, TurnEvent
from agentx.core import Turn as TraceTurn
from agentx.recorder.attempts import Attempt, Items
from agentx.recorder.canonical import ToolCall
from agentx.recorder.imports.books import Books
from agentx.recorder.lineage import Kin, Line, Linked
from agentx.recorder.names import Names
from agentx.recorder.pauses import Run, Told, ToolTime, parts
from agentx.recorder.weaving import Weaver, Woven


@dataclass(slots=True)
class Composer:
    """Gives the session of each kin; `start` is when the first call of all arrived."""

    items: Items
    books: Books
    names: Names
    weaver: Weaver
    linked: Sequence[Linked]
    start: int  # ns of the first arrival of all
    told: Told = field(default_factory=Told)
    woven: dict[int, Woven] = field(default_factory=dict)  # by the turn's index in the capture

    def session(self, kin: Kin, number: int) -> Session:
        """One session. Its turns are in the order of their arrival, which puts causes before effects."""
        line_of = {turn.index: at for at, line in enumerate(kin.lines) for turn in line.turns}
        order = sorted((turn for line in kin.lines for turn in line.turns), key=lambda turn: turn.index)
        place = {turn.index: at for at, turn in enumerate(order)}
        segments = self.weaver.open()
        first = next((this.turn.opened for this in order if this.turn.last.timed), order[0].turn.opened)
        made: list[TraceTurn] = []
        for this in order:
            after = self._after(this, kin, line_of, place)
            made.append(self._turn(this, place, line_of[this.index], after, order, first))
        for this in order:
            self.woven.pop(this.index)
        return Session(
            f"s{number:04d}",
            tuple(made),
            tuple(self._thread(at, line) for at, line in enumerate(kin.lines)),
            segments,
            self.weaver.file.segments,
            arrival=_seconds(first - self.start) if any(this.turn.last.timed for this in order) else None,
            extra={"known_by": kin.rule},
        )

    def _thread(self, number: int, line: Line) -> Thread:
        kind = line.turns[0].turn.last.kind
        named = self.names.role(kind) if kind is not None and line.kind == "subagent" else None
        return Thread(number, line.parent, line.kind, named)

    def _after(
        self, this: Linked, kin: Kin, line_of: Mapping[int, int], place: Mapping[int, int]
    ) -> tuple[list[int], bool]:
        """The capture's indices of the turns that this one waited for, and whether that is known."""
        line = kin.lines[line_of[this.index]]
        if this.parent is not None:
            return [this.parent, *self._joined(this, kin, place)], True
        if this.spawner is not None and this.spawner in place:
            return [this.spawner], True
        if line.parent is not None:
            ended = [t.index for t in kin.lines[line.parent].turns if t.turn.ended <= this.turn.opened]
            return (ended[-1:], line.kind == "subagent" and this.said.agent is not None)
        return [], False

    def _joined(self, this: Linked, kin: Kin, place: Mapping[int, int]) -> list[int]:
        """The last turns of the subagents whose result this turn brings."""
        answers, found = answered(this, self.items), []
        for line in kin.lines:
            root, last = line.turns[0], line.turns[-1]
            brought = root.spawn_call is not None and root.spawn_call in answers and root.spawner in place
            if brought and last.turn.ended <= this.turn.opened and last.index != this.index:
                found.append(last.index)
        return found

    def _turn(
        self,
        this: Linked,
        place: Mapping[int, int],
        thread: int,
        after: tuple[list[int], bool],
        order: Sequence[Linked],
        first: int,
    ) -> TraceTurn:
        turn = this.turn
        parent = self.woven.get(this.parent) if this.parent is not None else None
        before = self.linked[this.parent] if this.parent is not None and parent is not None else None
        base = place[before.index] if before is not None else None
        woven = self.weaver.weave(turn, parent, base, this.shared, before.turn if before is not None else None)
        self.woven[this.index] = woven
        waited = sorted({place[index] for index in after[0] if index in place})
        ended = max((order[at].turn.ended for at in waited), default=first)
        gap = self._gap(this, _seconds(turn.opened - ended), bool(waited), after[1])
        if waited and turn.last.timed:
            gap = self._parted(gap, this, (ended, turn.opened))
        return TraceTurn(
            index=place[this.index],
            thread=thread,
            prompt=woven.prompt,
            isl=woven.isl,
            output=woven.output,
            after=tuple(waited),
            gap=gap,
            tools=self._tools(this) if gap.kind == "tool" else (),
            model=self.names.model(turn.last.model),
            reply=woven.reply,
            event=self._event(this, woven, parent),
            sampling=turn.last.sampling,
            observed=_observed(turn.last, first),
            extra=self._extra(this, woven),
        )

    def _gap(self, this: Linked, seconds: float, waited: bool, known: bool) -> Gap:
        if not waited:
            return Gap("unknown", max(seconds, 0.0), "inferred")
        timed = this.turn.last.timed
        seconds = seconds if timed else 0.0
        provenance: Any = "recorded" if known and timed else "inferred"
        if this.parent is None:
            return Gap("spawn" if known else "unknown", max(seconds, 0.0), provenance)
        layers = {self.items.known[number].layer for number in this.turn.numbers[this.shared :]}
        kind: Any = "tool" if "tool_result" in layers else "human" if "user" in layers else "unknown"
        if this.turn.last.wire in ("completions", "generate"):
            kind = "unknown"  # a prompt without messages does not say who wrote its end
        return Gap(kind, max(seconds, 0.0), provenance)

    def _parted(self, gap: Gap, this: Linked, pause: tuple[int, int]) -> Gap:
        """The gap with its parts, where something else than its turns tells of them."""
        runs = self.told.turns.get(this.index, ())
        ids = [call.id for call in self._answered(this)] if this.parent is not None else [this.spawn_call or ""]
        tools = [*(self.told.calls.get(id, ToolTime()) for id in ids), *(run.time for run in runs)]
        certain = this.index not in self.told.by_times
        found = parts(pause, tools, self.told.asked.get(this.index), certain)
        kind: Any = "tool" if runs and this.parent is not None else gap.kind
        return replace(gap, kind=kind, parts=found) if found is not None else gap

    def _answered(self, this: Linked) -> tuple[ToolCall, ...]:
        """The tool calls of the turn before that this one brings the results of."""
        emitted = self.linked[this.parent].turn.last.calls if this.parent is not None else ()
        answers = answered(this, self.items) if emitted else frozenset()
        return tuple(call for call in emitted if call.id in answers)

    def _tools(self, this: Linked) -> tuple[Tool, ...]:
        calls, runs = self._answered(this), self.told.turns.get(this.index, ())
        if not calls:
            return tuple(self._tool(run.name, run.time) for run in runs)
        return tuple(self._tool(call.name, self.told.calls.get(call.id) or _alone(call, calls, runs)) for call in calls)

    def _tool(self, name: str, time: ToolTime) -> Tool:
        waited = {"waited_for_user": round(time.waited, 6)} if time.waited is not None else {}
        return Tool(self.names.tool(name), round(time.ran, 6) if time.ran is not None else None, waited)

    def _event(self, this: Linked, woven: Woven, parent: Woven | None) -> TurnEvent | None:
        last = this.turn.last
        if not last.reply.whole:
            return TurnEvent("abort" if last.cause in ("client_abort", "recorder_stopped") else "error")
        if parent is None or this.parent is None:
            return None
        if parent.model != woven.model:
            return TurnEvent("model_switch")
        layers = {self.items.known[number].layer for number in this.turn.numbers[this.shared :]}
        if woven.isl < parent.isl and this.how == "prefix" and "user" in layers:
            # All that it showed is still there, and yet it is shorter: the reasoning of earlier turns was left out.
            return TurnEvent("think_strip", before=parent.isl)
        if woven.isl < parent.isl and this.how in ("partial", "agent", "tool"):
            kept = sum(piece.tokens for piece in parent.pieces[: woven.prompt.keep])
            return TurnEvent("compaction" if kept else "reset", before=parent.isl, kept=kept)
        return None

    def _extra(self, this: Linked, woven: Woven) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        if len(this.turn.attempts) > 1:
            failed = [attempt.status or attempt.cause for attempt in this.turn.attempts[:-1]]
            extra["attempts"] = {"count": len(this.turn.attempts), "failed": failed}
        if this.how not in ("prefix", "none"):
            extra["linked_by"] = this.how
        if woven.unattributed:
            extra["unattributed"] = woven.unattributed
        if woven.estimated:
            extra["estimated"] = list(woven.estimated)
        if this.turn.prefix_unknown:
            extra["prefix_unknown"] = True
        return extra


def answered(this: Linked, items: Items) -> frozenset[str]:
    """The ids of the tool calls whose results are new in a turn's prompt."""
    return frozenset(call for number in this.turn.numbers[this.shared :] for call in items.known[number].answers)


def _alone(call: ToolCall, calls: Sequence[ToolCall], runs: Sequence[Run]) -> ToolTime:
    """The time of the one run with the call's name, where only one call has that name."""
    named = [run.time for run in runs if run.name == call.name]
    return named[0] if len(named) == 1 and sum(1 for each in calls if each.name == call.name) == 1 else ToolTime()


def _seconds(nanoseconds: int) -> float:
    """Seconds at a resolution of a microsecond, which is what the clocks are good for."""
    return round(nanoseconds / 1e9, 6)


def _observed(last: Attempt, first: int) -> Observed:
    reply = last.reply
    if not last.timed:
        return Observed(cached=reply.usage.cached)
    ttft = _seconds(reply.first_token - last.opened) if reply.first_token is not None else None
    status = str(last.status) if last.status is not None else None
    start, end = _seconds(last.opened - first), _seconds(last.ended - first)
    return Observed(start, ttft, end, reply.usage.cached, status if last.cause == "done" else last.cause)
