"""What a trace still gives away, measured; and the coarse level, which gives away less.

Hashing content does not hide its shape: whoever holds a copy of one's own traffic (a log, a bill) finds the session by
the lengths of a few replies. `Linkability` counts how many sequences of lengths are unique in a trace; `coarse` puts
lengths on powers of two and times, which are stretched or shrunk by chance first, on one significant digit.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from agentx.core import Gap, Opaque, OpaqueRun, Output, Piece, Prompt, Segment, Session, Tool, Turn

GRAMS = (1, 3, 5, 8)
JITTER = 1.25  # the most that a time is stretched by, and the least that it is shrunk by
ROOM = 1 << 20  # blocks behind an id that is a multiple of it belong to one content alone
FRESH = 1 << 63  # ids from here on are of no source
Chance = Callable[[str], float]  # a name -> a number in 0 ... 1, always the same


@dataclass(slots=True)
class Linkability:
    """Shares of runs of consecutive reply lengths, and of (prompt, reply) lengths, that occur once in the trace.

    Runs are kept as hashes, 40 bytes a turn in all: importers read traces that fit into no memory.
    """

    outputs: dict[int, array[int]] = field(default_factory=lambda: {n: array("q") for n in GRAMS})
    pairs: array[int] = field(default_factory=lambda: array("q"))
    sessions: int = 0

    def add(self, session: Session) -> None:
        self.sessions += 1
        lengths = [turn.output.tokens for turn in session.turns]
        for n, runs in self.outputs.items():
            runs.extend(hash(tuple(lengths[i : i + n])) for i in range(len(lengths) - n + 1))
        self.pairs.extend(hash((turn.isl, turn.output.tokens)) for turn in session.turns)

    def unique(self, n: int) -> float | None:
        """The share of runs of `n` reply lengths that occur once; None when there is no such run."""
        return _unique(self.outputs[n])

    @property
    def pairs_unique(self) -> float | None:
        """The share of (prompt, reply) lengths that occur once."""
        return _unique(self.pairs)

    def lines(self) -> list[str]:
        """The report. Anyone who holds lengths of their own can use what is unique here to find their session."""
        named = [(f"{n} reply lengths in a row", self.unique(n)) for n in GRAMS]
        named.append(("a prompt's and its reply's length", self.pairs_unique))
        lines = [f"still linkable, in {self.sessions:,} sessions (share that occurs once):"]
        lines += [f"  {what:<36} {'unknown' if share is None else f'{share:.1%}'}" for what, share in named]
        return lines


def _unique(runs: array[int]) -> float | None:
    alone = sum(1 for _, equal in groupby(sorted(runs)) if sum(1 for _ in equal) == 1)
    return alone / len(runs) if runs else None


# --- coarse ------------------------------------------------------------------------------------------------------


def power_of_two(value: int) -> int:
    """The nearest power of two by ratio; 0 stays 0."""
    return 1 << round(math.log2(value)) if value > 0 else 0


def one_digit(seconds: float) -> float:
    """Seconds on one significant digit, from milliseconds up."""
    if seconds < 0.0005:
        return 0.0
    exponent = math.floor(math.log10(seconds))
    unit: float = 10.0**exponent
    return round(round(seconds / unit) * unit, 6)


def coarse(session: Session, chance: Chance) -> Session:
    """The session with lengths on powers of two and blurred times on one digit. What was shared stays shared.

    Prompts are as long as their pieces. What was observed of the server is left out: it times every reply.
    """
    own = {id: _coarse_segment(segment, chance) for id, segment in session.segments.items()}
    shared = {id: _coarse_segment(segment, chance) for id, segment in session.shared.items()}
    known = {**session.shared, **session.segments}
    sizes = {id: (segment.tokens, power_of_two(segment.tokens)) for id, segment in known.items()}
    turns: list[Turn] = []
    prompts: list[list[Piece]] = []
    for turn in session.turns:
        pieces = [_coarse_piece(piece, *sizes[piece.segment]) for piece in session.pieces(turn.index)]
        turns.append(_coarse_turn(turn, pieces, prompts, _jitter(chance, f"{session.id} {turn.index}")))
        prompts.append(pieces)
    arrival = session.arrival
    if arrival is not None:
        arrival = one_digit(arrival * _jitter(chance, session.id))
    return replace(session, turns=tuple(turns), segments=own, shared=shared, arrival=arrival)


def _jitter(chance: Chance, name: str) -> float:
    factor: float = JITTER ** (2 * chance(name) - 1)
    return factor


def _coarse_segment(segment: Segment, chance: Chance) -> Segment:
    tokens, content = power_of_two(segment.tokens), segment.content
    if isinstance(content, Opaque):
        content = Opaque(content.block, _coarse_runs(content, tokens, chance))
    return replace(segment, tokens=tokens, content=content)


def _coarse_runs(content: Opaque, tokens: int, chance: Chance) -> tuple[OpaqueRun, ...]:
    """Runs of so many tokens: cut off, or with tokens behind them that no other content has.

    Where an id has room of its own, the content goes on into it; equal runs have equal tokens behind them.
    """
    runs: list[OpaqueRun] = []
    for run in content.runs:
        if tokens:
            runs.append(run._replace(tokens=min(run.tokens, tokens)))
            tokens -= runs[-1].tokens
    if tokens and len(runs) == 1 and runs[0].block_id and not (runs[0].block_id % ROOM or runs[0].offset):
        return (runs[0]._replace(tokens=runs[0].tokens + tokens),)
    if tokens:
        told = " ".join(f"{run.block_id} {run.offset} {run.tokens}" for run in content.runs)
        fresh = FRESH + int(chance(f"blocks {content.block} {told}") * (1 << 42)) * ROOM
        runs.append(OpaqueRun(fresh, 0, tokens))
    return tuple(runs)


def _coarse_piece(piece: Piece, tokens: int, new: int) -> Piece:
    stop = max(1, math.ceil(piece.stop * new / tokens))
    return Piece(piece.segment, min(math.floor(piece.start * new / tokens), stop - 1), stop)


def _coarse_turn(turn: Turn, pieces: list[Piece], prompts: list[list[Piece]], jitter: float) -> Turn:
    tokens = power_of_two(turn.output.tokens)
    reasoning = tokens * turn.output.reasoning // max(turn.output.tokens, 1)
    prompt = Prompt(tuple(pieces))
    if turn.prompt.base is not None:
        keep = sum(1 for _ in _same(prompts[turn.prompt.base], pieces))
        prompt = Prompt(tuple(pieces[keep:]), turn.prompt.base if keep else None, keep)
    event = turn.event
    if event is not None:
        kept = power_of_two(event.kept) if event.kept is not None else None
        event = replace(event, before=power_of_two(event.before) if event.before is not None else None, kept=kept)
    return replace(
        turn,
        prompt=prompt,
        isl=max(1, sum(piece.tokens for piece in pieces)),
        output=Output(tokens - reasoning, reasoning),
        gap=_coarse_gap(turn.gap, jitter),
        tools=tuple(_coarse_tool(tool, jitter) for tool in turn.tools),
        event=event,
        sampling={},
        observed=None,
        extra={key: value for key, value in turn.extra.items() if key != "unattributed"},
    )


def _coarse_gap(gap: Gap, jitter: float) -> Gap:
    parts = gap.parts
    if parts is not None:
        parts = replace(parts, tool=_blurred(parts.tool, jitter), human=_blurred(parts.human, jitter))
    return Gap(gap.kind, one_digit(gap.seconds * jitter), gap.provenance, parts)


def _coarse_tool(tool: Tool, jitter: float) -> Tool:
    waited = tool.extra.get("waited_for_user")
    known = {"waited_for_user": one_digit(waited * jitter)} if isinstance(waited, int | float) else {}
    return Tool(tool.name, _blurred(tool.seconds, jitter), known)


def _blurred(seconds: float | None, jitter: float) -> float | None:
    return one_digit(seconds * jitter) if seconds is not None else None


def _same(base: list[Piece], pieces: list[Piece]) -> Iterator[Piece]:
    for a, b in zip(base, pieces, strict=False):
        if a != b:
            return
        yield a
