"""The nouns of agentx as frozen values: what agents do (trace) and what happened to it (results).

Nothing here does I/O or imports another module of the package. Derived values are properties or methods, so
that they cannot go stale. Every value that a file may carry has an `extra` mapping with the fields that this
version does not know; they survive a rewrite.

Identity of a token. A token is `(stream, position)`. A synthetic segment is a stream of its own, its tokens are
positions 0, 1, 2 ...; literal text or ids are the stream of that very content, wherever it occurs; all opaque blocks of
one identity scope and block size lie in one stream, block `b` at positions `b * block ... (b + 1) * block - 1`. Two
prompts share a prefix of n tokens exactly when their first n tokens have the same identities.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

Layer = Literal["tools", "system", "shared", "summary", "user", "tool_result", "assistant", "reasoning"]
LAYERS: tuple[Layer, ...] = ("tools", "system", "shared", "summary", "user", "tool_result", "assistant", "reasoning")
LEADING_LAYERS = frozenset({"tools", "system", "shared"})  # these join into one system message on the wire

Identity = Literal["session", "file", "global"]
IDENTITIES: tuple[Identity, ...] = ("session", "file", "global")
GapKind = Literal["tool", "human", "spawn", "unknown"]
GAP_KINDS: tuple[GapKind, ...] = ("tool", "human", "spawn", "unknown")
Provenance = Literal["recorded", "inferred", "drawn"]
PROVENANCES: tuple[Provenance, ...] = ("recorded", "inferred", "drawn")
ThreadKind = Literal["main", "subagent", "side"]
THREAD_KINDS: tuple[ThreadKind, ...] = ("main", "subagent", "side")
EVENTS = ("compaction", "reset", "think_strip", "abort", "error", "model_switch")

Extra = Mapping[str, Any]


class Stream(NamedTuple):
    """A token stream. "segment": endless, `id` is the segment's. "blocks": positions from block ids, `id` is the block
    size. "literal": the content itself, `id` is its digest and there is no scope.
    """

    scope: str
    kind: Literal["segment", "blocks", "literal"]
    id: int


class Run(NamedTuple):
    """Tokens `start ... stop - 1` of a stream; `layer` says what they are in this prompt."""

    stream: Stream
    start: int
    stop: int
    layer: Layer


class OpaqueRun(NamedTuple):
    """`tokens` consecutive tokens of the opaque block stream, from `offset` inside block `block_id`.

    It may cover many blocks: consecutive block ids are consecutive positions.
    """

    block_id: int
    offset: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """Content of which only identity and length are known: runs of numbered blocks of `block` tokens."""

    block: int
    runs: tuple[OpaqueRun, ...]

    @property
    def tokens(self) -> int:
        return sum(run.tokens for run in self.runs)


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text, UTF-8. Without a tokenizer a token is four bytes of it."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Literal ids of the header's tokenizer."""

    ids: tuple[int, ...]


Content = Opaque | Text | TokenIds | None  # None: synthetic, the stream of the segment's own id


@dataclass(frozen=True, slots=True)
class Segment:
    """A named stretch of content: the first `tokens` of it."""

    id: int
    layer: Layer
    tokens: int
    content: Content = None
    extra: Extra = field(default_factory=dict)


