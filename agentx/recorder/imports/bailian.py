"""Bailian JSON Lines (Qwen's Alibaba traces): chats that `parent_chat_id` links become sessions.

Each row is a whole prompt in blocks of 16 tokens. A session is a tree of chats: a chat's first child goes on in its
thread, further ones branch from its prompt in threads of their own. A chat whose parent does not stand in front of it
in the file begins a session, which is counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.core import Gap, Observed, Output, Session, Thread, Turn
from agentx.errors import BadInput
from agentx.recorder.imports.blocks import Weaver
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.groups import Groups
from agentx.recorder.imports.running import Format, note_unknown
from agentx.recorder.imports.source import Line, block_ids, looks_like, parse
from agentx.recorder.imports.weaving import Link, Root, Spun, spin
from agentx.trace_bodies import MAX_TOKENS, Body, Invalid, integer, seconds

BLOCK = 16
_KEYS = frozenset(
    {"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "type", "turn", "hash_ids"}
)


@dataclass(slots=True, eq=False)
class Chat:
    """One row: a call of the session's tree. `at` is in seconds."""

    id: int
    parent: int
    at: float
    isl: int
    out: int
    ids: array[int]
    kind: str
    line: int
    index: int = -1  # its turn


def chat_of(line: Line, path: Path) -> tuple[Chat, Body]:
    """A line as a chat. Raises BadInput, with the line, for what is none."""
    value = parse(line.data, path, line.number)
    if not isinstance(value, dict) or not {"chat_id", "parent_chat_id"} <= value.keys():
        raise BadInput(f"not a Bailian row: this looks like {looks_like(value)}", file=path, line=line.number)
    try:
        at = seconds(value, "timestamp")
        if at is None or at < 0:
            raise Invalid(f"timestamp: {at} is not a number of seconds of at least 0")
        parent = value["parent_chat_id"]
        chat = Chat(
            id=integer(value, "chat_id"),
            parent=-1 if parent in (-1, value["chat_id"]) and type(parent) is int else integer(value, "parent_chat_id"),
            at=at,
            isl=integer(value, "input_length", high=MAX_TOKENS),
            out=integer(value, "output_length", high=MAX_TOKENS),
            ids=block_ids(value),
            kind=value["type"] if isinstance(value.get("type"), str) else "",
            line=line.number,
        )
    except Invalid as error:
        raise BadInput(str(error), file=path, line=line.number) from None
    return chat, value


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The sessions of a file. Raises BadInput, with the line, for no such row or a chat_id that occurs twice."""
    trees = _Trees(path)
    for lines in Groups(path, digest, trees.root):
        chats = []
        for line in lines:
            chat, body = chat_of(line, path)
            note_unknown(body, _KEYS, books)
            chats.append(chat)
        yield convert(chats, books)


class _Trees:
    """Which root each chat so far belongs to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.roots: dict[int, int] = {}

    def root(self, line: Line) -> str:
        chat, _ = chat_of(line, self.path)
        if chat.id in self.roots:
            raise BadInput(f"the chat_id {chat.id} occurs twice", file=self.path, line=line.number)
        root = self.roots[chat.id] = self.roots.get(chat.parent, chat.id)
        return str(root)


def convert(chats: Sequence[Chat], books: Books) -> Session:
    """The chats of one tree, parents first, as a session."""
    books.sessions.read += 1
    books.rows.read += len(chats)
    books.note("parent that is not in front of its child in the file: a session begins", chats[0].parent != -1)
    known = {chat.id: chat for chat in chats}
    for index, chat in enumerate(chats):
        chat.index = index
        if len(chat.ids) < chat.isl // BLOCK:
            books.note("row with fewer hash ids than its length has blocks: the rest is not identified")
    lines = _lines(chats)
    books.note("further child of a chat: a thread of its own", len(lines) - 1)
    weaver, spun = Weaver(BLOCK), dict[int, Spun]()
    threads: list[Thread] = []
    places: dict[int, int] = {}  # chat -> thread
    for number, line in enumerate(lines):
        parent = known.get(line[0].parent) if number else None
        root = spun[parent.index].root if parent else None
        for chat, made in zip(line, _spin(weaver, line, root, books), strict=True):
            spun[chat.index] = made
            places[chat.id] = number
        threads.append(Thread(number, places[parent.id], "side") if parent else Thread(number))
    turns = [
        _turn(chat, known.get(chat.parent), places[chat.id], spun[chat.index], chats[0].at, books) for chat in chats
    ]
    books.sessions.used += 1
    books.rows.used += len(chats)
    return Session(f"chat-{chats[0].id}", tuple(turns), tuple(threads), weaver.segments, arrival=chats[0].at)


def _lines(chats: Sequence[Chat]) -> list[list[Chat]]:
    """The threads: a chat joins the thread that its parent ends, or opens one."""
    lines: list[list[Chat]] = []
    ends: dict[int, list[Chat]] = {}  # last chat -> its line
    for chat in chats:
        line = ends.pop(chat.parent, None)
        if line is None:
            line = []
            lines.append(line)
        line.append(chat)
        ends[chat.id] = line
    return lines


def _spin(weaver: Weaver, line: Sequence[Chat], root: Root | None, books: Books) -> list[Spun]:
    links = [Link(chat.index, chat.isl, chat.out, chat.ids) for chat in line]
    return spin(weaver, links, (), books, root)


def _turn(chat: Chat, parent: Chat | None, thread: int, spun: Spun, zero: float, books: Books) -> Turn:
    gap = Gap()
    if parent is not None:
        books.note("gap taken from two starts: it includes the reply before (inferred)")
        gap = Gap("unknown", max(0.0, round(chat.at - parent.at, 6)), "inferred")
    return Turn(
        index=chat.index,
        thread=thread,
        prompt=spun.prompt,
        isl=chat.isl,
        output=Output(chat.out),
        after=(parent.index,) if parent else (),
        gap=gap,
        reply=spun.reply,
        event=spun.event,
        observed=Observed(start=round(chat.at - zero, 6)),
        extra={"source": {"type": chat.kind}} if chat.kind else {},
    )


def make_format() -> Format:
    """What `agentx import bailian` reads."""
    return Format(
        name="bailian",
        row="row",
        sessions=read,
        unknowable=(
            "text and token ids: only lengths and the identity of 16-token blocks",
            "what the layers of a prompt are: all but replies is called user",
            "how long replies took: time-stamps are starts; so a pause holds the reply before it",
            "models, reasoning tokens, cached tokens, tools, failed and aborted calls",
        ),
        endings=(".jsonl",),
        content="opaque",
        fidelity=Fidelity("lengths", "start-only", "header", "server", "total"),
    )
