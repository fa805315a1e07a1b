"""The capacity curve as text and as a document."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear

from agentx.reporter.capacity_text import capacity
from agentx.reporter.inspecting import Inspection, inspect
from agentx.reporter.sparks import ASCII
from agentx.reporter.table import as_text
from agentx.trace import TraceWriter


@pytest.fixture
def found(tmp_path: Path) -> Inspection:
    with TraceWriter(tmp_path / "a.trace", header()) as writer:
        for number in range(3):
            writer.session(linear(3, id=f"s{number}"))
    return inspect(tmp_path / "a.trace", at_once=2)


def test_sizes_stand_beside_what_they_reach(found: Inspection) -> None:
    """810 prompt tokens, of which 175 + 2 x 240 are possible; a second session at once makes the first one older."""
    found.reach, found.kv_bytes = (0.5, 0.99), 8_000_000
    told = as_text(capacity(found, ASCII))
    assert told.startswith("Reuse by the size of a cache: page-LRU, an upper curve; sessions 2 at once\n")
    rows = [line.split() for line in told.splitlines() if "%" in line]
    assert rows[4][:5] == ["80.1%", "99%", "of", "the", "possible"]
    tokens = int(rows[5][3].replace(",", ""))
    assert rows[5][:3] == ["50.0%", "asked", "for"]
    assert rows[5][4:] == [f"{tokens * 8 / 1000:,.1f}", "GB"]
    assert rows[6] == ["99.0%", "asked", "for", "more", "than", "possible", "n/a"]
    assert told.isascii()


def test_the_engines_points_are_told_where_they_are_known(found: Inspection) -> None:
    found.engine = ((100, 81), (200, 405))
    assert "by its size: 100: 10.0%, 200: 50.0%" in as_text(capacity(found, ASCII))


def test_the_document_has_the_same(found: Inspection) -> None:
    found.engine, found.reach, found.kv_bytes = ((100, 81),), (0.5, 0.99), 10
    told = found.document()["capacity"]
    assert (told["order"], told["at_once"], told["page"]) == ("at_once", 2, 1)
    assert told["possible_reuse"] == found.reuse.share
    assert told["page_lru"][-1]["reuse"] == told["possible_reuse"]
    assert told["engine"] == [{"tokens": 100, "reuse": 0.1}]
    assert told["needed_bytes"]["0.5"] == 10 * told["needed"]["0.5"]
    assert told["needed"]["0.99"] is told["needed_bytes"]["0.99"] is None  # more than possible
    assert told["distinct_tokens"] >= told["needed"]["0.99_of_possible"] * 0.98


def test_no_prompts_no_curve(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "a.trace", header()):
        pass
    found = inspect(tmp_path / "a.trace")
    assert capacity(found, ASCII) == []
    assert found.document()["capacity"] is None
