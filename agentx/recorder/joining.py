"""What a client's own files say of the pauses of a capture: found by the ids of tool calls, else by times.

A tool call is known by its id, or by the id of the reply that asked for it; a user's message by its session and when it
was written. Tools without any id are laid into the one pause that they fit in, within `TOLERANCE`, and their turns are
marked. The clock of each file is compared with the capture's (`clocks.py`). What a file tells of a call that does not
fit between its reply and the next prompt is left out, counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agentx.errors import BadInput
from agentx.recorder.attempts import Items
from agentx.recorder.clocks import TOLERANCE, Clock, Room, compared
from agentx.recorder.composing import answered
from agentx.recorder.lineage import Linked
from agentx.recorder.pauses import Interval, Run, Told, ToolTime


@dataclass(frozen=True, slots=True)
class Beside:
    """What one file, or folder, of a client says: see `Reading`, whose times these are."""

    path: Path
    format: str
    calls: dict[str, ToolTime]
    runs: Sequence[tuple[str | None, Run]]
    prompts: Sequence[tuple[str | None, int]]


@dataclass(slots=True)
class Used:
    """The books of one file: of so many tools and messages in it, so many explain a pause; and its clock."""

    beside: Beside
    clock: Clock
    calls: int = 0
    runs: int = 0
    prompts: int = 0
    misfits: int = 0  # known by an id, and not where the capture has room for them
    astray: int = 0  # without an id, and in no pause or in several
    shared: int = 0  # whose id several replies of the capture gave

    def line(self) -> str:
        told = self.beside
        parts = [f"{self.calls:,} of its {len(told.calls):,} tool calls used"] if told.calls else []
        parts += [f"{self.runs:,} of {len(told.runs):,} tools without an id"] if told.runs else []
        parts += [f"{self.prompts:,} of {len(told.prompts):,} messages of its user"] if told.prompts else []
        parts += [f"{self.misfits:,} calls do not fit in their pauses"] if self.misfits else []
        parts += [f"{self.shared:,} calls have an id that several replies gave"] if self.shared else []
        parts += [f"{self.astray:,} tools fit in no pause, or in several"] if self.astray else []
        return f"joined {told.path.name} ({told.format}): {', '.join(parts)}; {self.clock.line()}"


@dataclass(slots=True)
class Joined:
    """The outcome for a whole capture."""

    told: Told
    files: list[Used]
    calls: int  # tool calls of the capture
    found: int  # of which a file tells
    pauses: int  # of the capture
    explained: int  # of which something is told

    def lines(self) -> list[str]:
        lines = [used.line() for used in self.files]
        told = f"{self.found:,} of {self.calls:,} found in what was joined"
        lines.append(f"tool calls of the capture: {told}; pauses: {self.explained:,} of {self.pauses:,} explained")
        if self.told.by_times:
            lines.append(f"pauses explained by times alone, within {TOLERANCE / 1e9:g} s: {len(self.told.by_times):,}")
        return lines

    def document(self) -> list[dict[str, object]]:
        """For the trace's header: figures alone."""
        return [
            {
                "format": used.beside.format,
                "tool_calls": len(used.beside.calls),
                "used": used.calls + used.runs,
                "clock_offset": round(used.clock.offset / 1e9, 6),
            }
            for used in self.files
        ]


class _Pause(NamedTuple):
    """A turn's pause. `calls`: the tool calls whose results it brings; `reply`: the id of the reply before it."""

    turn: int
    asked: int  # when the reply before it was asked for
    begin: int
    end: int
    calls: frozenset[str]
    reply: str | None
    session: str | None
    spoken: bool  # its user wrote something new


@dataclass(slots=True)
class _Found:
    """What was laid into pauses so far."""

    calls: dict[str, ToolTime] = field(default_factory=dict)
    turns: dict[int, list[Run]] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    by_times: set[int] = field(default_factory=set)


