"""A capture becomes a trace: the same capture, key and level give the same bytes.

    exchanges -> attempts -> turns -> threads and sessions -> pieces of segments

`attempts.py` merges retries, `lineage.py` finds what goes on from what, `weaving.py` gives content its identities and
tokens; here the pieces are put together: times relative to the first arrival, gaps with their kinds, events, books.
A proxy does not see why a pause was: a gap before a turn that brings tool results is a tool's, one before new user
text is a human's; waiting for a permission is inside either.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agentx.core import Gap, Header, Observed, Session, Thread, Tool, TurnEvent
from agentx.core import Turn as TraceTurn
from agentx.errors import BadInput
from agentx.recorder.attempts import Attempt, Items, Turn, read_attempt, resolve_previous, turns_of
from agentx.recorder.canonical import RULES, VERSION
from agentx.recorder.capture_reader import CaptureReader
from agentx.recorder.identity import OwnHeaders, said, settled
from agentx.recorder.imports.books import Books
from agentx.recorder.keys import CaptureKey, key_path, read_key
from agentx.recorder.lineage import Kin, Line, Linked, link, sessions
from agentx.recorder.names import Names
from agentx.recorder.privacy import Linkability, coarse
from agentx.recorder.redaction import Redactor
from agentx.recorder.weaving import NO_TEMPLATE, Named, Template, Weaver, Woven
from agentx.trace import TraceWriter

Level = Literal["shape", "shape-coarse", "text"]
LEVELS: tuple[Level, ...] = ("shape", "shape-coarse", "text")
UNKNOWABLE = (
    "why a pause was: a tool's time holds the wait for a permission, a human's the client's own work",
    "how long each of several tools ran",
    "where a server's tokenizer cuts: a part's tokens are its share of the usage, by bytes",
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What `compile_capture` did: the books, and what is still linkable in the result."""

    books: Books
    linkability: Linkability
    sessions: int
    turns: int
    redacted: Mapping[str, int] | None = None  # level text: how many secrets of each kind


