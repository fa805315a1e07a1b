"""A capture, or the calls of another source, becomes a trace: the same source, key and level give the same bytes.

    calls -> attempts -> turns -> threads and sessions -> pieces of segments

`attempts.py` merges retries, `lineage.py` finds what goes on from what, `weaving.py` gives content its identities and
tokens, `composing.py` makes sessions of it; here the pieces are put together, and the books are kept.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from agentx.core import Header, Identity
from agentx.errors import BadInput
from agentx.recorder.attempts import Items, Turn, attempt_of, resolve_previous, turns_of
from agentx.recorder.calls import ModelCall, of_exchange
from agentx.recorder.canonical import RULES, VERSION, Item
from agentx.recorder.capture_reader import CaptureReader
from agentx.recorder.composing import Composer
from agentx.recorder.identity import OwnHeaders, said, settled
from agentx.recorder.imports.books import Books
from agentx.recorder.joining import Beside, Joined, join, spawned
from agentx.recorder.keys import CaptureKey, key_path, read_key
from agentx.recorder.lineage import Kin, link, sessions
from agentx.recorder.memo import Memo
from agentx.recorder.names import Names
from agentx.recorder.pauses import Told
from agentx.recorder.plain_prompts import PlainPrompts
from agentx.recorder.privacy import Linkability, coarse
from agentx.recorder.redaction import Redactor
from agentx.recorder.shaping import chance
from agentx.recorder.weaving import NO_TEMPLATE, Named, Template, Weaver
from agentx.trace import TraceWriter

Level = Literal["shape", "shape-coarse", "text"]
UNKNOWABLE = (
    "why a pause was: a tool's time holds the wait for a permission, a human's the client's own work",
    "how long each of several tools ran",
    "where a server's tokenizer cuts: a part's tokens are its share of the usage, by bytes",
)
UNKNOWABLE_BESIDE = (
    "pauses that no joined file tells of: a tool's time holds the wait for a permission, a human's the client's work",
    UNKNOWABLE[2],
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was done: the books, and what is still linkable in the result."""

    books: Books
    linkability: Linkability
    sessions: int
    turns: int
    redacted: Mapping[str, int] | None = None  # level text: how many secrets of each kind
    joined: Joined | None = None


@dataclass(frozen=True, slots=True)
class Making:
    """How calls become a trace, and what its header says of their source.

    `source` names the space of identities, for those who have the key. `told`: what the source itself tells of pauses,
    read when all calls have been; `beside`: what its client's own files tell. `template`: what the recorded server's
    chat template adds; a replay adds its own server's again. `scope`: how far equal content is one identity: in its
    session, in the trace, or (tools and system texts alone) in all traces that are made with the key `across`.
    """

    key: CaptureKey
    name: str
    importer: str
    source: str
    place: Path  # the source, for errors
    level: Level = "shape"
    template: Template = NO_TEMPLATE
    own: OwnHeaders = field(default_factory=OwnHeaders)
    scope: Identity = "file"
    across: CaptureKey | None = None
    told: Told = field(default_factory=Told)
    beside: Sequence[Beside] = ()


def compile_capture(
    folder: Path,
    out: Path,
    level: Level = "shape",
    key_file: Path | None = None,
    template: Template = NO_TEMPLATE,
    scope: Identity = "file",
    across: CaptureKey | None = None,
    progress: Callable[[], object] = lambda: None,
    beside: Callable[[CaptureKey], Sequence[Beside]] = lambda key: (),
) -> Compiled:
    """Make a trace from a capture; see `Making`. `beside`: reads the client's own files with the capture's key.

    Raises BadInput for no capture, no key, no model call in it, and files that say nothing of it.
    """
    reader = CaptureReader(folder)
    key = read_key(key_file or key_path(reader.manifest["id"]), reader.manifest["key"])
    files = beside(key)
    books = Books(row="exchange", unknowable=UNKNOWABLE_BESIDE if files else UNKNOWABLE)
    source = f"{reader.manifest['id']} {level}"
    own = _own_headers(reader.manifest)
    making = Making(key, "capture", "agentx compile", source, folder, level, template, own, scope, across, beside=files)
    return compile_calls(_recorded(reader, books, progress), making, books, out)


