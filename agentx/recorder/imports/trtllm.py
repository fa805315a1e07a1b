"""TensorRT-LLM scaffolding traces: `{trace_id, events[]}`, one JSON object a file (or one a line, `.jsonl`).

An event belongs to a branch (`branch_path`) and, when it is a message, to a conversation: a line of context, which
becomes a thread. Messages are appended; an assistant's is a call on the context so far. Tool calls of one branch run
one after another and branches side by side, so the pause before a call is the sum along its branch, and the longest of
the branches where they join. A reply goes into later prompts without its reasoning. A system prompt with an id is
shared by all traces that have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.core import Gap, Layer, Output, Segment, Session, Thread, Tool, Turn
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.growth import Growth
from agentx.recorder.imports.running import Format, note_unknown
from agentx.recorder.imports.source import lines, looks_like, parse, parse_file
from agentx.trace_bodies import MAX_TOKENS, Body, Invalid, integer, items, one_of, optional, seconds, string

KINDS = ("message", "tool_call", "parallel_start", "parallel_end", "drop_kv_cache")
LAYERS: dict[str, Layer] = {"system": "system", "developer": "system", "user": "user", "tool": "tool_result"}
FIRST_SHARED = 1 << 40  # ids of the system prompts, far above those of a session
_KEYS = frozenset(
    {"event_type", "branch_path", "conversation_id", "message_index", "role", "tokens", "system_prompt_id"}
    | {"prompt_tokens", "completion_tokens", "reasoning_tokens", "finish_reason", "tool_calls", "tool_name"}
    | {"tool_call_id", "duration_ms", "num_branches"}
)
Path_ = tuple[int, ...]


@dataclass(slots=True)
class Branch:
    """Where a branch stands: the turns that its next call waits for, the tool time since, and its current thread."""

    waits: tuple[int, ...] = ()
    spent: float = 0.0
    tools: list[Tool] = field(default_factory=list)
    thread: int | None = None


class Prompts:
    """The system prompts that traces share, by their id: the file's segments."""

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self._known: dict[tuple[str, int], int] = {}

    def segment(self, id: str, tokens: int) -> int:
        number = self._known.setdefault((id, tokens), FIRST_SHARED + len(self._known))
        self.segments.setdefault(number, Segment(number, "system", tokens))
        return number


def reader(prompts: Prompts) -> Any:
    """A reader of files that shares system prompts between them."""

    def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
        if path.suffix == ".jsonl":
            for line in lines(path, digest):
                yield _one(parse(line.data, path, line.number), path, line.number, books, prompts)
        else:
            yield _one(parse_file(path, digest), path, None, books, prompts)

    return read


def _one(value: Any, path: Path, line: int | None, books: Books, prompts: Prompts) -> Session:
    if not isinstance(value, dict) or not {"trace_id", "events"} <= value.keys():
        raise BadInput(f"not a TensorRT-LLM trace: this looks like {looks_like(value)}", file=path, line=line)
    try:
        return convert(value, books, prompts)
    except Invalid as error:
        raise BadInput(str(error), file=path, line=line) from None


def convert(body: Body, books: Books, prompts: Prompts) -> Session:
    """A trace as a session. Raises Invalid that names the event."""
    events = items(body, "events")
    books.sessions.read += 1
    books.rows.read += len(events)
    scene = _Scene(prompts, books)
    for number, event in enumerate(events, start=1):
        try:
            scene.feed(event)
        except Invalid as error:
            raise Invalid(f"event {number}: {error}") from None
    if not scene.turns:
        raise Invalid("0 model calls: the trace has no assistant message")
    books.sessions.used += 1
    return scene.session(string(body, "trace_id"))


