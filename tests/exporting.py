"""Factories of the export tests: traces to export, and a plain reference for what prompts share."""

from __future__ import annotations

from pathlib import Path

from specs import EVERYTHING, FIXED, made

from agentx.core import Session, Stream
from agentx.generator.write import generate
from agentx.trace import TraceReader, read_trace

Token = tuple[Stream, int]


def everything(tmp_path: Path, sessions: int = 6, seed: int = 1) -> TraceReader:
    """A trace with subagents, compactions, edits of contexts, side calls, models and arrivals."""
    return read_trace(generate(made(EVERYTHING), seed=seed, sessions=sessions, out=tmp_path / "all.trace"))


def linear(tmp_path: Path, sessions: int = 3, *sets: str) -> TraceReader:
    """A trace of tool loops that only grow."""
    return read_trace(generate(made(FIXED, *sets), seed=1, sessions=sessions, out=tmp_path / "linear.trace"))


def tokens(session: Session, index: int) -> list[Token]:
    """The identity of every token of a prompt."""
    return [(run.stream, at) for run in session.runs(index) for at in range(run.start, run.stop)]


def common(left: list, right: list) -> int:
    """How many leading items two lists share."""
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def threads(session: Session) -> list[list[tuple[int, int]]]:
    """(isl, output) of the turns of each thread, threads sorted."""
    return sorted(
        [(turn.isl, turn.output.tokens) for turn in session.turns if turn.thread == thread.id]
        for thread in session.threads
        if any(turn.thread == thread.id for turn in session.turns)
    )
