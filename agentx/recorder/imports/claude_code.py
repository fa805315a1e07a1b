"""Claude Code's own session files (`~/.claude/projects/**/*.jsonl`), subagents included.

A line holds one content block, or one snapshot of a reply in the making; the lines of one message id are one call, and
the last of them counts. A call's prompt is the chain of its parents up to the session's beginning or to a compaction.
A message that several files hold (a resumed session, a subagent's file and its session's) is one call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item, message_items
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import count, listing, mapping, number, of_iso, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching
from agentx.recorder.imports.transcripts import Heads, shallow
from agentx.recorder.pauses import ToolTime
from agentx.recorder.replies import reply_of, usage_of

Json = dict[str, Any]
RECENT = 64  # messages whose prompts are kept, for those that go on from them


@dataclass(slots=True)
class Message:
    """A reply: its lines so far, put together. `parent`: the line before its first one."""

    id: str
    first: Json
    parent: str | None
    blocks: list[Json] = field(default_factory=list)
    usage: Json = field(default_factory=dict)
    stop: Any = None
    begun: int | None = None
    ended: int | None = None
    lines: int = 0
    place: int = 0  # its first line's place in the file

    def add(self, line: Json) -> None:
        message, at = mapping(line.get("message")), of_iso(line.get("timestamp"))
        for block in listing(message.get("content")):
            if isinstance(block, dict):
                self._block(block)
        told = mapping(message.get("usage"))
        counts = [tokens for usage in (self.usage, told) if (tokens := count(usage.get("output_tokens"))) is not None]
        self.usage = {**self.usage, **told, **({"output_tokens": max(counts)} if counts else {})}
        self.stop = message.get("stop_reason") or self.stop
        self.begun = at if self.begun is None else self.begun
        self.ended = at if at is not None else self.ended
        self.lines += 1

    def _block(self, block: Json) -> None:
        """A block takes the place of the one that it is a later snapshot of."""
        for at, known in enumerate(self.blocks):
            if known == block or (block.get("id") is not None and known.get("id") == block.get("id")):
                self.blocks[at] = block
                return
            old, new = known.get("text"), block.get("text")
            if at == len(self.blocks) - 1 and isinstance(old, str) and isinstance(new, str) and new.startswith(old):
                self.blocks[at] = block
                return
        self.blocks.append(block)


@dataclass(frozen=True, slots=True)
class Chain:
    """A prompt: ids of lines and messages, their items, and when the last line was written."""

    ids: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    written: int | None = None

    def longer(self, ids: list[str], transcript: Transcript) -> Chain:
        """The chain with more behind it."""
        moments = (of_iso(transcript.inputs[id].get("timestamp")) for id in reversed(ids) if id in transcript.inputs)
        written = next((at for at in moments if at is not None), self.written)
        items = tuple(item for id in ids for item in transcript.items(id))
        return Chain((*self.ids, *ids), (*self.items, *items), written)


@dataclass(slots=True)
class Transcript:
    """The lines of one file that carry model traffic, by id."""

    parents: dict[str, str | None] = field(default_factory=dict)
    inputs: dict[str, Json] = field(default_factory=dict)  # user lines and attachments
    messages: dict[str, Message] = field(default_factory=dict)  # by message id
    of_line: dict[str, str] = field(default_factory=dict)  # an assistant line -> its message
    results: dict[str, list[str]] = field(default_factory=dict)  # a tool call -> the lines with its result
    places: dict[str, int] = field(default_factory=dict)
    emitted: dict[str, int] = field(default_factory=dict)  # a tool call -> when its line was written
    _items: dict[str, tuple[Item, ...]] = field(default_factory=dict)
    _chains: dict[str, Chain] = field(default_factory=dict)  # of recent messages

    def chain(self, message: Message) -> Chain:
        """What is before a reply, oldest first: the chain of the reply before it, and what came since."""
        since: list[str] = []  # newest first
        before = Chain()
        seen: set[str] = {message.id}
        at = message.parent
        while at is not None and at not in seen:
            seen.add(at)
            id = self.of_line.get(at)
            if id is None:
                since += [at] if at in self.inputs else []
                at = self.parents.get(at)
                continue
            if id in seen:
                break
            seen.add(id)
            # Results of parallel calls branch off their own calls' lines: they are no one's parents, and stand beside.
            since += [line for line in self._answers(id, message.place) if line not in since]
            since.append(id)
            if id in self._chains:
                before = self._chains[id]
                break
            at = self.messages[id].parent
        made = before.longer(sorted(since, key=self._place), self)
        self._chains[message.id] = made
        while len(self._chains) > RECENT:
            self._chains.pop(next(iter(self._chains)))
        return made

    def _answers(self, id: str, before: int) -> list[str]:
        calls = [block["id"] for block in self.messages[id].blocks if isinstance(block.get("id"), str)]
        return [line for call in calls for line in self.results.get(call, ()) if self.places[line] < before]

    def _place(self, id: str) -> int:
        return self.messages[id].place if id in self.messages else self.places[id]

    def items(self, id: str) -> tuple[Item, ...]:
        """The items of a line or a message, made once."""
        if id not in self._items:
            message = self.messages.get(id)
            value = {"role": "assistant", "content": message.blocks} if message else _said(self.inputs[id])
            self._items[id] = shallow(message_items, value)
        return self._items[id]


def _said(line: Json) -> Json:
    """What a line that is no reply puts into the prompt."""
    if line.get("type") == "attachment":
        return {"role": "user", "content": mapping(line.get("attachment")).get("content")}
    return {"role": "user", "content": mapping(line.get("message")).get("content")}


def make_reader() -> Any:
    """A reader that knows the messages of the files before."""
    seen: set[str] = set()
    heads = Heads("claude-code")

    def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
        transcript = _gathered(path, reading)
        for message in list(transcript.messages.values()):
            rows = reading.books.rows
            if message.id in seen:
                rows.drop("line of a message that another file holds", message.lines)
                continue
            seen.add(message.id)
            if text(mapping(message.first.get("message")), "model") in (None, "<synthetic>"):
                rows.drop("message that no model made (an error that the client shows)", message.lines)
                continue
            rows.merged += message.lines - 1
            yield _call(message, transcript, heads, reading)

    return read


def _gathered(path: Path, reading: Reading) -> Transcript:
    transcript, rows = Transcript(), reading.books.rows
    for place, line in reading.rows(path):
        kind, uuid = line.get("type"), text(line, "uuid") or f"line {place}"
        parent = text(line, "parentUuid")
        transcript.parents[uuid] = parent
        transcript.places[uuid] = place
        if kind == "assistant" and isinstance(line.get("message"), dict):
            id = text(line["message"], "id") or text(line, "requestId") or uuid
            if id not in transcript.messages:
                transcript.messages[id] = Message(id, line, parent, place=place)
            transcript.messages[id].add(line)
            transcript.of_line[uuid] = id
            _emitted(line, transcript)
        elif kind == "user" or (kind == "attachment" and text(mapping(line.get("attachment")), "content")):
            transcript.inputs[uuid] = line
            rows.merged += 1
            _results(line, uuid, transcript, reading)
        else:
            rows.drop("line without model traffic")
    return transcript


def _emitted(line: Json, transcript: Transcript) -> None:
    """Note when a reply's tool calls were written."""
    at = of_iso(line.get("timestamp"))
    for block in map(mapping, listing(mapping(line.get("message")).get("content"))):
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str) and at is not None:
            transcript.emitted.setdefault(block["id"], at)