class _Scene:
    """A session as its events come."""

    def __init__(self, prompts: Prompts, books: Books) -> None:
        self.prompts, self.books = prompts, books
        self.turns: list[Turn] = []
        self.threads: list[Thread] = []
        self.contexts: list[Growth] = []
        self.segments: dict[int, Segment] = {}
        self.used: dict[int, Segment] = {}  # shared ones
        self.branches: dict[Path_, Branch] = {(): Branch()}
        self.places: dict[str, int] = {}  # conversation -> thread

    def session(self, id: str) -> Session:
        own = {key: segment for key, segment in self.segments.items() if key < FIRST_SHARED}
        return Session(id, tuple(self.turns), tuple(self.threads), own, self.used)

    def feed(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise Invalid(f"{event!r:.40} is not an object")
        kind = one_of(event, "event_type", KINDS)
        note_unknown(event, _KEYS, self.books)
        path = _path(event)
        branch = self._branch(path)
        if kind == "message":
            self._message(event, path, branch)
        elif kind == "tool_call":
            took = _milliseconds(event)
            branch.spent += took
            branch.tools.append(Tool(optional(string, event, "tool_name") or "tool", took))
        elif kind == "parallel_start":
            self._forget(path)
        elif kind == "parallel_end":
            self._join(path, branch)
        else:
            self.books.rows.drop("drop_kv_cache: a server's doing, not an agent's")
            return
        self.books.rows.used += 1

    def _branch(self, path: Path_) -> Branch:
        """A branch that is new begins where its parent stands."""
        if path not in self.branches:
            parent = self._branch(path[:-1])
            self.branches[path] = Branch(parent.waits, parent.spent, list(parent.tools), None)
        return self.branches[path]

    def _forget(self, path: Path_) -> None:
        for other in [other for other in self.branches if len(other) > len(path) and other[: len(path)] == path]:
            del self.branches[other]

    def _join(self, path: Path_, branch: Branch) -> None:
        """Wait for all branches; the longest tool time behind their last calls goes on."""
        ended = [b for other, b in self.branches.items() if other[:-1] == path and len(other) == len(path) + 1]
        if ended:
            branch.waits = tuple(sorted({turn for other in ended for turn in other.waits}))
            branch.spent = max(other.spent for other in ended)
            # Branches without a call inherited what the parent had waited for: each tool once.
            branch.tools = list({id(tool): tool for other in ended for tool in other.tools}.values())
        self._forget(path)

    def _message(self, event: Body, path: Path_, branch: Branch) -> None:
        thread = self._thread(string(event, "conversation_id"), path, branch)
        branch.thread = thread
        context = self.contexts[thread]
        role = one_of(event, "role", (*LAYERS, "assistant"))
        if role == "assistant":
            self._call(event, thread, context, branch)
            return
        tokens = integer(event, "tokens", high=MAX_TOKENS)
        name = optional(string, event, "system_prompt_id")
        if role == "system" and name is not None and tokens:
            shared = self.prompts.segment(name, tokens)
            self.used[shared] = self.segments[shared] = self.prompts.segments[shared]
            context.append(shared)
        else:
            context.add(LAYERS[role], tokens)

    def _thread(self, conversation: str, path: Path_, branch: Branch) -> int:
        if conversation in self.places:
            return self.places[conversation]
        number = self.places[conversation] = len(self.threads)
        parent = self._parent(path, branch)
        self.threads.append(Thread(number, parent, "main" if parent is None else "subagent"))
        self.contexts.append(Growth(self.segments))
        return number

    def _parent(self, path: Path_, branch: Branch) -> int | None:
        """The thread that is current in the branch, or in the nearest one around it."""
        found = [branch.thread, *(self._branch(path[:end]).thread for end in range(len(path) - 1, -1, -1))]
        return next((thread for thread in found if thread is not None), 0 if self.threads else None)

    def _call(self, event: Body, thread: int, context: Growth, branch: Branch) -> None:
        out = integer(event, "completion_tokens", high=MAX_TOKENS)
        reasoning = min(out, optional(integer, event, "reasoning_tokens", high=MAX_TOKENS) or 0)
        told = optional(integer, event, "prompt_tokens", high=MAX_TOKENS)
        index, sum_ = len(self.turns), context.tokens
        isl = sum_ if told is None else max(told, sum_)
        self.books.note("prompt longer than its messages: tokens that no message accounts for", isl > sum_)
        self.books.note("prompt shorter than its messages: their sum is taken", told is not None and told < sum_)
        first = context.last is None and self.threads[thread].kind != "main"
        prompt = context.prompt(index)
        reply = context.segment("assistant", out)
        context.append(reply, reasoning)
        gap = Gap("spawn" if first else "tool" if branch.tools else "unknown", round(branch.spent, 6))
        self.turns.append(
            Turn(
                index=index,
                thread=thread,
                prompt=prompt,
                isl=isl,
                output=Output(out - reasoning, reasoning),
                after=branch.waits,
                gap=gap if branch.waits else Gap(),
                tools=tuple(branch.tools),
                reply=reply,
            )
        )
        branch.waits, branch.spent, branch.tools = (index,), 0.0, []


def _path(event: Body) -> Path_:
    value = event.get("branch_path", [])
    if not isinstance(value, list) or len(value) > 64 or not all(type(part) is int for part in value):
        raise Invalid(f"branch_path: {value!r:.40} is not a list of at most 64 whole numbers")
    return tuple(value)


def _milliseconds(event: Body) -> float:
    took = seconds(event, "duration_ms")
    if took is None or took < 0:
        raise Invalid(f"duration_ms: {took} is not a number of milliseconds of at least 0")
    return round(took / 1000, 9)


def make_format() -> Format:
    """The format, with a memory of system prompts for one import."""
    return Format(
        name="trtllm",
        row="event",
        sessions=reader(Prompts()),
        unknowable=(
            "text and token ids; what sessions share besides system prompts with an id",
            "pauses of people, and arrivals; when anything happened: only how long tools took",
            "cached tokens, failed and aborted calls, models",
            "explicit drops of KV are left out",
        ),
        endings=(".json", ".jsonl"),
        fidelity=Fidelity("lengths", "ordinal", "header", "server", "split"),
    )
