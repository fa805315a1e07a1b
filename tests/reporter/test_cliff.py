"""Where the pool falls off: a pool that holds so many contexts, a pool that holds all, a load that is no sessions."""

from __future__ import annotations

import json

import pytest

from agentx.errors import BadInput
from agentx.reporter.cliff import find_cliff
from agentx.trace import TraceWriter
from tests.making import header, linear

PLAN = "agentx: replay/1\nload: {sessions: 1}\nmeasure: 60s\ndrain: 10s\nsalt: session\n"


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for number in range(6):
            writer.session(linear(30, id=f"s{number}", fresh=40))  # contexts of some 1,400 tokens at their ends
    (tmp_path / "p.yaml").write_text(PLAN)
    return tmp_path / "t.trace"


def find(trace, pool: int, **more: object):
    sets = [f"target.cache.pool={pool}"]
    return find_cliff(trace, plan=trace.parent / "p.yaml", target="laptop", sets=sets, draws=4, **more)  # type: ignore[arg-type]


def test_a_pool_falls_off_where_it_no_longer_holds_the_contexts(trace):
    found = find(trace, 3500)
    low, middle, high = found.falls
    assert low is not None and middle is not None and high is not None  # noqa: PT018
    assert 3 <= low <= middle <= high <= 6
    by_sessions = {row.sessions: row for row in found.rows}
    assert by_sessions[1].fallen == 0
    assert by_sessions[high].fallen >= 0.9
    assert by_sessions[high].reuse.median < by_sessions[1].reuse.median
    assert found.pool_for_one_more is not None
    assert 3500 < found.pool_for_one_more <= 4 * 3500
    again = find(trace, found.pool_for_one_more)
    assert (again.falls[1] or 99) > middle
    assert found.fewer is not None
    assert (found.fewer.sessions, found.fewer.host) == (middle, 7000)


def test_a_pool_that_holds_all_has_no_cliff(trace):
    found = find(trace, 2_000_000)
    assert found.falls == (None, None, None)
    assert found.fewer is None
    assert "does not fall off up to 64 sessions" in found.text()
    assert "not asked" in found.text()


def test_the_document_is_plain(trace):
    document = json.loads(json.dumps(find(trace, 3500).document()))
    assert document["schema"] == "agentx/cliff/1"
    assert document["draws"] == 4
    assert len(document["rows"]) >= 3


def test_a_cliff_is_over_sessions_at_a_time(trace, tmp_path):
    (tmp_path / "rate.yaml").write_text("agentx: replay/1\nload: {rate: {kind: poisson, per_second: 1}}\n")
    with pytest.raises(BadInput, match="load is not sessions at a time"):
        find_cliff(trace, plan=tmp_path / "rate.yaml", target="laptop")