class Piece(NamedTuple):
    """Tokens `start ... stop - 1` of a segment, as one part of a prompt."""

    segment: int
    start: int
    stop: int

    @property
    def tokens(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Prompt:
    """*Keep* the first `keep` pieces of turn `base`, then append these. `base` None: nothing is kept."""

    append: tuple[Piece, ...]
    base: int | None = None
    keep: int = 0


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool call that a turn waited for. `seconds` None: not known."""

    name: str
    seconds: float | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GapParts:
    """How much of a gap tools ran, and its user was awaited while none ran; what is left is the client's own time.

    Seconds; None: not told. `recorded`: told with the calls' ids. `inferred`: found by times alone, or a tool's time
    reaches from its call to its result, and a wait for leave is inside.
    """

    tool: float | None = None
    human: float | None = None
    provenance: Provenance = "recorded"


@dataclass(frozen=True, slots=True)
class Gap:
    """Seconds from the end of what a turn waits for to the turn; `parts` where the client itself says what it did."""

    kind: GapKind = "unknown"
    seconds: float = 0.0
    provenance: Provenance = "recorded"
    parts: GapParts | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """Tokens of a reply. Reasoning tokens come first, then the visible ones."""

    visible: int
    reasoning: int = 0

    @property
    def tokens(self) -> int:
        return self.visible + self.reasoning


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """What happened to the context before this turn, or to the turn itself.

    compaction: `before` tokens became `kept` leading tokens plus a `summary` of so many tokens.
    """

    kind: str
    before: int | None = None
    kept: int | None = None
    summary: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """What the source of the trace saw: seconds from the session's start; None where it does not tell."""

    start: float | None = None
    ttft: float | None = None
    end: float | None = None
    cached: int | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One model call.

    `after`: indices of turns that must have ended, each smaller than `index`. `isl` is the prompt's length as
    recorded, in tokens; the pieces may sum to less (what could not be attributed). `reply` is the segment whose
    first `output.tokens` tokens this turn produced, None where the source does not tell.
    """

    index: int
    thread: int
    prompt: Prompt
    isl: int
    output: Output
    after: tuple[int, ...] = ()
    gap: Gap = Gap()
    tools: tuple[Tool, ...] = ()
    model: str | None = None
    reply: int | None = None
    event: TurnEvent | None = None
    sampling: Extra = field(default_factory=dict)
    observed: Observed | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thread:
    """A line of context. `parent` is the thread that started it; `type` names a subagent's role."""

    id: int
    parent: int | None = None
    kind: ThreadKind = "main"
    type: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """What a trace says of itself. `scope` names the space of its segment ids; no clock, host or path.

    `content`: "synthetic", "text" or "opaque". `identity`: how far equal opaque block ids mean equal content.
    """

    name: str
    scope: str
    identity: Identity = "file"
    content: Literal["synthetic", "text", "opaque"] = "synthetic"
    tokenizer: str | None = None
    provenance: Extra = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's life, subagents included, turns in topological order.

    `segments` are its own, `shared` the file-scoped ones (looked up second). `complete` is False when the file
    ended inside it. `blocks_scope` is the space in which its opaque block ids are compared. `part` counts the
    headers before its own, in a file that was put together from several. `unknown` are frames of types that this
    version does not know, each with the number of turns before it; `end_extra` are unknown fields of the end frame.
    """

    id: str
    turns: tuple[Turn, ...]
    threads: tuple[Thread, ...] = (Thread(0),)
    segments: Mapping[int, Segment] = field(default_factory=dict)
    shared: Mapping[int, Segment] = field(default_factory=dict)
    arrival: float | None = None
    scope: str = ""
    blocks_scope: str = ""
    part: int = 0
    complete: bool = True
    extra: Extra = field(default_factory=dict)
    end_extra: Extra = field(default_factory=dict)
    unknown: tuple[tuple[int, str, Extra], ...] = ()

    @property
    def key(self) -> str:
        """Its name in results, unique in its file."""
        return self.id if self.part == 0 else f"{self.id}@{self.part}"

    def segment(self, id: int) -> Segment:
        """The segment `id`. Raises KeyError when neither the session nor its file defines it."""
        own = self.segments.get(id)
        return own if own is not None else self.shared[id]

    def pieces(self, index: int) -> list[Piece]:
        """The resolved prompt of turn `index`: all its pieces, first to last."""
        parts: list[Sequence[Piece]] = []
        prompt, limit = self.turns[index].prompt, None
        while True:
            own = prompt.append if limit is None else prompt.append[: max(0, limit - prompt.keep)]
            parts.append(own)
            limit = prompt.keep if limit is None else min(limit, prompt.keep)
            if prompt.base is None or limit == 0:
                break
            prompt = self.turns[prompt.base].prompt
        return [piece for part in reversed(parts) for piece in part]

    def stream(self, segment: Segment) -> Stream:
        """The stream that a segment which is not opaque is a prefix of."""
        if segment.content is not None and not isinstance(segment.content, Opaque):
            return Stream("", "literal", _digest(segment.content))
        scope = f"{self.scope}/{self.id}" if segment.id in self.segments else self.scope
        return Stream(scope, "segment", segment.id)

    def piece_runs(self, piece: Piece) -> list[Run]:
        """The identities of a piece's tokens, in order."""
        segment = self.segment(piece.segment)
        if not isinstance(segment.content, Opaque):
            return [Run(self.stream(segment), piece.start, piece.stop, segment.layer)]
        stream = Stream(self.blocks_scope, "blocks", segment.content.block)
        runs, seen = [], 0
        for run in segment.content.runs:
            low, high = max(piece.start - seen, 0), min(piece.stop - seen, run.tokens)
            if low < high:
                first = run.block_id * segment.content.block + run.offset
                runs.append(Run(stream, first + low, first + high, segment.layer))
            seen += run.tokens
            if seen >= piece.stop:
                break
        return runs

    def runs(self, index: int) -> list[Run]:
        """The identities of all tokens of turn `index`'s prompt, in order."""
        return [run for piece in self.pieces(index) for run in self.piece_runs(piece)]

    def reply_runs(self, index: int) -> list[Run]:
        """The identities of the tokens that turn `index` produced; empty when its reply is not known."""
        turn = self.turns[index]
        if turn.reply is None:
            return []
        tokens = min(turn.output.tokens, self.segment(turn.reply).tokens)
        return self.piece_runs(Piece(turn.reply, 0, tokens)) if tokens else []


@lru_cache(maxsize=4096)
def _digest(content: Text | TokenIds) -> int:
    plain = content.text.encode() if isinstance(content, Text) else repr(content.ids).encode()
    return int.from_bytes(
        hashlib.blake2b(plain, digest_size=16, person=type(content).__name__.encode()).digest(), "big"
    )


class Chunk(NamedTuple):
    """One streamed chunk: microseconds after `sent`, and its tokens (None: the server did not say)."""

    micros: int
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Cached:
    """Prompt tokens that the server did not compute, by tier. None: not told, which is not zero."""

    total: int | None = None
    device: int | None = None
    host: int | None = None
    storage: int | None = None

    @property
    def tokens(self) -> int | None:
        """All of them: the total, else the sum of the tiers that were told."""
        tiers = [tier for tier in (self.device, self.host, self.storage) if tier is not None]
        return self.total if self.total is not None else sum(tiers) if tiers else None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed. `kind`: refused http stream stall closed protocol overflow ..."""

    kind: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP request for a turn, and what came of it.

    Times are float seconds on the run's monotonic clock: `due` planned, `sent` before the first byte left,
    `first` the first token, `last` the last one, `end` the end of the body. `isl`, `osl` are the trace's own
    counts (osl: what was asked for), `prompt_tokens`, `completion_tokens` the server's (None: not told).
    `queue_seconds`, `server_ttft` are the server's own times where it gives them.
    """

    session: str
    play: int
    turn: int
    thread: int
    lane: int
    due: float
    sent: float
    isl: int
    osl: int
    attempt: int = 0
    worker: int = 0
    phase: str = "measure"
    first_byte: float | None = None
    first: float | None = None
    last: float | None = None
    end: float | None = None
    chunks: Sequence[Chunk] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached: Cached | None = None
    queue_seconds: float | None = None
    server_ttft: float | None = None
    status: int | None = None
    failure: Failure | None = None
    finish: str | None = None
    rid: str | None = None
    reply: str | None = None
    extra: Extra = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def lag(self) -> float:
        return self.sent - self.due


@dataclass(frozen=True, slots=True)
class Play:
    """One replay of a session, written when it is over.

    `outcome`: done (every turn ended), failed (a turn failed and the policy ended it), cut (the run ended first).
    `turns` is the number of its turns, `sent` and `completed` how many of them were sent and answered.
    """

    session: str
    play: int
    lane: int
    outcome: str
    turns: int
    sent: int
    completed: int
    started: float
    ended: float
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """Server counters at one moment; `values` maps a counter's name to its sum over labels, absent when unknown."""

    at: float
    endpoint: str
    values: Mapping[str, float]
    extra: Extra = field(default_factory=dict)
