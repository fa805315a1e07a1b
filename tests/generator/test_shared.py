"""Content of the file: ids fixed by the spec, popularity, groups that open alike."""

from __future__ import annotations

import pytest
from specs import EVERYTHING, FIXED, made

from agentx import reuse
from agentx.core import Segment
from agentx.generator.sessions import sessions
from agentx.generator.shared import FIRST_GROUP_ID, shared_layers


def test_every_id_is_taken_once_and_sessions_begin_behind() -> None:
    shared = shared_layers(made(EVERYTHING), 0)
    # tools, system, 3 contexts, 5 documents, 2 segments for each of 2 types, 3 side calls
    assert sorted(shared.segments) == list(range(2 + 3 + 5 + 4 + 3))
    assert shared.own_from == 17
    assert shared.agents["Explore"] == (Segment(10, "tools", 60), Segment(11, "system", 20))


def test_a_group_opens_alike_and_no_other_does() -> None:
    spec = made(FIXED, "groups={size: 3}", "tokens.first_message={uniform: {low: 50, high: 500}}")
    openings = [session.pieces(0)[-1] for session in sessions(spec, 0, 7)]
    assert [piece.segment - FIRST_GROUP_ID for piece in openings] == [0, 0, 0, 1, 1, 1, 2]
    assert len(set(openings)) == 3
    assert openings[4] == next(sessions(spec, 0, 1, first=4)).pieces(0)[-1]


def test_a_groups_opening_is_reused_within_the_group() -> None:
    few = reuse.possible(sessions(made(FIXED, "turns={user: 1, loop: 1}", "groups={size: 1}"), 0, 40)).share
    many = reuse.possible(sessions(made(FIXED, "turns={user: 1, loop: 1}", "groups={size: 8}"), 0, 40)).share
    # Of prompts of 230 tokens the first 150 are shared by all; with groups of 8 so are 79 of the rest in 7 of 8.
    assert few == pytest.approx(150 / 230, abs=0.03)
    assert many == pytest.approx((150 + 79 * 7 / 8) / 230, abs=0.03)


def test_an_opening_that_does_not_fit_is_cut() -> None:
    spec = made(FIXED, "context_limit=1000", "groups={size: 2}", "tokens.first_message=99999")
    assert [session.turns[0].isl for session in sessions(spec, 0, 2)] == [999, 999]


def test_documents_follow_their_popularity() -> None:
    spec = made(FIXED, "layers.documents={count: 3, tokens: 9, zipf: 1}", "turns={user: 1, loop: 1}")
    chosen = [session.pieces(0)[2].segment - 2 for session in sessions(spec, 0, 1200)]
    assert [chosen.count(rank) / 1200 for rank in range(3)] == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.04)