def join(files: Iterable[Beside], linked: Sequence[Linked], items: Items) -> Joined:
    """Everything that the files say of the capture's pauses.

    Raises BadInput for a file that says nothing of this capture, or whose clock cannot be the capture's.
    """
    given = Counter(id for this in linked for id in {call.id for call in this.turn.last.calls})
    emitted, shared = given.keys(), frozenset(id for id, count in given.items() if count > 1)
    pauses = [pause for this in linked if (pause := _pause(this, linked, items, shared)) is not None]
    found, used = _Found(), []
    for beside in files:
        books = Used(beside, _clock(beside, pauses), shared=len(shared & beside.calls.keys()))
        _by_id(books, pauses, found)
        _by_reply(books, pauses, found)
        _by_times(books, pauses, found)
        _prompts(books, pauses, found)
        if not books.calls + books.runs + books.prompts:
            raise _nothing(books, len(emitted & beside.calls.keys()))
        used.append(books)
    told = Told(found.calls, found.turns, found.asked, frozenset(found.by_times))
    known = {call for books in used for call in books.beside.calls}
    explained = [p for p in pauses if p.calls & found.calls.keys() or p.turn in found.turns or p.turn in found.asked]
    return Joined(told, used, len(emitted), len(emitted & known), len(pauses), len(explained))


def _nothing(books: Used, known: int) -> BadInput:
    told = books.beside
    if known and known == books.shared:
        said, hint = f"its {known:,} tool calls have ids that several replies gave", "it cannot be told which is which"
    elif known:
        said, hint = f"{known} of its tool calls are in the capture, and none fits in its pause", "are the times right?"
    else:
        said = f"nothing in it is of this capture: 0 of {len(told.calls):,} tool calls, by their ids"
        within = f" (within {TOLERANCE / 1e9:g} s)"
        said += f", 0 of {len(told.runs):,} tools without an id, by times{within}" if told.runs else ""
        hint = "name the files of the run that was recorded, or leave it out"
    return BadInput(said, file=told.path, hint=hint)


def _pause(this: Linked, linked: Sequence[Linked], items: Items, shared: frozenset[str]) -> _Pause | None:
    """The pause before a turn. Ids that are `shared` by several replies tell nothing apart."""
    if this.parent is None or not this.turn.last.timed:
        return None
    before = linked[this.parent].turn
    calls = (answered(this, items) & {call.id for call in before.last.calls}) - shared
    layers = {items.known[number].layer for number in this.turn.numbers[this.shared :]}
    spoken = "user" in layers and "tool_result" not in layers
    return _Pause(
        this.index, before.last.opened, before.ended, this.turn.opened, calls, before.last.reply.id,
        this.said.session, spoken,
    )  # fmt: skip


# --- clocks ------------------------------------------------------------------------------------------------------


def _clock(beside: Beside, pauses: Sequence[_Pause]) -> Clock:
    runs = _replies(beside)
    rooms, seen = [], set[str]()
    for pause in pauses:
        times = [beside.calls[call] for call in sorted(pause.calls) if call in beside.calls and call not in seen]
        seen.update(pause.calls)
        if pause.reply in runs and not times:
            times = [run.time for run in runs.pop(pause.reply)]
        if (hull := _hull(times)) is not None:
            rooms.append(Room(hull, (pause.begin, pause.end), pause.asked))
    return compared(rooms, beside.path)


def _replies(beside: Beside) -> dict[str | None, list[Run]]:
    """Tools without an id of their own, by the id of the reply that asked for them."""
    made: dict[str | None, list[Run]] = {}
    for reply, run in beside.runs:
        if reply is not None:
            made.setdefault(reply, []).append(run)
    return made


def _hull(times: Sequence[ToolTime]) -> Interval | None:
    stretches = [each for time in times for each in (*time.runs, *time.waits)]
    return (min(each[0] for each in stretches), max(each[1] for each in stretches)) if stretches else None


# --- tools -------------------------------------------------------------------------------------------------------


def _by_id(books: Used, pauses: Sequence[_Pause], found: _Found) -> None:
    seen: set[str] = set()
    for pause in pauses:
        for call in sorted(pause.calls - seen):
            seen.add(call)
            time = books.beside.calls.get(call)
            if time is None:
                continue
            time = time.moved(books.clock.offset)
            if not _fits(_hull((time,)), (pause.asked, pause.end)):
                books.misfits += 1
                continue
            found.calls[call] = _merged(found.calls[call], time) if call in found.calls else time
            books.calls += 1


def _merged(one: ToolTime, other: ToolTime) -> ToolTime:
    """What two files say of a call: runs from the one that tells them exactly, all else from whichever has it."""
    best, rest = (other, one) if other.runs and (not one.runs or (other.exact and not one.exact)) else (one, other)
    return best._replace(
        ran=best.ran if best.ran is not None else rest.ran,
        waited=best.waited if best.waited is not None else rest.waited,
        waits=best.waits or rest.waits,
        spawns=best.spawns or rest.spawns,
        agent=best.agent or rest.agent,
    )


