"""Workload spec to sessions: session i is a pure function of (spec, seed, i).

Any slice of the sessions may be made in any process; laid end to end they are the same. Content that sessions share
has segments of the file, numbered first (`shared.py`); a session's own follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from agentx.core import Session
from agentx.distributions import milliseconds
from agentx.generator.arrivals import arrival_times
from agentx.generator.conversation import conversation
from agentx.generator.line import Draft
from agentx.generator.shared import Shared, opening_of_group, shared_layers
from agentx.generator.spec import WorkloadSpec, spec_text


def sessions(spec: WorkloadSpec, seed: int, count: int, *, first: int = 0) -> Iterator[Session]:
    """Sessions `first ... first + count - 1`. Raises BadInput when the shared layers leave no room."""
    shared, scope = shared_layers(spec, seed), scope_of(spec, seed)
    times = islice(arrival_times(spec.arrivals, seed), first, None)
    return (session(spec, seed, index, shared, scope, next(times)) for index in range(first, first + count))


def session(
    spec: WorkloadSpec, seed: int, index: int, shared: Shared, scope: str, arrival: float | None = None
) -> Session:
    """Session `index` of the trace that (spec, seed) stands for."""
    segments, opening = shared.segments, None
    if spec.groups:
        room = spec.context_limit - sum(segment.tokens for segment in shared.leading) - 1
        opening = opening_of_group(shared, seed, index // spec.groups.size, spec.tokens.first_message, room)
        segments = {**segments, opening.id: opening}
    draft = Draft(seed, index, shared.own_from, segments)
    conversation(draft, spec, shared, opening)
    return Session(
        id=f"s{index}",
        turns=tuple(draft.turns),
        threads=tuple(draft.threads),
        segments=draft.segments,
        shared=segments,
        arrival=None if arrival is None else milliseconds(arrival),
        scope=scope,
        blocks_scope=scope,
    )


def scope_of(spec: WorkloadSpec, seed: int) -> str:
    """The name of the space that a trace's segments live in: equal for equal (spec, seed), whatever the count."""
    return hashlib.blake2b(f"{seed}\n{_traffic(spec)}".encode(), digest_size=8).hexdigest()


def _traffic(spec: WorkloadSpec) -> str:
    """The spec's text without what changes no session."""
    return spec_text(spec.model_copy(update={"about": "", "sessions": 1, "expect": {}}))
