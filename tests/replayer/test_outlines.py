"""Many plays of one plan: draws begin elsewhere, and the pool can be another."""

from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.replayer.order import order_of
from agentx.replayer.outlines import outlines
from agentx.trace import TraceWriter
from tests.making import header, linear

PLAN = "agentx: replay/1\nload: {sessions: 1}\nmeasure: 60s\ndrain: 10s\ngaps: {tree_idle_cap: 5s}\nsalt: session\n"


@pytest.fixture
def make(tmp_path):
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for number in range(4):
            writer.session(linear(8, id=f"s{number}", fresh=100 + 10 * number))
    (tmp_path / "p.yaml").write_text(PLAN)

    def order(target: str = "laptop"):
        plan = str(tmp_path / "p.yaml")
        return order_of(tmp_path / "t.trace", plan, target, (), folder=tmp_path, scratch=tmp_path, salt="")

    return order


def test_draws_differ_and_are_the_same_again(make):
    plays = outlines(make(), 4)
    found = [each.prompt for each in plays.at(1)]
    assert len(set(found)) > 1
    assert [each.prompt for each in outlines(make(), 4).at(1)] == found


def test_with_a_smaller_pool_less_is_reused(make):
    plays = outlines(make(), 2)
    large, small = plays.at(4), plays.at(4, pool=2000)
    assert all(each.lost == 0 for each in large)
    assert all((each.lost or 0) > 0.1 for each in small)


def test_an_address_has_no_pool_to_model(make):
    with pytest.raises(BadInput, match="only an engine has a model of its pool"):
        outlines(make("http://127.0.0.1:9"), 2)
