"""A play in outline: reuse where all fits and where nothing does, waiting, output inside the window."""

from __future__ import annotations

import itertools

import pytest

from agentx.engine.settings import Cache, EngineSettings, Host, Scheduling
from agentx.replayer.moves import Rules, always_send
from agentx.replayer.rough import capacity_of, play
from tests.making import linear

ISL = [75 + 15 * index for index in range(6)]


def settings(pool: int, **cache: object) -> EngineSettings:
    return EngineSettings(cache=Cache(pool=pool, **cache))  # type: ignore[arg-type]


def played(pool: int, lanes: int, *, rules: Rules | None = None, running: int = 64):
    sessions = (linear(6, id=f"s{number}") for number in range(lanes))
    engine = settings(pool).model_copy(update={"scheduler": Scheduling(max_running=running)})
    return play(
        sessions, rules or Rules(lanes=lanes), always_send, engine, lambda session, turn: max(0, ISL[turn] - 15)
    )


def test_where_all_fits_the_reuse_is_that_of_an_unlimited_cache():
    found = played(10_000, 3)
    assert found.requests == 18
    assert found.prompt == 3 * sum(ISL)
    assert found.cached == found.unlimited == 3 * sum(isl - 15 for isl in ISL)
    assert found.lost == 0
    assert found.output == pytest.approx(3 * 6 * 5)


def test_contexts_that_take_turns_in_a_small_pool_find_nothing():
    found = played(170, 4)  # one context of 150 and hardly more
    assert found.requests == 24
    assert found.reuse is not None
    assert found.reuse < 0.5 * found.unlimited / found.prompt


def test_a_limit_of_running_requests_makes_them_wait_and_loses_none():
    assert played(10_000, 4, running=1).requests == 24


def test_after_the_time_nothing_is_sent_and_what_flies_is_cut():
    sessions = itertools.cycle([linear(6)])
    rules = Rules(lanes=1, seconds=3.0, drain=0.0)
    found = play(sessions, rules, always_send, settings(10_000), lambda session, turn: 0)
    assert found.seconds == 3.0
    assert 1 <= found.requests <= 4


def test_tiers_add_up_under_write_back_and_not_under_write_through():
    assert capacity_of(settings(1000)) == 1000
    assert capacity_of(settings(1000, host=Host(tokens=1500, write="write_through"))) == 1500
    assert capacity_of(settings(1000, host=Host(tokens=500, write="write_through"))) == 1000
    assert capacity_of(settings(1000, host=Host(tokens=500, write="write_back"))) == 1500
