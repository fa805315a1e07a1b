"""When a subagent's requests started, by the evidence of two dialects."""

from __future__ import annotations

from array import array

import pytest

from agentx.recorder.imports.books import Books
from agentx.recorder.imports.weka_rows import Agent, Request, WekaSession
from agentx.recorder.imports.weka_times import Dialect, locate, strands

IDS = array("Q", [1])


def request(t: float, took: float | None = 1.0, **more: object) -> Request:
    return Request(t, 4, 2, IDS, api_time=took, **more)  # type: ignore[arg-type]


def agent(t: float, duration: float | None, *starts: float) -> Agent:
    return Agent(t, 1, tuple(request(start) for start in starts), duration=duration)


BEFORE = request(0.0, 18.78)


@pytest.mark.parametrize(
    ("entry", "start", "offset", "end", "names"),
    [
        # kv-cache-tester: three of one fan-out, each t its end, right after the turn that ended at 18.78.
        (agent(79.224, 59.75, 0.0, 6.0), 19.474, 19.474, 79.224, ("end", "relative")),
        (agent(183.906, 164.445, 0.0, 13.0), 19.461, 19.461, 183.906, ("end", "relative")),
        # SemiAnalysis: t is the start, the requests are on the session's clock.
        (agent(19.474, 59.75, 19.474, 25.0), 19.474, 0.0, 79.224, ("start", "absolute")),
        (agent(19.474, 59.75, 19.9, 25.0), 19.474, 0.0, 79.224, ("start", "absolute")),
        # t is the end, yet the requests are on the session's clock.
        (agent(79.224, 59.75, 19.5, 25.0), 19.474, 0.0, 79.224, ("end", "absolute")),
        # No duration: the requests' own span stands for it.
        (agent(40.0, None, 0.0, 9.0), 30.0, 30.0, 40.0, ("end", "relative")),
        # t - duration would lie inside the turn that spawned it: t is the start.
        (agent(20.0, 10.0, 0.0, 9.0), 20.0, 20.0, 30.0, ("start", "relative")),
        # ... or before the session.
        (agent(20.0, 50.0, 0.0, 9.0), 20.0, 20.0, 70.0, ("start", "relative")),
        # Rounding of whole seconds does not count as evidence against it.
        (agent(28.0, 10.0, 0.0, 9.0), 18.0, 18.0, 28.0, ("end", "relative")),
    ],
)
def test_a_subagents_times_are_settled_by_evidence(
    entry: Agent, start: float, offset: float, end: float, names: tuple[str, str]
) -> None:
    found = locate(entry, BEFORE, slack=1.0)
    assert found[:3] == pytest.approx((start, offset, end))
    assert found[3] == names


def test_the_dialect_found_is_counted() -> None:
    session = WekaSession("s", 4, 0, 0, (BEFORE,), (agent(79.0, 59.0, 0.0), agent(90.0, 70.0, 0.0)))
    dialect = Dialect()
    found = strands(session, Books(), dialect)
    assert [strand.calls[0].start for strand in found] == pytest.approx([0.0, 20.0, 20.0])
    assert dialect.counts == {"t is a subagent's end, its requests' t are relative": 2}


def test_requests_are_sorted_and_exact_duplicates_dropped() -> None:
    double = request(1.0, ttft=0.5)
    rows = (request(3.0), request(1.0), double, request(2.0), Request(2.0, 4, 2, array("Q", [2])))
    books = Books()
    (strand,) = strands(WekaSession("s", 4, 0, 0, rows, ()), books, Dialect())
    assert [call.start for call in strand.calls] == [1.0, 2.0, 2.0, 3.0]
    assert strand.calls[0].request is double  # the streamed one of the two tells more
    assert books.rows.dropped == {"exact duplicate (same t, in, out and hash ids)": 1}
    assert books.notes["request out of order in time: sorted"] == 1


def test_a_subagent_without_requests_is_counted() -> None:
    books = Books()
    assert len(strands(WekaSession("s", 4, 0, 0, (BEFORE,), (agent(9.0, 1.0),)), books, Dialect())) == 1
    assert books.notes["subagent without requests"] == 1


@pytest.mark.parametrize(
    ("tools", "system", "lead"),
    [
        (0, 0, ()),
        (5, 0, ((5, "tools"), (5, "system"))),
        (0, 4, ((4, "system"),)),
        (5, 4, ((5, "tools"), (9, "system"))),
    ],
)
def test_the_leading_layers(tools: int, system: int, lead: tuple) -> None:
    (strand,) = strands(WekaSession("s", 4, tools, system, (BEFORE,), ()), Books(), Dialect())
    assert strand.lead == lead
