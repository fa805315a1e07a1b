"""Workload spec to sessions: session i is a pure function of (spec, seed, i).

Any slice of the sessions may be made in any process; laid end to end they are the same. Content that sessions share
(tools, system prompt, repository contexts) has segments of the file, numbered first; a session's own follow.
"""

from __future__ import annotations

import hashlib
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from agentx import distributions
from agentx.core import Segment, Session
from agentx.distributions import Bits
from agentx.errors import BadInput
from agentx.generator import shapes
from agentx.generator.spec import WorkloadSpec, spec_text

TOOLS_ID, SYSTEM_ID, FIRST_REPO_ID = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Shared:
    """The file-scoped segments by id, and how popular each repository context is."""

    segments: dict[int, Segment]
    repos: int
    popularity: tuple[float, ...]  # cumulative weights by rank

    @property
    def own_from(self) -> int:
        """The first id of a session's own segments."""
        return FIRST_REPO_ID + self.repos

    def leading(self, bits: Bits) -> list[Segment]:
        """The layers that one session starts with; its repository context is drawn."""
        chosen = [TOOLS_ID, SYSTEM_ID]
        if self.repos:
            rank = bisect(self.popularity, bits.uniform() * self.popularity[-1])
            chosen.append(FIRST_REPO_ID + min(rank, self.repos - 1))
        return [self.segments[id] for id in chosen]


def shared_layers(spec: WorkloadSpec, seed: int) -> Shared:
    """The shared content of a trace. Raises BadInput when it leaves no room for a turn."""
    layers, pool = spec.layers, spec.layers.repos
    segments = {
        TOOLS_ID: Segment(TOOLS_ID, "tools", layers.tools),
        SYSTEM_ID: Segment(SYSTEM_ID, "system", layers.system),
    }
    count = pool.count if pool else 0
    for number in range(count):
        tokens = distributions.whole(pool.tokens.draw(Bits(seed, "repo", number))) if pool else 0
        id = FIRST_REPO_ID + number
        segments[id] = Segment(id, "shared", max(1, tokens))
        leading = layers.tools + layers.system + segments[id].tokens
        if leading + 2 > spec.context_limit:
            message = f"tools, system and repository context {number} are {leading} tokens together"
            hint = "give layers.repos.tokens a max"
            raise BadInput(f"{message}, context_limit is {spec.context_limit}: no turn fits", hint=hint)
    exponent = pool.zipf if pool else 0.0
    weights = (distributions.exp(-exponent * distributions.log(rank)) for rank in range(1, count + 1))
    return Shared(segments, count, tuple(accumulate(weights)))


def sessions(spec: WorkloadSpec, seed: int, count: int, *, first: int = 0) -> Iterator[Session]:
    """Sessions `first ... first + count - 1`. Raises BadInput when the shared layers leave no room."""
    shared, scope = shared_layers(spec, seed), scope_of(spec, seed)
    return (session(spec, seed, index, shared, scope) for index in range(first, first + count))


def session(spec: WorkloadSpec, seed: int, index: int, shared: Shared, scope: str) -> Session:
    """Session `index` of the trace that (spec, seed) stands for."""
    draft = shapes.Draft(seed, index, shared.own_from)
    line = shapes.Line(draft, spec.context_limit)
    for segment in shared.leading(draft.bits("repo")):
        line.add(segment)
    shapes.conversation(line, spec, shared.own_from)
    return Session(
        id=f"s{index}",
        turns=tuple(draft.turns),
        segments=draft.segments,
        shared=shared.segments,
        scope=scope,
        blocks_scope=scope,
    )


def scope_of(spec: WorkloadSpec, seed: int) -> str:
    """The name of the space that a trace's segments live in: equal for equal (spec, seed), whatever the count."""
    return hashlib.blake2b(f"{seed}\n{_traffic(spec)}".encode(), digest_size=8).hexdigest()


def _traffic(spec: WorkloadSpec) -> str:
    """The spec's text without what changes no session."""
    return spec_text(spec.model_copy(update={"about": "", "sessions": 1, "expect": {}}))
