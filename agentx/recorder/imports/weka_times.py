"""When each request of a Weka session really started.

Two dialects exist under one schema, and no field names them, so they are told apart by evidence, entry by entry:

- a subagent's `t` is its *end* in kv-cache-tester files (start = t - duration_ms) and its *start* in SemiAnalysis
  files; its requests' `t` count from its start in the former and from the session's start in the latter;
- requests whose first `t` is not before the subagent's start are absolute, others relative;
- absolute ones that begin at or after `t` prove that t is the start, ones that begin before it that it is the end;
- with relative ones t is the end, unless t - duration lies before the end of the request that stands before the
  entry, and t does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from agentx.core import Layer
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.weka_rows import Agent, Request, WekaSession

ROUNDING = 1.0  # kv-cache-tester rounds t to whole seconds: an end may seem to lie this much after the next start
CLOCK = 0.05  # seconds of disorder allowed where t has fractions


@dataclass(slots=True, eq=False)
class Call:
    """A request at its place in time: `start`, `end` are seconds of the session's clock; None: not told.

    `inferred`: the start comes from a rule, not from the file. `index` is its turn, set when turns are numbered.
    """

    request: Request
    start: float
    inferred: bool = False
    index: int = -1

    @property
    def end(self) -> float | None:
        took = self.request.api_time
        return None if took is None else self.start + took

    @property
    def over(self) -> float:
        """The earliest moment at which it can have ended."""
        return self.start if self.end is None else self.end


@dataclass(slots=True)
class Strand:
    """Calls that one agent made, in order of their starts, and the leading layers of its prompts."""

    calls: list[Call]
    lead: tuple[tuple[int, Layer], ...]  # (end, layer): tokens of tools, then of system
    slack: float
    agent: Agent | None = None
    start: float = 0.0
    end: float | None = None  # of the whole agent


@dataclass(slots=True)
class Dialect:
    """How often each reading of a subagent's times was found."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, t: str, inner: str) -> None:
        name = f"t is a subagent's {t}, its requests' t are {inner}"
        self.counts[name] = self.counts.get(name, 0) + 1


def strands(session: WekaSession, books: Books, dialect: Dialect) -> list[Strand]:
    """The session's own calls first, then each subagent's, all on the session's clock."""
    slack = _slack(session.requests)
    own = [Call(request, request.t) for request in session.requests]
    found = [Strand(_ordered(own, books), _lead(session.tools, session.system), slack)]
    for agent in session.agents:
        if not agent.requests:
            books.note("subagent without requests")
            continue
        before = session.requests[agent.before - 1] if agent.before else None
        found.append(_agent_strand(agent, before, slack, books, dialect))
    return found


def _agent_strand(agent: Agent, before: Request | None, slack: float, books: Books, dialect: Dialect) -> Strand:
    start, offset, end, names = locate(agent, before, slack)
    dialect.add(*names)
    computed = names[0] == "end"
    calls = [Call(request, request.t + offset, computed) for request in agent.requests]
    return Strand(
        _ordered(calls, books), _lead(agent.tools, agent.system), _slack(agent.requests), agent, start=start, end=end
    )


def locate(agent: Agent, before: Request | None, slack: float) -> tuple[float, float, float, tuple[str, str]]:
    """A subagent's start, what to add to its requests' t, its end, and the names of the dialect found."""
    first = min(request.t for request in agent.requests)
    span = max(request.t + (request.api_time or 0.0) for request in agent.requests) - first
    duration = span if agent.duration is None else agent.duration
    began = agent.t - duration
    if agent.t > slack and first >= agent.t - slack:
        return agent.t, 0.0, agent.t + duration, ("start", "absolute")
    if began > slack and first >= began - slack:
        return began, 0.0, agent.t, ("end", "absolute")
    if began < -slack or (before is not None and _contradicts(agent.t, began, before, slack)):
        return agent.t, agent.t, agent.t + duration, ("start", "relative")
    return began, began, agent.t, ("end", "relative")


def _contradicts(t: float, began: float, before: Request, slack: float) -> bool:
    """Whether the request in front of the entry had ended at `t`, but not yet at t - duration."""
    ended = before.t + (before.api_time or 0.0)
    return began < ended - slack <= t


def _ordered(calls: list[Call], books: Books) -> list[Call]:
    """By start, without exact duplicates; how many were out of order or double goes to the books."""
    late = sum(later.start < earlier.start for earlier, later in pairwise(calls))
    books.note("request out of order in time: sorted", late)
    kept: dict[tuple[float, int, int, bytes], Call] = {}
    for call in sorted(calls, key=lambda call: call.start):
        double = kept.get(call.request.key)
        if double is None:
            kept[call.request.key] = call
            continue
        books.rows.dropped["exact duplicate (same t, in, out and hash ids)"] += 1
        if double.request.ttft is None:
            double.request = call.request  # the streamed one of the two tells more
    return list(kept.values())


def _slack(requests: Iterable[Request]) -> float:
    moments = [request.t for request in requests]
    return ROUNDING if all(t == int(t) for t in moments) else CLOCK


def _lead(tools: int, system: int) -> tuple[tuple[int, Layer], ...]:
    bounds: tuple[tuple[int, Layer], ...] = ((tools, "tools"), (tools + system, "system"))
    return tuple(bound for bound in bounds if bound[0])
