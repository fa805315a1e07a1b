"""What the plots of a trace need beside its statistics, noted in the same pass over the file.

Prompts by the number of their call in the main thread, with what of them can be reused; the first prompts of the first
sessions as a tree; and the course of a few sessions. Memory is bounded by these few and by one number a call.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentx.core import Session
from agentx.generator.fit_layers import Fronts
from agentx.reuse import TurnReuse

STEPS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000)  # first call of each bin
FRONTS = 2000  # sessions whose first prompts make the tree
STORIES, WITH_AGENTS = 3, 3  # sessions that are drawn: the first ones, and the first ones with subagents
MOST_CALLS = 300  # of a session that is drawn
LONGEST_PAUSE = 60.0  # seconds; longer ones are drawn as this
PER_TOKEN = 0.02  # seconds of a reply token, where the trace does not say how long a call took


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of a line: `kind` call, tool, human or spawn; seconds from the session's start."""

    kind: str
    start: float
    end: float
    told: str


@dataclass(frozen=True, slots=True)
class Story:
    """A session's course: a line of bars for each thread."""

    session: str
    lines: tuple[tuple[str, tuple[Bar, ...]], ...]
    left_out: int  # calls that are not drawn


@dataclass(slots=True)
class Drawing:
    """Watches an inspection."""

    lengths: dict[int, array[float]] = field(default_factory=dict)  # by bin: prompts of the main thread
    tokens: dict[int, list[int]] = field(default_factory=dict)  # by bin: [prompt tokens, reusable ones]
    fronts: Fronts = field(default_factory=Fronts)
    stories: list[Story] = field(default_factory=list)
    _bins: dict[str, dict[int, int]] = field(default_factory=dict)  # of the calls of sessions that go on, by index
    _sessions: int = 0
    _with_agents: int = 0

    def session(self, session: Session) -> None:
        main = {thread.id for thread in session.threads if thread.kind == "main"}
        bins, number = self._bins.setdefault(session.key, {}), 0
        for turn in session.turns:
            if turn.thread in main:
                number += 1
                step = bins[turn.index] = bisect_right(STEPS, number) - 1
                self.lengths.setdefault(step, array("d")).append(turn.isl)
        if session.turns and self._sessions < FRONTS:
            first = next((turn for turn in session.turns if turn.thread in main), session.turns[0])
            self.fronts.add(session, session.pieces(first.index))
        agents = any(thread.kind == "subagent" for thread in session.threads)
        if session.turns and (self._sessions < STORIES or (agents and self._with_agents < WITH_AGENTS)):
            self._with_agents += agents
            self.stories.append(story(session))
        self._sessions += 1

    def turns(self, turns: Sequence[TurnReuse]) -> None:
        bins = self._bins.pop(turns[0].session, {})
        for turn in turns:
            step = bins.get(turn.turn)
            if step is not None:
                sums = self.tokens.setdefault(step, [0, 0])
                sums[0] += sum(turn.tokens) + turn.unattributed
                sums[1] += sum(turn.reused)


def story(session: Session) -> Story:
    """When each call of a session would be made if nothing else were to wait for."""
    ends: list[float] = []
    lines: dict[int, list[Bar]] = {}
    for turn in session.turns[:MOST_CALLS]:
        ready = max((ends[index] for index in turn.after), default=0.0)
        start = ready + min(turn.gap.seconds, LONGEST_PAUSE)
        seen = turn.observed
        known = seen is not None and seen.start is not None and seen.end is not None
        lasts = seen.end - seen.start if known else PER_TOKEN * turn.output.tokens  # type: ignore[union-attr,operator]
        ends.append(start + max(0.0, lasts))
        line = lines.setdefault(turn.thread, [])
        if turn.gap.seconds and turn.gap.kind != "unknown":
            tools = ", ".join(tool.name for tool in turn.tools)
            line.append(Bar(turn.gap.kind, ready, start, f"{tools or turn.gap.kind}: {turn.gap.seconds:,.1f} s"))
        told = f"call {turn.index}: {turn.isl:,} tokens in, {turn.output.tokens:,} out"
        line.append(Bar("call", start, ends[-1], told))
    names = {thread.id: f"{thread.kind} {thread.type or ''}".strip() for thread in session.threads}
    ordered = tuple((names[thread], tuple(bars)) for thread, bars in lines.items())
    return Story(session.key, ordered, max(0, len(session.turns) - MOST_CALLS))