def _results(line: Json, uuid: str, transcript: Transcript, reading: Reading) -> None:
    """Note which tool calls a line answers, and when each ran; or that its user wrote it."""
    content = mapping(line.get("message")).get("content")
    calls = [call for block in listing(content) if isinstance(call := mapping(block).get("tool_use_id"), str)]
    at = of_iso(line.get("timestamp"))
    for call in calls:
        transcript.results.setdefault(call, []).append(uuid)
        if (time := _time(line, transcript.emitted.get(call), at, reading)) is not None:
            reading.tool_times[call] = time
    asked = line.get("type") == "user" and not calls and line.get("isMeta") is not True
    if asked and at is not None and line.get("isSidechain") is not True:
        reading.prompts.append((reading.pseudonym(text(line, "sessionId")), at))


def _time(line: Json, emitted: int | None, at: int | None, reading: Reading) -> ToolTime | None:
    """When the tool of a result ran: as long as its result tells, else from its call to its result."""
    told = mapping(line.get("toolUseResult"))
    seconds = number(told.get("durationSeconds"))
    milliseconds = number(told.get("durationMs", told.get("totalDurationMs")))
    ran = seconds if seconds is not None else milliseconds / 1000 if milliseconds is not None else None
    agent = reading.pseudonym(text(told, "agentId"))
    begin = at - round(ran * 1e9) if ran is not None and at is not None else emitted
    runs = ((begin, at),) if begin is not None and at is not None and begin <= at else ()
    if ran is None and not runs and agent is None:
        return None
    return ToolTime(ran, runs=runs, exact=ran is not None, spawns=agent is not None, agent=agent)


def _call(message: Message, transcript: Transcript, heads: Heads, reading: Reading) -> ModelCall:
    line, chain = message.first, transcript.chain(message)
    visible = chain.items
    usage, model = usage_of("messages", message.usage), text(mapping(line.get("message")), "model") or ""
    session, agent = text(line, "sessionId"), text(line, "agentId")
    name = f"{session or ''} {agent or ('sidechain' if line.get('isSidechain') is True else '')}"
    variant = f"{text(line, 'version') or ''} {text(line, 'entrypoint') or ''} {model} {agent is not None}"
    head = heads.of(name, variant, visible, usage)
    reading.books.note(
        "call whose beginning is not in its file", not chain.ids or not _rooted(chain.ids[0], transcript)
    )
    return reading.call(
        _start(message, chain),
        message.ended,
        "messages",
        Call(model, (*head, *visible)),
        reply_of("messages", {"type": "message", "id": message.id, "content": message.blocks, "usage": message.usage}),
        (("x-claude-code-session-id", session), ("x-claude-code-agent-id", agent)),
        credential=None,
    )


def _rooted(id: str, transcript: Transcript) -> bool:
    """Whether a chain's first entry has no parent, or one that says it stands at a beginning."""
    message = transcript.messages.get(id)
    parent = message.parent if message is not None else transcript.parents[id]
    return parent is None or parent in transcript.parents


def _start(message: Message, chain: Chain) -> int | None:
    """When the last of what a call answers was there."""
    if chain.written is None or message.begun is None:
        return message.begun if chain.written is None else chain.written
    return min(chain.written, message.begun)


def make_format() -> LoggedFormat:
    """What `agentx import claude-code` reads."""
    return LoggedFormat(
        name="claude-code",
        row="line",
        read=make_reader(),
        fidelity=Fidelity("reconstructed", "start-end", "header", "server", "total"),
        unknowable=(
            "the system prompt and the tools: one stretch of known length before the first message; sessions share "
            "what their first calls had cached (inferred)",
            "when a request left and its first token came: a call starts when the last line before it was written",
            "thinking: its text is not in the file, its tokens are in the reply's",
            "retries, calls that failed, side calls such as titles, what edits the client made to old messages",
            "waiting for a permission: it is inside a tool's time",
        ),
        find=matching("*.jsonl"),
        order=lambda path: (not path.name.startswith("agent-"), path),
    )