def _fits(hull: Interval | None, pause: Interval) -> bool:
    return hull is None or (hull[0] >= pause[0] - TOLERANCE and hull[1] <= pause[1] + TOLERANCE)


def _by_reply(books: Used, pauses: Sequence[_Pause], found: _Found) -> None:
    runs = _replies(books.beside)
    for pause in pauses:
        for run in runs.pop(pause.reply, ()):
            time = run.time.moved(books.clock.offset)
            if _fits(_hull((time,)), (pause.asked, pause.end)):
                found.turns.setdefault(pause.turn, []).append(Run(run.name, time))
                books.runs += 1
            else:
                books.misfits += 1
    books.astray += sum(map(len, runs.values()))


def _by_times(books: Used, pauses: Sequence[_Pause], found: _Found) -> None:
    open_ = [p for p in pauses if p.turn not in found.turns and not p.calls & found.calls.keys()]
    for reply, run in books.beside.runs:
        if reply is not None:
            continue
        time = run.time.moved(books.clock.offset)
        fitting = [pause for pause in open_ if _fits(_hull((time,)), (pause.begin, pause.end))]
        if len(fitting) != 1:
            books.astray += 1
            continue
        found.turns.setdefault(fitting[0].turn, []).append(Run(run.name, time))
        found.by_times.add(fitting[0].turn)
        books.runs += 1


# --- messages ----------------------------------------------------------------------------------------------------


def _prompts(books: Used, pauses: Sequence[_Pause], found: _Found) -> None:
    """The last message of its session's user that was written in a pause, where none is known yet."""
    moments: dict[str | None, list[int]] = {}
    for session, at in sorted(books.beside.prompts, key=lambda prompt: prompt[1]):
        moments.setdefault(session, []).append(at + books.clock.offset)
    for pause in pauses:
        if not pause.spoken or pause.session is None or pause.turn in found.asked:
            continue
        known = moments.get(pause.session, [])
        last = bisect_right(known, pause.end + TOLERANCE) - 1
        if last >= 0 and known[last] >= pause.begin - TOLERANCE:
            found.asked[pause.turn] = min(max(known[last], pause.begin), pause.end)
            books.prompts += 1


# --- subagents ---------------------------------------------------------------------------------------------------


def spawned(linked: Sequence[Linked], calls: Mapping[str, ToolTime]) -> frozenset[int]:
    """Give subagents that are known by their header alone the tool call that started them.

    A file names the agent that a call started, or the whole of an agent's work lies in the run of one reply's calls;
    the first turns of the latter, found by times alone, are returned by their index.
    """
    emitted = {call.id: this for this in linked for call in this.turn.last.calls}
    starts = [(emitted[id], id, time) for id, time in sorted(calls.items()) if time.spawns and id in emitted]
    ends: dict[tuple[str | None, str | None], int] = {}
    for this in linked:
        name = (this.said.session, this.said.agent)
        ends[name] = max(ends.get(name, 0), this.turn.ended)
    by_times: set[int] = set()
    for this in linked:
        if this.parent is not None or this.spawner is not None or this.said.agent is None or not starts:
            continue
        work = (this.turn.opened, ends[this.said.session, this.said.agent])
        found = _starts(this, work, starts)
        if found is not None:
            this.spawner, this.spawn_call, this.how = found[0], found[1], "spawn"
            by_times |= {this.index} if calls[found[1]].agent is None else set()
    return frozenset(by_times)


def _starts(
    this: Linked, work: Interval, starts: Sequence[tuple[Linked, str, ToolTime]]
) -> tuple[int, str] | None:  # fmt: skip
    """The turn and the tool call that a subagent's first turn comes from."""
    own = [(by, id, time) for by, id, time in starts if by.index < this.index and by.said.session == this.said.session]
    named = [(by.index, id) for by, id, time in own if time.agent == this.said.agent]
    if named:
        return named[0]
    around = [
        (length, id, by.index)
        for by, id, time in own
        if time.agent is None and by.said.agent != this.said.agent
        for length in [end - begin for begin, end in time.runs if _fits(work, (begin, end))]
    ]
    return (min(around)[2], min(around)[1]) if len({index for _, _, index in around}) == 1 else None
