"""Many plays in outline of one plan: the sessions of a trace held in memory, each draw another beginning.

A draw begins at another place of the trace and starts its sessions elsewhere; the load, the pool and the host tier can
be others than the plan's. What differs between two configurations of one draw is then theirs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle

from agentx.core import Session
from agentx.engine.settings import EngineSettings, Host
from agentx.errors import BadInput
from agentx.prefix_tree import PrefixTree
from agentx.replayer.embedded import facts_of
from agentx.replayer.fates import Fates
from agentx.replayer.folder import Facts
from agentx.replayer.order import Order, fates_of
from agentx.replayer.rough import Rough, play
from agentx.reuse import Walk
from agentx.trace import read_trace

MOST_TURNS = 500_000  # that are held in memory
LANE_TURNS, TURNS, LEAST_TURNS = 300, 1200, 40  # that a lane, all of them, and a lane at least may send: enough to tell


@dataclass(slots=True)
class Outlines:
    """Plays in outline of an order whose target is an engine."""

    order: Order
    settings: EngineSettings
    sessions: list[Session]
    draws: int
    _prefixes: dict[str, list[int]] = field(default_factory=dict)
    _known: dict[tuple[int, int, int, str], list[Rough]] = field(default_factory=dict)

    def at(self, lanes: int, *, pool: int | None = None, host: Host | None = None) -> list[Rough]:
        """Every draw with so many sessions at a time; `pool` and `host` stand for the target's own."""
        cache = self.settings.cache
        cache = cache.model_copy(update={"pool": pool or cache.pool, "host": host or cache.host})
        key = lanes, cache.pool, cache.host.tokens, cache.host.write
        if key not in self._known:
            settings = self.settings.model_copy(update={"cache": cache})
            self._known[key] = [self._play(settings, lanes, draw) for draw in range(self.draws)]
        return self._known[key]

    def _play(self, settings: EngineSettings, lanes: int, draw: int) -> Rough:
        plan = self.order.plan
        most = min(LANE_TURNS, max(LEAST_TURNS, TURNS // lanes))
        rules = replace(plan.rules, lanes=lanes, turns=min(plan.rules.turns or most, most))
        if rules.start is not None:
            rules = replace(rules, start=replace(rules.start, seed=plan.seed + draw))
        running = max(settings.scheduler.max_running, 2 * lanes)  # a limit below the load is another question
        scheduler = settings.scheduler.model_copy(update={"max_running": running})
        settings = settings.model_copy(update={"scheduler": scheduler})
        return play(self._from(draw), rules, self._fates(), settings, self.prefix)

    def _from(self, draw: int) -> Iterator[Session]:
        first = draw * len(self.sessions) // self.draws
        turned = [*self.sessions[first:], *self.sessions[:first]]
        return cycle(turned) if self.order.plan.recycles else iter(turned)

    def _fates(self) -> Fates:
        """What does not fit is judged by the target's own pool, so that the work stays the same."""
        plan, target = self.order.plan, self.order.target
        return fates_of(Facts(plan, target, self.order.trace, "", facts_of(self.settings), None, False, embedded=True))

    def prefix(self, session: Session, turn: int) -> int:
        return self._prefixes[session.key][turn]

    def prepare(self) -> None:
        """Note what an unlimited cache would have of each prompt."""
        alone, tree = self.order.plan.salt in ("session", "field-session"), PrefixTree()
        for session in self.sessions:
            walk = Walk(session, PrefixTree() if alone else tree)
            found = [walk.turn(index) for index in range(len(session.turns))]
            self._prefixes[session.key] = [sum(each.reused) for each in found]
            walk.forget()


def outlines(order: Order, draws: int) -> Outlines:
    """Read the sessions of an order. Raises BadInput for a target that is no engine, or a trace that is too long."""
    settings = order.target.settings
    if not isinstance(settings, EngineSettings):
        raise BadInput(f"the target {order.target.name} is an address, and only an engine has a model of its pool")
    held: list[Session] = []
    turns = 0
    for session in read_trace(order.trace):
        held.append(session)
        turns += len(session.turns)
        if turns > MOST_TURNS:
            raise BadInput(
                f"a trace of more than {MOST_TURNS:,} turns is too long to hold", hint="agentx cut makes it shorter"
            )
    if not held:
        raise BadInput("holds no session", file=order.trace)
    found = Outlines(order, settings, held, draws)
    found.prepare()
    return found
