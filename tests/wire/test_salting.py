"""The words of a play: which layers get other ones, and when."""

from __future__ import annotations

import pytest

from agentx.core import LAYERS, LEADING_LAYERS
from agentx.wire.salting import salting


@pytest.mark.parametrize("policy", ["run", "session", "none"])
def test_the_same_play_has_the_same_salts(policy):
    first, second = (salting(policy, "abc", "s1", 2) for _ in range(2))
    assert [first(layer) for layer in LAYERS] == [second(layer) for layer in LAYERS]


def test_a_run_salt_is_the_same_for_all_sessions_and_differs_between_runs():
    one, two = salting("run", "abc", "s1", 0), salting("run", "abc", "s2", 0)
    other = salting("run", "xyz", "s1", 0)
    for layer in LAYERS:
        assert one(layer) == two(layer) != other(layer)


def test_without_a_salt_the_run_does_not_matter():
    assert all(salting("none", "abc", "s1", 0)(layer) == salting("none", "xyz", "s1", 0)(layer) for layer in LAYERS)


@pytest.mark.parametrize("policy", ["run", "none"])
def test_playing_again_changes_all_but_the_layers_that_sessions_share(policy):
    first, again, third = (salting(policy, "abc", "s1", play) for play in range(3))
    for layer in LAYERS:
        assert (first(layer) == again(layer)) is (layer in LEADING_LAYERS)
        assert (again(layer) == third(layer)) is (layer in LEADING_LAYERS)


def test_a_session_salt_shares_nothing():
    salts = [salting("session", "abc", session, play) for session in ("s1", "s2") for play in (0, 1)]
    for layer in LAYERS:
        assert len({salt(layer) for salt in salts}) == 4
