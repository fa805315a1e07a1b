"""Shapes of a session: each drives one line of context, drawing what the spec leaves to chance.

Rule: every quantity draws from a stream of its own, named by (seed, session, quantity), so that a new shape, or one
more draw of one quantity, moves no other draw. A shape is a function of a `Line`; it says what is appended and when
the model is called, and returns False when the context is full.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agentx.core import Gap, Layer, Output, Piece, Prompt, Segment, Tool, Turn
from agentx.distributions import Bits, Distribution, choose, milliseconds, whole
from agentx.errors import BadInput
from agentx.generator.spec import Count, WorkloadSpec

# A spec that wants more than these has a slip in it.
MAX_TURNS = 100_000  # of one session
MAX_PARALLEL = 1024  # tool calls of one reply


@dataclass(slots=True)
class Draft:
    """A session that is being made: its segments, its turns, and its streams of random bits."""

    seed: int
    session: int
    next_id: int
    segments: dict[int, Segment] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    streams: dict[str, Bits] = field(default_factory=dict)

    def bits(self, quantity: str) -> Bits:
        if quantity not in self.streams:
            self.streams[quantity] = Bits(self.seed, "session", self.session, quantity)
        return self.streams[quantity]

    def count(self, quantity: str, shape: Distribution[Count], least: int = 1) -> int:
        """A whole number, at least `least`."""
        return max(least, whole(shape.draw(self.bits(quantity))))


@dataclass(slots=True)
class Line:
    """One thread's context as it grows. `fresh` is appended but not sent yet."""

    draft: Draft
    limit: int
    thread: int = 0
    last: int | None = None  # index of its latest turn
    sent: int = 0  # pieces of that turn's prompt
    isl: int = 0  # tokens of context, `fresh` included
    fresh: list[Segment] = field(default_factory=list)

    @property
    def room(self) -> int:
        return self.limit - self.isl

    def add(self, segment: Segment) -> None:
        """Append all of a segment; a prompt has no empty parts."""
        if segment.tokens:
            self.fresh.append(segment)
            self.isl += segment.tokens

    def append(self, layer: Layer, tokens: int) -> None:
        """Append new content of this session."""
        self.add(Segment(self.draft.next_id, layer, tokens))
        self.draft.next_id += 1

    def call(self, output: Output, gap: Gap, tools: tuple[Tool, ...], own_from: int) -> bool:
        """One turn on the context as it stands; its reply joins the context. False, and no turn, if it does not fit.

        Segments with ids from `own_from` belong to the session, the others to the file.
        """
        if output.tokens > self.room:
            return False
        draft = self.draft
        if len(draft.turns) >= MAX_TURNS:
            raise BadInput(
                f"session {draft.session} has more than {MAX_TURNS} turns", hint="limit turns.user or turns.loop"
            )
        draft.segments.update({segment.id: segment for segment in self.fresh if segment.id >= own_from})
        reply = Segment(draft.next_id, "assistant", output.tokens)
        draft.segments[reply.id] = reply
        draft.next_id += 1
        turn = Turn(
            index=len(draft.turns),
            thread=self.thread,
            prompt=Prompt(tuple(Piece(part.id, 0, part.tokens) for part in self.fresh), self.last, self.sent),
            isl=self.isl,
            output=output,
            after=() if self.last is None else (self.last,),
            gap=gap,
            tools=tools,
            reply=reply.id,
        )
        draft.turns.append(turn)
        self.last, self.sent = turn.index, self.sent + len(self.fresh)
        self.fresh = []
        self.add(reply)
        return True


def conversation(line: Line, spec: WorkloadSpec, own_from: int) -> None:
    """User messages, each followed by a tool loop, until they are done or the context is full."""
    draft = line.draft
    for number in range(draft.count("user_turns", spec.turns.user)):
        if number == 0:
            wait = Gap(provenance="drawn")
            # The opening always fits: a session without a turn would be none.
            line.append("user", min(draft.count("first_message", spec.tokens.first_message), line.room - 1))
        else:
            wait = Gap("human", milliseconds(spec.gaps.human.draw(draft.bits("human_gap"))), "drawn")
            line.append("user", draft.count("message", spec.tokens.message))
        if not tool_loop(line, spec, own_from, wait):
            return


def tool_loop(line: Line, spec: WorkloadSpec, own_from: int, wait: Gap) -> bool:
    """Model calls until one needs no tool. `wait` comes before the first. False when the context is full."""
    draft = line.draft
    length = draft.count("loop", spec.turns.loop)
    tools: tuple[Tool, ...] = ()
    for step in range(length):
        if not line.call(_output(line, spec), wait, tools, own_from):
            return False
        if step < length - 1:
            tools = _tool_calls(draft, spec)
            wait = Gap("tool", max(tool.seconds or 0.0 for tool in tools), "drawn")
            for _ in tools:
                line.append("tool_result", draft.count("tool_result", spec.tokens.tool_result))
    return True


def _output(line: Line, spec: WorkloadSpec) -> Output:
    visible = line.draft.count("reply", spec.tokens.reply)
    reasoning = line.draft.count("reasoning", spec.tokens.reasoning, least=0)
    if line.last is None:
        visible = min(visible, line.room)
        reasoning = min(reasoning, line.room - visible)
    return Output(visible, reasoning)


def _tool_calls(draft: Draft, spec: WorkloadSpec) -> tuple[Tool, ...]:
    names = list(spec.gaps.tools)
    weights = [spec.gaps.tools[name].weight for name in names]
    count = draft.count("parallel", spec.turns.parallel)
    if count > MAX_PARALLEL:
        raise BadInput(f"a reply calls {count} tools, the limit is {MAX_PARALLEL}", hint="give turns.parallel a max")
    calls = []
    for _ in range(count):
        name = names[choose(weights, draft.bits("tool"))]
        seconds = spec.gaps.tools[name].time.draw(draft.bits(f"tool_time/{name}"))
        calls.append(Tool(name, milliseconds(seconds)))
    return tuple(calls)
