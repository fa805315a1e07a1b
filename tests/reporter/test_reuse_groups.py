"""Reuse by groups: each way of grouping sums to the whole, and is what a slow count of single turns gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from making import header, linear

from agentx.core import Gap
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import Report, report
from agentx.reporter.reuse_groups import groups_document
from agentx.trace import TraceWriter


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Three sessions, the middle one's gaps human, in a pool that is too small."""
    folder = tmp_path_factory.mktemp("groups")
    with TraceWriter(folder / "a.trace", header("agents")) as file:
        for name, kind in (("a", "tool"), ("b", "human"), ("c", "tool")):
            session = linear(8, id=name, fresh=700)
            turns = tuple(replace(turn, gap=Gap(kind, 0.1)) for turn in session.turns)
            file.session(replace(session, turns=turns))
    sets = ["load.sessions=3", "target.cache.pool=9600", "target.cache.page=16"]
    return report(simulate(folder / "a.trace", out=folder / "run", sets=sets))


@pytest.mark.parametrize("by", ["layer", "turn_kind", "thread_kind", "context"])
def test_each_way_sums_to_the_whole(found: Report, by: str) -> None:
    groups = [group for group in found.grouped.groups if group.by == by]
    ideal, requests = found.metrics.reuse.ideal, found.metrics.reuse.by_request
    assert ideal is not None
    assert sum(group.prompt for group in groups) == requests.prompt
    assert sum(group.observed or 0 for group in groups) == requests.cached
    assert sum(group.ideal for group in groups) == ideal.same_cached
    assert sum(group.possible for group in groups) == ideal.possible_cached
    if by != "layer":
        assert sum(group.requests or 0 for group in groups) == requests.told


def test_turn_kinds_are_counted_one_by_one(found: Report) -> None:
    prompts: Counter[str] = Counter()
    for attempt in found.losses.sent:
        kind = "first" if attempt.turn == 0 else "human" if attempt.session == "b" else "tool"
        prompts[kind] += attempt.prompt_tokens or 0
    groups = {group.name: group.prompt for group in found.grouped.groups if group.by == "turn_kind"}
    assert groups == dict(prompts)


def test_what_was_eligible_is_what_a_thread_had_before(found: Report) -> None:
    """Linear sessions: a prompt begins with the one before it and its reply, whose markers are the template's."""
    eligible = found.grouped.eligible
    assert eligible is not None
    by_turn = {(one.session, one.turn): one for one in found.losses.sent}
    tokens = cached = 0
    for (session, turn), attempt in by_turn.items():
        if turn:
            before = by_turn[session, turn - 1]
            common = (before.prompt_tokens or 0) + before.osl  # its last marker asks for the reply, whose own it is now
            tokens += common
            cached += min(common, attempt.cached.tokens or 0 if attempt.cached else 0)
    assert (eligible.requests, eligible.tokens, eligible.cached) == (21, tokens, cached)


def test_possible_less_ideal_sums_and_has_its_causes(found: Report) -> None:
    ideal = found.metrics.reuse.ideal
    assert ideal is not None
    assert ideal.possible_less_ideal.total == ideal.possible_cached - ideal.cached
    assert ideal.possible_less_ideal.salt == 0  # every session once, with the run's salt
    assert ideal.possible_less_ideal.page > 0
    assert ideal.possible_less_ideal.replies > 0
    assert ideal.possible_less_ideal.template < 0


SALTS = [
    ("session", [], True),  # what the sessions share is kept apart
    ("run", ["measure={sessions: 6}"], True),  # a session that is played again has other words
    ("run", [], False),
]


@pytest.mark.parametrize(("salt", "sets", "parts"), SALTS)
def test_what_the_salt_keeps_apart(tmp_path: Path, salt: str, sets: list[str], parts: bool) -> None:
    with TraceWriter(tmp_path / "a.trace", header()) as file:
        for name in "abc":
            file.session(linear(3, id=name))
    found = report(simulate(tmp_path / "a.trace", out=tmp_path / "run", sets=[f"salt={salt}", *sets]))
    ideal = found.metrics.reuse.ideal
    assert ideal is not None
    assert (ideal.possible_less_ideal.salt > 0) is parts
    assert ideal.possible_less_ideal.total == ideal.possible_cached - ideal.cached


def test_nothing_without_an_ideal(run, attempt) -> None:
    found = report(run([attempt(cached=10)]))
    assert found.grouped.groups == ()
    assert groups_document(found.grouped) == {
        "layer": [], "turn_kind": [], "thread_kind": [], "context": [], "eligible": None,
    }  # fmt: skip
    assert "by groups" not in found.text()
