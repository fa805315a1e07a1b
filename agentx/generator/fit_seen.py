"""One pass over a trace's sessions: the numbers that a spec's distributions and shares are fitted to.

Of each call a few numbers are kept, none of its content, so memory grows with the calls by some hundred bytes each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentx.core import LEADING_LAYERS, Session, Thread
from agentx.generator.fit_layers import Fronts, documents
from agentx.generator.fit_side import SideSeen, side_call
from agentx.generator.fit_steps import Context, Step, context, step

MAIN = "main"
FULL = 0.95  # a session that ends with this share of the longest context of all may have ended because it was full


@dataclass(slots=True)
class Loop:
    """A user message and its calls; `cut`: it was broken off."""

    calls: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A main thread: its loops, its last context, its longest one, whether it was compacted, and its delegations."""

    loops: tuple[Loop, ...]
    last: int
    longest: int
    compacted: bool
    steps: int  # after tools or subagents
    spawns: int


@dataclass(slots=True)
class Seen:
    """What was seen. `values` by quantity; a subagent type's are named `type TYPE/quantity`, a tool's `tool/NAME/…`."""

    values: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    ends: list[Ended] = field(default_factory=list)
    fronts: Fronts = field(default_factory=Fronts)
    models: Counter[str] = field(default_factory=Counter)  # by the first call of a session
    types: dict[str, Counter[str | None]] = field(default_factory=dict)  # models of each subagent type
    sides: dict[str, SideSeen] = field(default_factory=dict)
    arrivals: list[float] = field(default_factory=list)
    longest: int = 0
    depth: int = 0

    def watch(self, sessions: Iterable[Session]) -> Iterator[Session]:
        """Pass sessions on unchanged and note what they are made of."""
        for session in sessions:
            self.add(session)
            yield session

    def add(self, session: Session) -> None:
        if not session.turns:
            self.counts["without turns"] += 1
            return
        self.counts["sessions"] += 1
        if session.arrival is not None:
            self.arrivals.append(session.arrival)
        _Reading(self, session).read()

    def put(self, quantity: str, value: float) -> None:
        self.values[quantity].append(value)


def type_of(thread: Thread) -> str:
    """The name under which a subagent's values are kept."""
    return f"type {thread.type or 'agent'}"


