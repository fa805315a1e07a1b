"""The summary of a trace: what a colleague reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import making

from agentx.core import Observed, Output, Session
from agentx.reporter.inspect_text import blocks
from agentx.reporter.inspecting import inspect
from agentx.reporter.table import as_text
from agentx.trace import TraceWriter


def text(path: Path, *sessions: Session, **provenance: object) -> str:
    with TraceWriter(path, making.header("agents", provenance=provenance)) as writer:
        for session in sessions:
            writer.session(session)
    return as_text(blocks(inspect(path)))


def lines(told: str) -> dict[str, str]:
    """The facts of a summary: the first word of a line, and the rest of it; the first line that begins so."""
    found: dict[str, str] = {}
    for pair in (line.strip().split(None, 1) for line in told.splitlines() if line.strip()):
        if len(pair) == 2:
            found.setdefault(pair[0], pair[1].strip())
    return found


def test_the_summary_names_the_trace_and_its_numbers(tmp_path: Path) -> None:
    told = text(tmp_path / "a.trace", making.linear(id="s"), making.linear(id="t"), importer="weka", cut=[{"turns": 3}])
    assert told.startswith("agentx inspect: agents\n")
    facts = lines(told)
    assert facts["made"].split(None, 1)[1] == "importer weka, cut 1x"
    assert facts["sessions"] == "2"
    assert facts["turns"].startswith("6; the longest context is 110 tokens")
    assert facts["arrivals"] == "none: a session begins when a lane is free"
    assert facts["models"] == "unknown"
    assert facts["reuse"] == "76.9% of 540 prompt tokens are possible"
    assert facts["isl"].split()[:9] == ["6", "75", "79", "90", "101", "105", "105", "90", "105"]
    assert facts["isl"].split(None, 9)[9] == "█    █   █"
    assert facts["tool"].split()[:9] == ["4", *["1.00"] * 8]
    assert facts["tools"].split() == ["240", "44.4%", "200", "83.3%", "40"]
    assert facts["all"].split() == ["540", "100.0%", "415", "76.9%", "125"]
    assert all(len(line) <= 100 for line in told.splitlines())


def test_what_was_recorded_stands_beside_what_is_possible(tmp_path: Path) -> None:
    session = making.linear(1, arrival=1.0)
    session = replace(
        session, turns=(replace(session.turns[0], observed=Observed(ttft=0.25, cached=15), output=Output(0)),)
    )
    facts = lines(text(tmp_path / "a.trace", session, replace(session, id="t", arrival=5.0)))
    assert facts["arrivals"] == "2 sessions over 4.0 s, 0.25 a second"
    assert facts["reuse"].endswith("; 20.0% of 150 were recorded as cached")
    assert facts["TTFT"].split()[:9] == ["2", *["0.25"] * 8]
    assert facts["replies"] == "2 of 0 tokens"


def test_an_empty_trace_has_a_summary(tmp_path: Path) -> None:
    facts = lines(text(tmp_path / "a.trace"))
    assert facts["reuse"] == "unknown"
    assert "n/a" in facts["isl"]
    assert facts["no"] == "turn waits for another one"


def test_many_names_are_cut_short(tmp_path: Path) -> None:
    session = making.linear(9)
    session = replace(session, turns=tuple(replace(turn, model=f"m{turn.index}") for turn in session.turns))
    assert lines(text(tmp_path / "a.trace", session))["models"].endswith("m5 1, and 3 more")


def test_torn_and_joined_files_say_so(tmp_path: Path) -> None:
    text(tmp_path / "a.trace", making.linear(id="s"), making.linear(id="t"))
    data = (tmp_path / "a.trace").read_bytes()
    (tmp_path / "b.trace").write_bytes(data + data[:-20])
    facts = lines(as_text(blocks(inspect(tmp_path / "b.trace"))))
    assert facts["content"].endswith("the first of 2 headers")
    assert facts["sessions"] == "4, 1 of them incomplete"
    assert facts["tear"].startswith("torn at byte")
