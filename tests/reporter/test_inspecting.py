"""A trace's statistics, against traces whose numbers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import making
import pytest

from agentx.core import Gap, GapParts, Header, Observed, Output, Session, Thread, Tool, TurnEvent
from agentx.reporter.inspect_text import blocks
from agentx.reporter.inspecting import Values, inspect
from agentx.reporter.table import Facts
from agentx.trace import TraceWriter


def write(path: Path, *sessions: Session, header: Header | None = None) -> Path:
    with TraceWriter(path, header or making.header()) as writer:
        for session in sessions:
            writer.session(session)
    return path


def rich() -> Session:
    """Three turns: one of a subagent, with tools, events, models, gaps and what was observed."""
    session = making.linear(3, threads=(Thread(0), Thread(1, 0, "subagent")), arrival=2.0)
    zero, one, two = session.turns
    tools = (Tool("bash", 1.0), Tool("read"))
    zero = replace(zero, model="a", observed=Observed(0.0, 0.5, 1.0, 25))
    one = replace(one, thread=1, tools=tools, model="b", event=TurnEvent("model_switch"), output=Output(0), reply=None)
    two = replace(two, gap=Gap("human", 3.0, "inferred"), output=Output(700, 300), reply=None)
    return replace(session, turns=(zero, one, two))


def test_a_linear_session_is_counted(tmp_path: Path) -> None:
    """isl 75, 90, 105; of each prompt all but the 10 new tokens can be reused, the reply's 5 too."""
    found = inspect(write(tmp_path / "a.trace", making.linear(id="s"), making.linear(id="t"))).document()
    assert (found["sessions"], found["turns"], found["threads"]["main"]) == (2, 6, 2)
    assert (found["isl"]["n"], found["isl"]["sessions"], found["isl"]["p50"], found["isl"]["max"]) == (6, 2, 90, 105)
    assert found["osl"]["mean"] == 5
    assert found["turns_per_session"]["mean"] == 3
    assert found["longest_context"] == 110
    assert found["prompt_tokens"] == 2 * (75 + 90 + 105)
    # The second session finds tools and system (65), and in both the second and third turn all but 10.
    assert found["possible_reuse"] == pytest.approx((65 + 2 * (80 + 95)) / 540)
    assert found["layers"]["tools"] == {"tokens": 240, "share": pytest.approx(240 / 540), "reused": 200}
    assert found["new_tokens"]["max"] == 75
    assert sum(layer["share"] for layer in found["layers"].values()) == pytest.approx(1)


def test_what_else_a_trace_says(tmp_path: Path) -> None:
    found = inspect(write(tmp_path / "a.trace", rich(), making.linear(id="t", arrival=12.0))).document()
    assert found["threads"] == {"main": 2, "subagent": 1, "side": 0}
    assert found["turns_by_thread"] == {"main": 5, "subagent": 1, "side": 0}
    assert found["models"] == {"a": 1, "b": 1}
    assert found["tools"] == {"bash": 1, "read": 1}
    assert found["events"] == {"model_switch": 1}
    assert (found["gaps"]["tool"]["n"], found["gaps"]["human"]["max"], found["gaps"]["spawn"]) == (3, 3.0, None)
    assert found["gap_provenance"] == {"inferred": 1, "recorded": 3}
    assert found["arrivals"] == {"sessions": 2, "first": 2.0, "last": 12.0, "per_second": 0.1}
    assert found["observed_ttft"]["p50"] == 0.5
    assert found["observed_cached_share"] == pytest.approx(25 / 75)
    assert (found["replies_empty"], found["replies_unknown"], found["longest_context"]) == (1, 1, 1105)


def test_gaps_that_are_taken_apart_are_summed_up(tmp_path: Path) -> None:
    session = making.linear(id="s")
    zero, one, two = session.turns
    gaps = (Gap("tool", 5.0, parts=GapParts(2.0, 0.5)), Gap("human", 30.0, parts=GapParts(None, 29.0)))
    session = replace(session, turns=(zero, replace(one, gap=gaps[0]), replace(two, gap=gaps[1])))
    found = inspect(write(tmp_path / "a.trace", session))
    assert found.document()["gap_parts"] == {"gaps": 2, "tool": 2.0, "human": 29.5, "rest": 3.5}
    said = ("taken apart", "2 of 2 gaps: tools 2.0 s, their user 29.5 s, the rest 3.5 s")
    assert said in next(block for block in blocks(found) if isinstance(block, Facts)).pairs
    assert inspect(write(tmp_path / "b.trace", making.linear(id="s"))).document()["gap_parts"] is None
    session = replace(session, turns=(zero, replace(one, gap=Gap("tool", 5.0, parts=GapParts(2.0))), two))
    found = inspect(write(tmp_path / "c.trace", session))
    assert found.document()["gap_parts"] == {"gaps": 1, "tool": 2.0, "human": None, "rest": 3.0}
    assert any("their user not told" in text for text in map(str, blocks(found)))


def test_what_a_trace_does_not_say_is_null(tmp_path: Path) -> None:
    found = inspect(write(tmp_path / "a.trace", replace(making.linear(1), turns=()))).document()
    unknown = (
        "isl",
        "osl",
        "arrivals",
        "observed_ttft",
        "observed_cached_share",
        "possible_reuse",
        "tear",
        "tokenizer",
    )
    assert {name: found[name] for name in unknown} == dict.fromkeys(unknown)
    assert (found["sessions"], found["turns"], found["layers"]) == (1, 0, {})


def test_a_torn_trace_is_told_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trace", making.linear(id="s"), making.linear(id="t"))
    path.write_bytes(path.read_bytes()[:-20])
    found = inspect(path)
    assert found.tear is not None
    assert (found.sessions, found.incomplete) == (2, 1)


def test_a_spread_knows_its_sessions() -> None:
    values = Values()
    for session, value in ((0, 4.0), (0, 2.0), (3, 9.0)):
        values.add(session, value)
    spread = values.spread()
    assert spread is not None
    assert (spread.n, spread.sessions, spread.minimum, spread.at(50), spread.maximum, spread.mean) == (3, 2, 2, 4, 9, 5)
    assert Values().spread() is None