class _Reading:
    """One session on its way into `Seen`."""

    def __init__(self, seen: Seen, session: Session) -> None:
        self.seen, self.session = seen, session
        self.threads = {thread.id: thread for thread in session.threads}
        self.latest: dict[int, Context] = {}
        self.last_of = {turn.thread: turn.index for turn in session.turns}
        self.first_of = {turn.thread: turn for turn in reversed(session.turns)}
        self.calls = Counter(turn.thread for turn in session.turns)
        mains = [turn.thread for turn in session.turns if self.threads[turn.thread].kind == "main"]
        self.main = mains[0] if mains else session.turns[0].thread
        self.loops: list[Loop] = []
        self.compacted = False
        self.steps = self.spawns = 0

    def read(self) -> None:
        for turn in self.session.turns:
            self.seen.longest = max(self.seen.longest, turn.isl + turn.output.tokens)
            thread = self.threads[turn.thread]
            if thread.kind == "side" and turn.thread != self.main:
                side_call(self.seen.sides, self.session, thread, turn, self.latest.get(self.main))
                continue
            latest = self.latest.get(turn.thread)
            now = self.latest[turn.thread] = context(self.session, turn, latest)
            self._turn(thread, step(self.session, latest, now), now, latest)
        self._end()

    def _turn(self, thread: Thread, made: Step, now: Context, latest: Context | None) -> None:
        seen, turn = self.seen, made.turn
        is_main = turn.thread == self.main
        who = MAIN if is_main else type_of(thread)
        aborted = turn.event is not None and turn.event.kind == "abort"
        if made.kind == "start":
            self._start(thread, who, now, made)
        if is_main:
            self._main_step(made, aborted, latest)
        if not is_main and self.last_of[turn.thread] == turn.index:
            seen.put(f"{who}/report", turn.output.tokens)
        elif not aborted:
            after = "tool" if made.kind in ("tool", "spawn") else "human"
            seen.put(f"{who}/reply/{after}", turn.output.visible)
            seen.put(f"{who}/reasoning/{after}", turn.output.reasoning)
        if made.what == "compaction":
            self._compaction(made, latest)
        elif made.kind == "spawn":
            self._spawn(who, made)
        elif made.kind == "tool":
            self._tools(who, made)

    # --- openings

    def _start(self, thread: Thread, who: str, now: Context, made: Step) -> None:
        seen, turn = self.seen, made.turn
        if who == MAIN:
            seen.fronts.add(self.session, now.pieces)
            seen.models[turn.model or ""] += 1
            self._opening(made)
            return
        seen.types.setdefault(thread.type or "agent", Counter())[turn.model] += 1
        tools = sum(part.tokens for part in made.fresh if part.layer == "tools")
        system = sum(part.tokens for part in made.fresh if part.layer in ("system", "shared"))
        seen.put(f"{who}/tools", tools)
        seen.put(f"{who}/system", system)
        seen.put(f"{who}/prompt", max(1, turn.isl - tools - system))
        seen.put(f"{who}/calls", self.calls[turn.thread])
        depth, parent = 1, thread.parent
        while parent is not None and self.threads[parent].kind == "subagent":
            depth, parent = depth + 1, self.threads[parent].parent
        seen.depth = max(seen.depth, depth)
        seen.counts[f"{who}/steps on level {depth}"] += self.calls[turn.thread] - 1

    def _opening(self, made: Step) -> None:
        """What stands behind the front of a session's first prompt: files, a history, the first message."""
        own = [part for part in made.fresh if part.layer not in LEADING_LAYERS]
        message = own[-1].tokens if own else 1
        before = own[:-1]
        self.seen.put("first content", sum(part.tokens for part in own))
        if any(part.layer == "assistant" for part in before):
            self.seen.put("history", sum(part.tokens for part in before))
        elif before:
            for part in before:
                self.seen.put("file", part.tokens)
            self.seen.put("files", len(before))
        self.seen.put("first message", message)

    # --- the main thread

    def _main_step(self, made: Step, aborted: bool, latest: Context | None) -> None:
        seen = self.seen
        seen.counts["calls"] += made.turn.event is None or aborted
        seen.counts["aborts"] += aborted
        if aborted:
            seen.put("aborted reply", made.turn.output.tokens)
        if made.kind in ("start", "human"):
            self.loops.append(Loop())
        self.loops[-1].calls += 1
        self.loops[-1].cut = aborted
        if made.kind == "human":
            self._message(made, latest)
        elif made.kind != "start":
            self.steps += 1
            self.spawns += made.kind == "spawn"
            seen.counts["tool steps"] += 1
        if made.what == "pull_back":
            seen.counts["pull backs"] += 1
            seen.counts["rewritten"] += made.grown >= made.lost
            seen.put("lost", min(1.0, made.lost / max(1, made.before)))

    def _message(self, made: Step, latest: Context | None) -> None:
        seen, turn = self.seen, made.turn
        seen.counts["messages"] += 1
        seen.counts["resets"] += made.what == "reset"
        seen.counts["stripped"] += turn.event is not None and turn.event.kind == "think_strip"
        seen.counts["switches"] += latest is not None and latest.turn.model != turn.model
        if turn.gap.kind in ("human", "unknown"):
            seen.put("human gap", turn.gap.seconds)
        if made.what in ("grown", "pull_back"):
            rewritten = made.lost if made.what == "pull_back" and made.grown >= made.lost else 0
            seen.put("message", max(1, sum(p.tokens for p in made.fresh if p.layer != "shared") - rewritten))
            seen.fronts.later.append(documents(self.session, turn.prompt.append))

    def _compaction(self, made: Step, latest: Context | None) -> None:
        event, turn = made.turn.event, made.turn
        before = event.before if event is not None and event.before else made.before
        kept = event.kept if event is not None and event.kept is not None else made.kept
        summary = event.summary if event is not None and event.summary is not None else turn.isl - kept
        if turn.thread == self.main:
            self.compacted = True
        # The trigger lay between the last prompt, which had not reached it, and this one.
        last = latest.turn.isl if latest is not None else before
        self.seen.put("compaction trigger", (min(last, before) + before) / 2)
        self.seen.put("compaction summary", max(1, summary))
        self.seen.put("compaction kept", kept)

    # --- tools and subagents

    def _tools(self, who: str, made: Step) -> None:
        seen, turn = self.seen, made.turn
        results = [part.tokens for part in made.fresh if part.layer == "tool_result"]
        count = max(1, len(turn.tools) or len(results))
        total = made.grown if made.what == "grown" or made.grown < made.lost else made.grown - made.lost
        if len(results) != count or sum(results) != total:
            results = [max(1, round(total / count))] * count
        seen.put(f"{who}/parallel", count)
        names = [tool.name for tool in turn.tools] or ["tool"] * count
        known = [tool.seconds for tool in turn.tools] or [None] * count
        if all(seconds is None for seconds in known) and turn.gap.kind == "tool":
            known[0] = turn.gap.seconds
        for name, seconds, tokens in zip(names, known, results, strict=True):
            seen.counts[f"tool/{name}"] += 1
            seen.put(f"{who}/result", tokens)
            if who == MAIN:
                seen.put(f"tool/{name}/result", tokens)
            if seconds is not None:
                seen.put(f"tool/{name}/time", max(0.0, seconds))

    def _spawn(self, who: str, made: Step) -> None:
        seen, turns = self.seen, self.session.turns
        threads = {turns[index].thread for index in made.joined}
        seen.put("spawn count", len(threads))
        seen.counts[f"{who}/spawns"] += 1
        firsts = [self.first_of[thread] for thread in sorted(threads)]
        if len(firsts) > 1:
            serial = sum(any(turns[index].thread in threads for index in first.after) for first in firsts)
            seen.counts["serial"] += serial >= len(firsts) - 1
            seen.counts["several"] += 1

    def _end(self) -> None:
        if self.main not in self.latest:
            return
        mine = [turn for turn in self.session.turns if turn.thread == self.main]
        longest = max(turn.isl + turn.output.tokens for turn in mine)
        last = mine[-1].isl + mine[-1].output.tokens
        self.seen.ends.append(Ended(tuple(self.loops), last, longest, self.compacted, self.steps, self.spawns))