def _recorded(reader: CaptureReader, books: Books, progress: Callable[[], object]) -> Iterator[ModelCall]:
    memo: Memo[tuple[Item, ...]] = Memo()
    plain = PlainPrompts()
    for exchange in reader:
        progress()
        books.rows.read += 1
        call = of_exchange(exchange, memo)
        if isinstance(call, str):
            books.rows.drop(call)
        else:
            yield plain.cut(call)
    for name, tear in reader.tears:
        books.find(f"{name} is {tear}")
    books.note("frame of an exchange whose beginning is lost", reader.fragments)


def compile_calls(calls: Iterable[ModelCall], making: Making, books: Books, out: Path) -> Compiled:
    """Make a trace of calls. Whoever gives them counts the rows read, and drops those that are no calls.

    Raises BadInput when none of them can be used.
    """
    items = Items(making.key, making.level == "text", making.across if making.scope == "global" else None)
    attempts = sorted((attempt_of(call, items, making.key) for call in calls), key=lambda attempt: attempt.order)
    turns = turns_of(attempts, books.rows)
    unknown = resolve_previous(turns, items)
    books.note("prompt that goes on from a response which is not in the source: its beginning is unknown", unknown)
    turns = [turn for turn in turns if _computed(turn, books)]
    if not turns:
        raise BadInput("0 model calls that can be used", file=making.place, hint=_why_none(books))
    identities = settled([said(turn.last.ids, turn.last.body_ids, making.own) for turn in turns])
    linked = link(turns, identities, items)
    joined = join(making.beside, linked, items) if making.beside else None
    told = joined.told if joined is not None else making.told
    told = replace(told, by_times=told.by_times | spawned(linked, told.calls))
    kins = sessions(linked)
    redactor = Redactor(making.key) if making.level == "text" else None
    composer = Composer(
        items,
        books,
        Names(),
        Weaver(items, set() if making.scope == "session" else _shared(kins), _ratios(turns), making.template, redactor),
        linked,
        min((turn.opened for turn in turns if turn.last.timed), default=0),
        told,
    )
    done = _write(composer, kins, out, making, joined)
    return replace(done, redacted=dict(redactor.counts) if redactor is not None else None, joined=joined)


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
    if not books.rows.read:
        return f"there is no {books.row} in it"
    return f"{books.rows.read} {books.row}s: {reasons or 'none is a reply of a model'}"


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


def _header(making: Making, books: Books, joined: Joined | None) -> Header:
    """No clock, host, path or upstream. The scope names the source to those who have its key, and to no one else."""
    scope = making.key.digest("scope", making.source.encode(), 8).hex()
    provenance = {
        "importer": making.importer,
        "level": making.level,
        "canonical": {"version": VERSION, "rules": list(RULES)},
        "template": making.template._asdict(),
        **({"fidelity": books.fidelity._asdict()} if books.fidelity is not None else {}),
        **({"joined": joined.document()} if joined is not None else {}),
        "losses": books.losses(),
        "cannot_tell": list(books.unknowable),
    }
    content: Literal["text", "synthetic"] = "text" if making.level == "text" else "synthetic"
    return Header(making.name, scope, making.scope, content, provenance=provenance)


def _write(composer: Composer, kins: Sequence[Kin], out: Path, making: Making, joined: Joined | None) -> Compiled:
    books, linkability, turns = composer.books, Linkability(), 0
    made = []
    for number, kin in enumerate(kins, start=1):
        session = composer.session(kin, number)
        if making.level == "shape-coarse":
            session = coarse(session, partial(chance, making.key))
        made.append(session)
        linkability.add(session)
        turns += len(session.turns)
        books.sessions.read += 1
        books.sessions.used += 1
    for what, count in composer.weaver.notes.items():
        books.note(what, count)
    books.check()
    part = out.with_name(out.name + ".part" + (out.suffix if out.suffix in (".jsonl", ".json") else ""))
    with TraceWriter(part, _header(making, books, joined)) as writer:
        for session in made:
            writer.session(session)
    os.replace(part, out)
    return Compiled(books, linkability, len(kins), turns)