@dataclass(slots=True)
class _Compiler:
    items: Items
    books: Books
    names: Names
    weaver: Weaver
    linked: Sequence[Linked]
    start: int  # ns of the first arrival of all
    woven: dict[int, Woven] = field(default_factory=dict)  # by the turn's index in the capture

    def session(self, kin: Kin, number: int) -> Session:
        """One session. Its turns are in the order of their arrival, which puts causes before effects."""
        line_of = {turn.index: at for at, line in enumerate(kin.lines) for turn in line.turns}
        order = sorted((turn for line in kin.lines for turn in line.turns), key=lambda turn: turn.index)
        place = {turn.index: at for at, turn in enumerate(order)}
        segments = self.weaver.open()
        first = order[0].turn.opened
        made: list[TraceTurn] = []
        for this in order:
            after = self._after(this, kin, line_of, place, made)
            made.append(self._turn(this, place, line_of[this.index], after, order, first))
        for this in order:
            self.woven.pop(this.index)
        return Session(
            f"s{number:04d}",
            tuple(made),
            tuple(self._thread(at, line) for at, line in enumerate(kin.lines)),
            segments,
            self.weaver.file.segments,
            arrival=_seconds(first - self.start),
            extra={"known_by": kin.rule},
        )

    def _thread(self, number: int, line: Line) -> Thread:
        kind = line.turns[0].turn.last.kind
        return Thread(number, line.parent, line.kind, kind if line.kind == "subagent" else None)

    def _after(
        self, this: Linked, kin: Kin, line_of: Mapping[int, int], place: Mapping[int, int], made: Sequence[TraceTurn]
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
        answers = {call for number in this.turn.numbers[this.shared :] for call in self.items.known[number].answers}
        found = []
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
        provenance: Any = "recorded" if known else "inferred"
        if this.parent is None:
            return Gap("spawn" if known else "unknown", max(seconds, 0.0), provenance)
        layers = {self.items.known[number].layer for number in this.turn.numbers[this.shared :]}
        kind: Any = "tool" if "tool_result" in layers else "human" if "user" in layers else "unknown"
        return Gap(kind, max(seconds, 0.0), provenance)

    def _tools(self, this: Linked) -> tuple[Tool, ...]:
        answers = {call for number in this.turn.numbers[this.shared :] for call in self.items.known[number].answers}
        emitted = self.linked[this.parent].turn.last.calls if this.parent is not None else ()
        return tuple(Tool(self.names.tool(call.name)) for call in emitted if call.id in answers)

    def _event(self, this: Linked, woven: Woven, parent: Woven | None) -> TurnEvent | None:
        last = this.turn.last
        if not last.reply.whole:
            return TurnEvent("abort" if last.cause in ("client_abort", "recorder_stopped") else "error")
        if parent is None or this.parent is None:
            return None
        if parent.model != woven.model:
            return TurnEvent("model_switch")
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


def _seconds(nanoseconds: int) -> float:
    """Seconds at a resolution of a microsecond, which is what the clocks are good for."""
    return round(nanoseconds / 1e9, 6)


def _observed(last: Attempt, first: int) -> Observed:
    reply = last.reply
    ttft = _seconds(reply.first_token - last.opened) if reply.first_token is not None else None
    status = str(last.status) if last.status is not None else None
    start, end = _seconds(last.opened - first), _seconds(last.ended - first)
    return Observed(start, ttft, end, reply.usage.cached, status if last.cause == "done" else last.cause)


def compile_capture(
    folder: Path,
    out: Path,
    level: Level = "shape",
    key_file: Path | None = None,
    template: Template = NO_TEMPLATE,
    progress: Callable[[], object] = lambda: None,
) -> Compiled:
    """Make a trace from a capture. Raises BadInput for what is no capture, has no key or holds no model call.

    `template`: what the recorded server's chat template adds; a replay adds its own server's again.
    """
    reader = CaptureReader(folder)
    key = read_key(key_file or key_path(reader.manifest["id"]), reader.manifest["key"])
    books = Books(row="exchange", unknowable=UNKNOWABLE)
    items = Items(key, keep_texts=level == "text")
    attempts = _attempts(reader, items, key, books, progress)
    turns = turns_of(attempts, books.rows)
    unknown = resolve_previous(turns, items)
    books.note("prompt that goes on from a response which is not in the capture: its beginning is unknown", unknown)
    turns = [turn for turn in turns if _computed(turn, books)]
    if not turns:
        raise BadInput("the capture holds no model call that can be used", file=folder, hint=_why_none(books))
    own = _own_headers(reader.manifest)
    linked = link(turns, settled([said(turn.last.ids, turn.last.body_ids, own) for turn in turns]), items)
    kins = sessions(linked)
    redactor = Redactor(key) if level == "text" else None
    compiler = _Compiler(
        items,
        books,
        Names(),
        Weaver(items, _shared(kins), _ratios(turns), template, redactor),
        linked,
        min(turn.opened for turn in turns),
    )
    done = _write(compiler, kins, out, _header(level, key, reader, books, template), level)
    return replace(done, redacted=dict(redactor.counts) if redactor is not None else None)


def _attempts(
    reader: CaptureReader, items: Items, key: CaptureKey, books: Books, progress: Callable[[], object]
) -> list[Attempt]:
    attempts = []
    for exchange in reader:
        progress()
        books.rows.read += 1
        attempt = read_attempt(exchange, items, key)
        if isinstance(attempt, str):
            books.rows.dropped[attempt] += 1
        else:
            attempts.append(attempt)
    for name, tear in reader.tears:
        books.find(f"{name} is {tear}")
    books.note("frame of an exchange whose beginning is lost", reader.fragments)
    return sorted(attempts, key=lambda attempt: attempt.order)


def _computed(turn: Turn, books: Books) -> bool:
    """Whether a model computed anything for a turn; what was refused or never answered is no turn."""
    last = turn.last
    if last.reply.whole or last.reply.usage.prompt is not None or last.reply.size:
        books.rows.used += 1
        return True
    books.rows.merged -= len(turn.attempts) - 1
    gone = last.cause in ("client_abort", "recorder_stopped")
    reason = "given up before an answer" if gone else f"never answered: {last.reply.error or 'an empty reply'}"
    books.rows.dropped[reason] += len(turn.attempts)
    return False


def _why_none(books: Books) -> str:
    reasons = "; ".join(f"{count} {reason}" for reason, count in sorted(books.rows.dropped.items()))
    return f"{books.rows.read} exchanges: {reasons}" if reasons else "nothing was recorded"


def _own_headers(manifest: Mapping[str, Any]) -> OwnHeaders:
    lists: dict[str, list[str]] = defaultdict(list)
    for run in manifest["runs"]:
        identity = run.get("identity") if isinstance(run, dict) else None
        for name, values in identity.items() if isinstance(identity, dict) else ():
            lists[str(name)] += [str(value).lower() for value in values]
    return OwnHeaders(lists["session"], lists["agent"], lists["parent"])


def _shared(kins: Sequence[Kin]) -> set[Named]:
    """The items that more than one session has, by model."""
    seen: dict[Named, int] = {}
    shared: set[Named] = set()
    for number, kin in enumerate(kins):
        for line in kin.lines:
            for this in line.turns:
                model = this.turn.last.model
                for item in {*this.turn.numbers, *this.turn.last.reply_numbers}:
                    if seen.setdefault((model, item), number) != number:
                        shared.add((model, item))
    return shared


def _ratios(turns: Sequence[Turn]) -> dict[str, float]:
    """Bytes per token of each model's replies, from those whose usage is told."""
    sizes: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for turn in turns:
        reply = turn.last.reply
        if reply.whole and reply.usage.completion and reply.size:
            sizes[turn.last.model] += reply.size
            tokens[turn.last.model] += reply.usage.completion
    return {model: sizes[model] / count for model, count in tokens.items()}


def _header(level: Level, key: CaptureKey, reader: CaptureReader, books: Books, template: Template) -> Header:
    """No clock, host, path or upstream. The scope names the capture to those who have its key, and to no one else."""
    scope = key.digest("scope", f"{reader.manifest['id']} {level}".encode(), 8).hex()
    provenance = {
        "importer": "agentx compile",
        "level": level,
        "canonical": {"version": VERSION, "rules": list(RULES)},
        "template": template._asdict(),
        "losses": books.losses(),
        "cannot_tell": list(UNKNOWABLE),
    }
    return Header("capture", scope, "file", "text" if level == "text" else "synthetic", provenance=provenance)


def _write(compiler: _Compiler, kins: Sequence[Kin], out: Path, header: Header, level: Level) -> Compiled:
    books, linkability, turns = compiler.books, Linkability(), 0
    made = []
    for number, kin in enumerate(kins, start=1):
        session = compiler.session(kin, number)
        if level == "shape-coarse":
            session = coarse(session)
        made.append(session)
        linkability.add(session)
        turns += len(session.turns)
        books.sessions.read += 1
        books.sessions.used += 1
    for what, count in compiler.weaver.notes.items():
        books.note(what, count)
    books.check()
    header = replace(header, provenance={**header.provenance, "losses": books.losses()})
    part = out.with_name(out.name + ".part" + (out.suffix if out.suffix in (".jsonl", ".json") else ""))
    with TraceWriter(part, header) as writer:
        for session in made:
            writer.session(session)
    os.replace(part, out)
    return Compiled(books, linkability, len(kins), turns)
