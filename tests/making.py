"""Factories of the tests: random sessions, and a plain reference for what prompts are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from agentx.core import (
    LAYERS,
    Gap,
    Header,
    Observed,
    Opaque,
    OpaqueRun,
    Output,
    Piece,
    Prompt,
    Segment,
    Session,
    Stream,
    Text,
    Thread,
    TokenIds,
    Tool,
    Turn,
    TurnEvent,
)

SHARED = {1: Segment(1, "tools", 40), 2: Segment(2, "system", 25), 3: Segment(3, "shared", 30)}


def header(name: str = "test", **more: object) -> Header:
    return Header(name=name, scope="scope", **more)  # type: ignore[arg-type]


def linear(turns: int = 3, *, id: str = "s", fresh: int = 10, reply: int = 5, **more: object) -> Session:
    """A main thread that keeps everything: tools, system, user, then reply and tool result per turn."""
    own: dict[int, Segment] = {100: Segment(100, "user", fresh)}
    made = []
    for index in range(turns):
        own[200 + index] = Segment(200 + index, "assistant", reply)
        append = (Piece(1, 0, 40), Piece(2, 0, 25), Piece(100, 0, fresh))
        base, keep = None, 0
        if index:
            own[300 + index] = Segment(300 + index, "tool_result", fresh)
            append = (Piece(199 + index, 0, reply), Piece(300 + index, 0, fresh))
            base, keep = index - 1, 2 * index + 1
        isl = 65 + fresh + index * (reply + fresh)
        after = (index - 1,) if index else ()
        gap = Gap("tool", 1.0) if index else Gap()
        made.append(Turn(index, 0, Prompt(append, base, keep), isl, Output(reply), after, gap, reply=200 + index))
    defaults: dict[str, object] = {"shared": SHARED, "scope": "scope", "blocks_scope": "scope"}
    return Session(id, tuple(made), segments=own, **{**defaults, **more})  # type: ignore[arg-type]


def with_tools(turns: int = 3) -> Session:
    """`linear`, with the results of two tools, one of them named oddly, in each later turn."""
    plain = linear(turns)
    segments, made = dict(plain.segments), [plain.turns[0]]
    for turn in plain.turns[1:]:
        more = 900 + turn.index
        segments[more] = Segment(more, "tool_result", 7)
        prompt = Prompt((*turn.prompt.append, Piece(more, 0, 7)), turn.prompt.base, 3 * turn.index)
        made.append(replace(turn, prompt=prompt, tools=(Tool("Read"), Tool("a.b")), isl=turn.isl + 7 * turn.index))
    return replace(plain, turns=tuple(made), segments=segments)


@st.composite
def segments(draw: st.DrawFn, id: int) -> Segment:
    layer = draw(st.sampled_from(LAYERS))
    tokens = draw(st.integers(1, 50))
    kind = draw(st.sampled_from(["synthetic", "opaque", "text", "ids"]))
    if kind == "opaque":
        sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
        runs = tuple(OpaqueRun(draw(st.integers(0, 6)), draw(st.integers(0, 7)), size) for size in sizes)
        return Segment(id, layer, sum(sizes), Opaque(8, runs))
    if kind == "text":
        return Segment(id, layer, tokens, Text(draw(st.text(max_size=20))))
    if kind == "ids":
        return Segment(id, layer, tokens, TokenIds(tuple(draw(st.integers(0, 99)) for _ in range(tokens))))
    return Segment(id, layer, tokens)


@st.composite
def sessions(draw: st.DrawFn, id: str = "s", max_turns: int = 6) -> Session:
    """Any session that the format allows: several threads, kept and cut prompts, every kind of content."""
    own = {100 + n: draw(segments(100 + n)) for n in range(draw(st.integers(1, 5)))}
    known = {**SHARED, **own}
    threads = (Thread(0), Thread(7, 0, "subagent", "Explore")) if draw(st.booleans()) else (Thread(0),)
    sizes: list[int] = []
    turns = []
    for index in range(draw(st.integers(0, max_turns))):
        base = draw(st.none() | st.integers(0, index - 1)) if index else None
        keep = draw(st.integers(0, sizes[base])) if base is not None else 0
        append = tuple(draw(_pieces(known)) for _ in range(draw(st.integers(0, 3))))
        sizes.append(keep + len(append))
        turns.append(draw(_turns(index, Prompt(append, base, keep), threads, sorted(known))))
    arrival = draw(st.none() | st.floats(0, 1e6, allow_nan=False))
    extra = draw(st.sampled_from([{}, {"future": {"a": [1, "x", None]}}]))
    return Session(
        id,
        tuple(turns),
        threads,
        own,
        SHARED,
        arrival,
        scope="scope",
        blocks_scope="scope",
        extra=extra,
        end_extra=draw(st.sampled_from([{}, {"closing": 1}])),
        unknown=tuple((draw(st.integers(0, len(turns))), "future", {"n": n}) for n in range(draw(st.integers(0, 1)))),
    )


@st.composite
def _pieces(draw: st.DrawFn, known: dict[int, Segment]) -> Piece:
    segment = known[draw(st.sampled_from(sorted(known)))]
    start = draw(st.integers(0, segment.tokens - 1))
    return Piece(segment.id, start, draw(st.integers(start + 1, segment.tokens)))


@st.composite
def _turns(draw: st.DrawFn, index: int, prompt: Prompt, threads: tuple[Thread, ...], known: list[int]) -> Turn:
    seconds = st.floats(0, 1e5, allow_nan=False)
    event = TurnEvent("compaction", draw(st.integers(0, 9)), 3, None)
    observed = draw(st.none() | st.builds(Observed, start=st.none() | seconds, cached=st.none() | st.integers(0, 99)))
    more = (
        [{"note": "é\u2028"}, {}] if observed is None else [{"observed": {"host": "h"}}]
    )  # unknown fields go with known
    return Turn(
        index,
        draw(st.sampled_from(threads)).id,
        prompt,
        draw(st.integers(0, 500)),
        Output(draw(st.integers(0, 30)), draw(st.integers(0, 9))),
        tuple(sorted(draw(st.sets(st.integers(0, index - 1), max_size=3)))) if index else (),
        Gap(draw(st.sampled_from(["tool", "human", "spawn", "unknown"])), draw(seconds), "inferred"),
        tuple(Tool("bash", draw(st.none() | seconds), {"pid": 3}) for _ in range(draw(st.integers(0, 2)))),
        draw(st.sampled_from([None, "glm-5.2"])),
        draw(st.none() | st.sampled_from(known)),
        draw(st.sampled_from([None, event, TurnEvent("reset")])),
        draw(st.sampled_from([{}, {"temperature": 0.5}])),
        observed,
        draw(st.sampled_from(more)),
    )


def token_identities(session: Session, pieces: list[Piece]) -> list[tuple[Stream, int]]:
    """The reference for runs: every token's identity, one by one."""
    tokens = []
    for piece in pieces:
        segment = session.segment(piece.segment)
        own: list[tuple[Stream, int]]
        if isinstance(segment.content, Opaque):
            stream = Stream(session.blocks_scope, "blocks", segment.content.block)
            own = [
                (stream, run.block_id * segment.content.block + run.offset + offset)
                for run in segment.content.runs
                for offset in range(run.tokens)
            ]
        else:
            own = [(session.stream(segment), position) for position in range(segment.tokens)]
        tokens += own[piece.start : piece.stop]
    return tokens
