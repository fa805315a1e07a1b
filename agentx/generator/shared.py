"""Content that sessions share: tools, system prompts, pools of contexts and documents, opening messages of groups.

These are segments of the file. Their ids are fixed by the spec alone, so that any session can be made on its own:
tools, system prompt, repository contexts, documents, then tools and system prompt of each subagent type and side call.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from agentx.core import Layer, Segment
from agentx.distributions import Bits, whole
from agentx.errors import BadInput
from agentx.functions import exp, log
from agentx.generator.quantities import Counts
from agentx.generator.spec import WorkloadSpec
from agentx.generator.spec_layers import Pool

TOOLS_ID, SYSTEM_ID, FIRST_POOL_ID = 0, 1, 2
FIRST_GROUP_ID = 1 << 40  # far above the ids of any session's own segments


@dataclass(frozen=True, slots=True)
class Members:
    """A pool's segments by rank, and how popular each is."""

    segments: tuple[Segment, ...]
    popularity: tuple[float, ...]  # cumulative weights by rank

    def choose(self, bits: Bits) -> Segment:
        rank = bisect(self.popularity, bits.uniform() * self.popularity[-1])
        return self.segments[min(rank, len(self.segments) - 1)]


@dataclass(frozen=True, slots=True)
class Shared:
    """The file-scoped segments of a trace. `agents` and `sides` hold the leading ones by type and by name."""

    leading: tuple[Segment, Segment]  # tools, system prompt
    repos: Members | None
    documents: Members | None
    agents: Mapping[str, tuple[Segment, Segment]]
    sides: Mapping[str, Segment]
    segments: dict[int, Segment]
    own_from: int  # the first id of a session's own segments
    groups: dict[int, Segment] = field(default_factory=dict)  # opening messages made so far, at most one


def shared_layers(spec: WorkloadSpec, seed: int) -> Shared:
    """The shared content of a trace. Raises BadInput when it leaves no room for a turn."""
    layers, ids = spec.layers, iter(range(FIRST_POOL_ID, FIRST_GROUP_ID))
    leading = (Segment(TOOLS_ID, "tools", layers.tools), Segment(SYSTEM_ID, "system", layers.system))
    repos = _members(layers.repos, "repo", seed, ids)
    documents = _members(layers.documents, "document", seed, ids)
    types = spec.subagents.types if spec.subagents else {}
    agents = {
        name: (Segment(next(ids), "tools", kind.tools), Segment(next(ids), "system", kind.system))
        for name, kind in types.items()
    }
    sides = {name: Segment(next(ids), "system", side.system) for name, side in spec.side_calls.items()}
    pools = [segment for pool in (repos, documents) if pool for segment in pool.segments]
    everything = [*leading, *pools, *(segment for pair in agents.values() for segment in pair), *sides.values()]
    _leave_room(spec, "repository context", "layers.repos", repos)
    _leave_room(spec, "document", "layers.documents", documents)
    segments = {segment.id: segment for segment in everything}
    return Shared(leading, repos, documents, agents, sides, segments, next(ids))


def _members(pool: Pool | None, name: str, seed: int, ids: Iterator[int]) -> Members | None:
    if pool is None:
        return None
    made = [
        Segment(next(ids), "shared", max(1, whole(pool.tokens.draw(Bits(seed, name, number)))))
        for number in range(pool.count)
    ]
    weights = (exp(-pool.zipf * log(rank)) for rank in range(1, pool.count + 1))
    return Members(tuple(made), tuple(accumulate(weights)))


def _leave_room(spec: WorkloadSpec, what: str, key: str, pool: Members | None) -> None:
    leading = spec.layers.tools + spec.layers.system
    for number, segment in enumerate(pool.segments if pool else ()):
        if leading + segment.tokens + 2 > spec.context_limit:
            message = f"{key}: tools, system and {what} {number} are {leading + segment.tokens} tokens together"
            hint = f"give {key}.tokens a max"
            raise BadInput(f"{message}, context_limit is {spec.context_limit}: no turn fits", hint=hint)


def opening_of_group(shared: Shared, seed: int, group: int, tokens: Counts, room: int) -> Segment:
    """The opening message of a group of sessions, the same object for all that are made one after another."""
    layer: Layer = "user"
    if group not in shared.groups:
        count = max(1, whole(tokens.draw(Bits(seed, "group", group))))
        shared.groups.clear()
        shared.groups[group] = Segment(FIRST_GROUP_ID + group, layer, min(count, room))
    return shared.groups[group]
