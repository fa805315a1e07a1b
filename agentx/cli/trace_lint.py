"""What is wrong with a readable trace: findings grouped by rule, each with its first place.

The reader already refuses broken structure (pieces out of bounds, turns out of order, an id twice). Here are
the rules that a trace may break and still be read; those for what recorders get wrong are in `recording_lint.py`. An
`error` makes numbers wrong, a `note` is worth knowing; `known` is a fault of the trace's source that others tell of and
the trace does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.cli.recording_lint import Recording, is_recorded
from agentx.core import Session, Turn
from agentx.trace import TraceReader

GAP_TOLERANCE = 0.0015  # seconds: recorded times are often rounded to 1 ms


@dataclass(slots=True)
class Finding:
    """A broken rule: how often, and where first."""

    level: str  # error | note | known
    rule: str
    first: str
    count: int = 1


@dataclass(slots=True)
class Lint:
    """The outcome: what was read, and the findings in order of appearance."""

    sessions: int = 0
    turns: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        return sum(finding.count for finding in self.findings.values() if finding.level == "error")

    def note(self, level: str, rule: str, where: str) -> None:
        found = self.findings.get(rule)
        if found is None:
            self.findings[rule] = Finding(level, rule, where)
        else:
            found.count += 1


def lint(path: Path | str) -> Lint:
    """Read a whole trace and check every session. Raises BadInput for a file whose structure is broken."""
    reader, result, recording = TraceReader(path), Lint(), Recording()
    header = reader.header
    template = header.provenance.get("template")
    frame = template if isinstance(template, dict) else {}
    for session in reader:
        result.sessions += 1
        result.turns += len(session.turns)
        for level, rule, where in _session(session, frame):
            result.note(level, rule, f"session {session.id}{where}")
        for level, rule, where in recording.add(session) if is_recorded(header) else ():
            result.note(level, rule, f"session {session.id}{where}")
    for level, rule, where in recording.end(header) if is_recorded(header) else ():
        result.note(level, rule, where)
    if reader.tear is not None:
        result.note("error", "the end of the file is torn", str(reader.tear))
    return result


def _session(session: Session, template: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """`template`: tokens of a `message` and a `prompt` that the recorded server's chat template added, where known."""
    if not session.complete:
        yield "error", "a session is cut short", ""
    if not session.turns:
        yield "note", "a session has no turn", ""
    started: set[int] = set()
    sizes: list[tuple[int, int]] = []  # pieces and tokens of each resolved prompt
    for turn in session.turns:
        sizes.append(_prompt_size(session, turn, sizes))
        pieces, tokens = sizes[-1]
        frame = _count(template.get("message")) * pieces + _count(template.get("prompt"))
        for level, rule, detail in _turn(session, turn, tokens, frame):
            yield level, rule, f" turn {turn.index}{': ' + detail if detail else ''}"
        if turn.thread in started and not turn.after:
            yield "note", "a later turn of a thread waits for nothing", f" turn {turn.index}"
        started.add(turn.thread)


def _prompt_size(session: Session, turn: Turn, sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Pieces and tokens of a resolved prompt; a base that is kept whole, the usual case, is not walked again."""
    prompt = turn.prompt
    own = sum(piece.tokens for piece in prompt.append)
    if prompt.base is None:
        return len(prompt.append), own
    pieces, kept = sizes[prompt.base]
    if prompt.keep < pieces:
        kept = sum(piece.tokens for piece in session.pieces(prompt.base)[: prompt.keep])
    return prompt.keep + len(prompt.append), kept + own


def _compaction(turn: Turn) -> Iterator[tuple[str, str, str]]:
    event = turn.event
    if event is None or event.kind != "compaction" or event.kept is None or event.summary is None:
        return
    left = event.kept + event.summary
    if event.before is not None and left > event.before:
        yield "note", "a compaction leaves more than there was", f"{left} tokens of {event.before}"
    if left > turn.isl:
        yield "note", "a compaction leaves more than its prompt holds", f"{left} tokens, isl {turn.isl}"


def _count(value: object) -> int:
    return value if type(value) is int else 0


def _turn(session: Session, turn: Turn, tokens: int, frame: int) -> Iterator[tuple[str, str, str]]:
    """`frame`: as many tokens of the chat template there may be in a prompt, besides its pieces'."""
    if tokens > turn.isl:
        yield "error", "a prompt's pieces hold more tokens than its isl", f"{tokens} in pieces, isl {turn.isl}"
    if tokens < turn.isl - frame:
        yield "note", "a prompt's pieces hold fewer tokens than its isl", f"{turn.isl - tokens} unattributed"
    if not turn.isl:
        yield "error", "a prompt is empty", ""
    if not turn.output.tokens and (turn.event is None or turn.event.kind != "abort"):
        yield "note", "a turn's reply has no tokens", ""
    if turn.reply is not None and session.segment(turn.reply).tokens < turn.output.tokens:
        yield "error", "a reply's segment is shorter than the reply", f"segment {turn.reply}"
    times = [tool.seconds for tool in turn.tools if tool.seconds is not None]
    alone = all(
        session.turns[index].thread == turn.thread for index in turn.after
    )  # else its subagents' work is inside
    if alone and turn.gap.kind == "tool" and times and max(times) > turn.gap.seconds + GAP_TOLERANCE:
        yield "note", "a tool ran longer than the gap that waited for it", f"{max(times)} s in {turn.gap.seconds} s"
    yield from _compaction(turn)
    seen = turn.observed
    if seen is not None and seen.start is not None and seen.end is not None and seen.end < seen.start:
        yield "error", "a turn was observed to end before it started", f"{seen.start} s to {seen.end} s"
