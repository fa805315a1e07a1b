"""One line of context as it grows, shrinks and is sent: what every shape of a session drives.

Rule: every quantity draws from a stream of its own, named by (seed, session, quantity), so that a new shape, or one
more draw of one quantity, moves no other draw. A line knows which leading pieces are still those of its latest prompt;
an edit of the context moves that mark back, and the next turn keeps only what is before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentx.core import Gap, Layer, Output, Piece, Prompt, Segment, Thread, Tool, Turn, TurnEvent
from agentx.distributions import Bits, Distribution, whole
from agentx.errors import BadInput
from agentx.generator.quantities import Count

MAX_TURNS = 100_000  # of one session; a spec that wants more has a slip in it


@dataclass(slots=True)
class Draft:
    """A session that is being made: its segments, turns and threads, and its streams of random bits."""

    seed: int
    session: int
    next_id: int  # ids from here belong to the session, those below to the file
    shared: Mapping[int, Segment]
    segments: dict[int, Segment] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=lambda: [Thread(0)])
    streams: dict[str, Bits] = field(default_factory=dict)

    def bits(self, quantity: str) -> Bits:
        if quantity not in self.streams:
            self.streams[quantity] = Bits(self.seed, "session", self.session, quantity)
        return self.streams[quantity]

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1


@dataclass(slots=True)
class Line:
    """One thread's context. `pieces` is what the next prompt holds; its first `kept` are those of turn `last`."""

    draft: Draft
    limit: int
    thread: int = 0
    stream: str = ""  # in front of the names of its streams of random bits
    model: str | None = None
    last: int | None = None
    kept: int = 0
    isl: int = 0
    pieces: list[Piece] = field(default_factory=list)
    fresh: dict[int, Segment] = field(default_factory=dict)  # own segments that no turn has sent yet
    waits: tuple[int, ...] = ()  # turns that the next one waits for, besides `last`
    event: TurnEvent | None = None  # of the next turn

    # --- draws

    def bits(self, quantity: str) -> Bits:
        return self.draft.bits(self.stream + quantity)

    def count(self, quantity: str, shape: Distribution[Count], least: int = 1) -> int:
        """A whole number, at least `least`."""
        return max(least, whole(shape.draw(self.bits(quantity))))

    def chance(self, quantity: str, share: float) -> bool:
        """Whether something that happens in `share` of the cases happens; a share of 0 draws nothing."""
        return share > 0 and self.bits(quantity).uniform() < share

    # --- edits

    @property
    def room(self) -> int:
        return self.limit - self.isl

    def layer(self, piece: Piece) -> Layer:
        return self.segment(piece.segment).layer

    def segment(self, id: int) -> Segment:
        return self.draft.segments.get(id) or self.fresh.get(id) or self.draft.shared[id]

    def add(self, segment: Segment) -> None:
        """Append all of a segment that exists; a prompt has no empty parts."""
        if segment.tokens:
            self.pieces.append(Piece(segment.id, 0, segment.tokens))
            self.isl += segment.tokens

    def append(self, layer: Layer, tokens: int) -> None:
        """Append new content of this session."""
        segment = Segment(self.draft.new_id(), layer, tokens)
        if tokens:
            self.fresh[segment.id] = segment
        self.add(segment)

    def replace(self, at: int, pieces: list[Piece]) -> None:
        """Put `pieces` in place of all pieces from `at` on."""
        self.isl += sum(piece.tokens for piece in pieces) - sum(piece.tokens for piece in self.pieces[at:])
        self.pieces[at:] = pieces
        self.kept = min(self.kept, at)

    # --- calls

    def prompt(self, *more: Piece) -> Prompt:
        """The context as it stands, and `more` behind it."""
        base = self.last if self.kept else None
        return Prompt((*self.pieces[self.kept if base is not None else 0 :], *more), base, self.kept)

    def call(self, output: Output, gap: Gap, tools: tuple[Tool, ...] = ()) -> bool:
        """One turn on the context as it stands; its reply joins the context. False, and no turn, if it does not fit."""
        if output.tokens > self.room:
            return False
        own = () if self.last is None else (self.last,)
        turn = self.send(self.prompt(), self.isl, output, gap, tuple(sorted({*own, *self.waits})), tools)
        self.last, self.kept, self.waits = turn.index, len(self.pieces), ()
        if turn.reply is not None:
            self.add(self.draft.segments[turn.reply])
        return True

    def send(
        self, prompt: Prompt, isl: int, output: Output, gap: Gap, after: tuple[int, ...], tools: tuple[Tool, ...] = ()
    ) -> Turn:
        """A turn of this thread with any prompt; the context does not change. A reply of no tokens has no segment."""
        draft = self.draft
        if len(draft.turns) >= MAX_TURNS:
            raise BadInput(
                f"session {draft.session} has more than {MAX_TURNS} turns",
                hint="limit turns.user, turns.loop or subagents",
            )
        used = {piece.segment for piece in prompt.append}  # an edit may have dropped what was appended before it
        draft.segments.update({id: segment for id, segment in self.fresh.items() if id in used})
        self.fresh = {}
        reply = Segment(draft.new_id(), "assistant", output.tokens)
        if output.tokens:
            draft.segments[reply.id] = reply
        turn = Turn(
            index=len(draft.turns),
            thread=self.thread,
            prompt=prompt,
            isl=isl,
            output=output,
            after=after,
            gap=gap,
            tools=tools,
            model=self.model,
            reply=reply.id if output.tokens else None,
            event=self.event,
        )
        draft.turns.append(turn)
        self.event = None
        return turn
