"""What sessions share at the front, and how big the pool is that it comes from."""

from __future__ import annotations

import pytest
from making import linear
from specs import FIXED, made

from agentx.core import Session
from agentx.distributions import Bits
from agentx.generator.fit_layers import MAX_POOL, Fronts, Shared, pool
from agentx.generator.fit_parts import layers
from agentx.generator.fit_seen import Seen
from agentx.generator.sessions import sessions


def shared(*given: Session) -> Shared:
    fronts = Fronts()
    for session in given:
        fronts.add(session, session.pieces(0))
    return fronts.shared()


def test_tools_and_system_are_what_all_sessions_have() -> None:
    found = shared(*(linear(1, id=f"s{n}") for n in range(3)))
    assert (found.tools, found.system, found.contexts) == (40, 25, [None, None, None])
    assert found.known


def test_one_session_cannot_tell() -> None:
    found = shared(linear(1))
    assert not found.known
    assert (found.tools, found.system) == (0, 0)
    assert found.contexts[0] is not None
    assert found.contexts[0][1] == 65


def test_contexts_of_a_pool_are_told_apart() -> None:
    spec = made(FIXED, "layers.repos={count: 3, tokens: {uniform: {low: 200, high: 900}}}")
    found = shared(*sessions(spec, 0, 30))
    assert (found.tools, found.system) == (100, 50)
    assert len({context for context in found.contexts if context}) == 3


def test_documents_are_told_from_contexts_by_later_messages() -> None:
    spec = made(FIXED, "layers.repos={count: 2, tokens: 300}", "layers.documents={count: 4, tokens: 40}")
    fronts = Fronts()
    for session in sessions(spec, 0, 20):
        fronts.add(session, session.pieces(0))
        fronts.later += [[document] for document in fronts.fronts[-1].shared[1:]]
    found = fronts.shared()
    assert {tokens for documents in found.documents for _, tokens in documents} == {40}
    assert {context[1] for context in found.contexts if context} == {300}


@pytest.mark.parametrize(("count", "zipf"), [(12, 0.6), (100, 0.0), (200, 1.0)])
def test_the_size_of_a_pool_is_found_from_its_picks(count: int, zipf: float) -> None:
    bits, weights = Bits(0, "pool"), [rank**-zipf for rank in range(1, count + 1)]
    from agentx.distributions import choose

    size, exponent = pool([choose(weights, bits) for _ in range(600)])
    assert size == pytest.approx(count, rel=0.35)
    assert exponent == pytest.approx(zipf, abs=0.25)


def test_picks_that_never_repeat_come_from_many() -> None:
    assert pool(list(range(50))) == (MAX_POOL, 0.0)
    assert pool(["a"] * 50) == (1, 0.0)


def test_a_share_of_the_sessions_has_a_context_and_is_found_again() -> None:
    spec = made(FIXED, "layers.repos={count: 3, tokens: 300, share: 0.2}")
    given = list(sessions(spec, 0, 200))
    found = shared(*given)
    having = sum(context is not None for context in found.contexts)
    assert 20 <= having <= 60
    seen = Seen()
    for _ in seen.watch(iter(given)):
        pass
    assert layers(seen, found)["repos"]["share"] == having / 200
