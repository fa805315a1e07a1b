"""What a workload promised against what it makes: one verdict for each statistic of `expect`.

A statistic is a quantity with `_mean`, `_p50` or `_ks` (the distance to a distribution), or a share; `expectation.py`
says what each is over. Possible reuse is measured by the caller.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentx.core import Session, Turn
from agentx.distributions import Plain
from agentx.generator.expectation import QUANTITIES, Expectation

PULL_BACK = 0.1  # share of the previous prompt that must be gone


@dataclass(slots=True)
class Measured:
    """Every value of each quantity, in the order of the turns, and the counts that the shares are made of."""

    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in QUANTITIES})
    counts: Counter[str] = field(default_factory=Counter)

    def watch(self, sessions: Iterable[Session]) -> Iterator[Session]:
        """Pass sessions on unchanged and note their values."""
        for session in sessions:
            self.add(session)
            yield session

    def add(self, session: Session) -> None:
        turns, counts = session.turns, self.counts
        counts["sessions"] += 1
        counts["turns"] += len(turns)
        counts["single_turn"] += len(turns) == 1
        counts["multi_turn_calls"] += len(turns) if len(turns) > 1 else 0
        self._put("turns", len(turns))
        if not turns:
            return
        self._put("context", max(turn.isl + turn.output.tokens for turn in turns))
        self._put("input", sum(turn.isl for turn in turns))
        self._put("output", sum(turn.output.tokens for turn in turns))
        kinds = {thread.id: thread.kind for thread in session.threads}
        for turn in turns:
            self._turn(session, turn, kinds[turn.thread])
        main = [turn for turn in turns if kinds[turn.thread] == "main"]
        if main:
            self._main(session, main)
        self._subagents(session)

    def _put(self, quantity: str, value: float) -> None:
        self.values[quantity].append(value)

    def _turn(self, session: Session, turn: Turn, kind: str) -> None:
        isl, osl, counts = turn.isl, turn.output.tokens, self.counts
        self._put("isl", isl)
        self._put("osl", osl)
        self._put("total", isl + osl)
        counts[kind] += 1
        if kind == "subagent":
            self._put("subagent_isl", isl)
            self._put("subagent_osl", osl)
        if turn.event is not None and turn.event.kind == "abort":
            counts["abort"] += 1
        if turn.gap.kind == "human":
            self._put("human_gap", turn.gap.seconds)
        if turn.tools:
            self._after_tools(session, turn)

    def _after_tools(self, session: Session, turn: Turn) -> None:
        self.counts["after_tools"] += 1
        self._put("tools", len(turn.tools))
        if turn.gap.kind == "tool" and any(tool.seconds is not None for tool in turn.tools):
            self._put("tool_gap", turn.gap.seconds)
        if turn.event is not None and turn.event.kind == "compaction":
            return
        before = _before(session, turn)
        if before is None:
            return
        kept = turn.isl - sum(piece.tokens for piece in turn.prompt.append) if turn.prompt.base == before.index else 0
        if kept < before.isl:
            self.counts["pull_back"] += kept < (1 - PULL_BACK) * before.isl
        else:
            self._put("fresh", turn.isl - kept - before.output.tokens)

    def _subagents(self, session: Session) -> None:
        parents = {thread.id: thread.parent for thread in session.threads if thread.kind == "subagent"}
        self.counts["delegating"] += bool(parents)
        for count in Counter(turn.thread for turn in session.turns if turn.thread in parents).values():
            self._put("subagent_turns", count)
        for turn in session.turns:
            joined = sum(parents.get(session.turns[before].thread) == turn.thread for before in turn.after)
            if joined:
                self._put("fan_out", joined)

    def _main(self, session: Session, turns: list[Turn]) -> None:
        self._put("main_turns", len(turns))
        self._put("first_isl", turns[0].isl)
        self._put("leading", _leading(session, turns[0].index))
        self._put("last_isl", turns[-1].isl)
        starts = [place for place, turn in enumerate(turns) if not turn.tools]
        for start, stop in zip(starts, [*starts[1:], len(turns)], strict=True):
            self._put("loop", stop - start)
        compactions = [turn.event for turn in turns if turn.event is not None and turn.event.kind == "compaction"]
        self.counts["compacted"] += bool(compactions)
        for event in compactions:
            self._put("compaction_before", event.before or 0)
            self._put("compaction_after", (event.kept or 0) + (event.summary or 0))

    def statistic(self, name: str) -> float | None:
        """The value of a share, or of `isl_p50`, `turns_mean` and so on; None when nothing of that kind occurred."""
        if name in _SHARES:
            part, whole = (self.counts[each] for each in _SHARES[name])
            return part / whole if whole else None
        quantity, _, which = name.rpartition("_")
        values = sorted(self.values[quantity])
        if not values:
            return None
        return math.fsum(values) / len(values) if which == "mean" else quantile(values, int(which[1:]) / 100)

    def distance(self, quantity: str, target: Plain[float]) -> float | None:
        """The Kolmogorov-Smirnov distance of a quantity's values to a distribution; None when there are none."""
        values = sorted(self.values[quantity])
        return ks_distance(values, target) if values else None


_SHARES = {  # share -> (what is counted, of what)
    "subagent_share": ("subagent", "turns"),
    "subagent_sessions": ("delegating", "sessions"),
    "side_share": ("side", "turns"),
    "compaction_share": ("compacted", "sessions"),
    "pull_back_share": ("pull_back", "after_tools"),
    "tool_share": ("after_tools", "turns"),
    "single_turn_share": ("single_turn", "sessions"),
    "multi_turn_calls": ("multi_turn_calls", "turns"),
    "abort_share": ("abort", "turns"),
}


def _leading(session: Session, index: int) -> int:
    pieces = session.pieces(index)
    return sum(piece.tokens for piece in pieces if session.segment(piece.segment).layer in ("tools", "system"))


def _before(session: Session, turn: Turn) -> Turn | None:
    """The turn of the same thread before this one."""
    base = turn.prompt.base
    if base is not None and session.turns[base].thread == turn.thread:
        return session.turns[base]
    return next((each for each in reversed(session.turns[: turn.index]) if each.thread == turn.thread), None)


def quantile(ordered: list[float], p: float) -> float:
    """The p-quantile of sorted values, linear between the two nearest."""
    place = p * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def ks_distance(ordered: list[float], target: Plain[float]) -> float:
    """The largest difference of the two distribution functions: at the points of `quantiles`, else at every per mille.

    Points of `quantiles` are all that such a source tells, so nothing is judged between them.
    """
    curve = target.quantiles
    points = curve.points if curve else [(step / 1000, target.quantile(step / 1000)) for step in range(1, 1000)]
    return max(abs(bisect_right(ordered, x) / len(ordered) - p) for p, x in points)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation and what came of it. `realised` None: nothing of that kind occurred, which is a miss."""

    statistic: str
    expectation: Expectation
    realised: float | None

    @property
    def met(self) -> bool:
        distance = math.inf if self.realised is None else abs(self.realised - self.expectation.value)
        return distance <= self.expectation.difference


def verdicts(
    expect: Mapping[str, Expectation], measured: Measured, possible_reuse: float | None = None
) -> list[Verdict]:
    """A verdict for each expectation, in the spec's order."""
    return [Verdict(name, each, _realised(name, each, measured, possible_reuse)) for name, each in expect.items()]


def _realised(name: str, each: Expectation, measured: Measured, possible_reuse: float | None) -> float | None:
    if name == "possible_reuse":
        return possible_reuse
    if isinstance(each.target, Plain):
        return measured.distance(name.removesuffix("_ks"), each.target)
    return measured.statistic(name)
