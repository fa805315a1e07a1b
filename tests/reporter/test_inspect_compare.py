"""Two traces side by side, with distances."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear

from agentx.core import Session
from agentx.reporter.inspect_compare import SCHEMA, blocks, document
from agentx.reporter.inspecting import Inspection, inspect
from agentx.reporter.table import as_text
from agentx.trace import TraceWriter


def inspected(path: Path, *made: Session) -> Inspection:
    with TraceWriter(path, header(path.stem)) as writer:
        for each in made:
            writer.session(each)
    return inspect(path)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Inspection, Inspection]:
    short = inspected(tmp_path / "short.trace", linear(3), linear(3, id="b"))
    return short, inspected(tmp_path / "long.trace", linear(3, fresh=40), linear(6, id="b", fresh=40))


def test_the_same_trace_is_at_no_distance(two: tuple[Inspection, Inspection]) -> None:
    found = document(two[0], two[0])
    assert found["schema"] == SCHEMA
    assert {each["ks"] for each in found["distances"].values()} == {0.0}
    assert {each["p50_ratio"] for each in found["distances"].values()} == {1.0}
    assert found["possible_reuse_difference"] == 0.0


def test_other_lengths_are_at_a_distance(two: tuple[Inspection, Inspection]) -> None:
    found = document(*two)
    isl = found["distances"]["isl"]
    assert (isl["p50_first"], isl["p50_second"]) == (90.0, 195.0)  # 65 + 10 + 15 a turn; 65 + 40 + 45 a turn
    assert isl["p50_ratio"] == pytest.approx(195 / 90)
    assert isl["ks"] == pytest.approx(7 / 9)  # seven of nine are longer than the longest of the other trace
    assert found["distances"]["osl"]["ks"] == 0.0
    assert found["distances"]["turns_per_session"]["ks"] == 0.5  # one of two sessions is longer
    first, second = (found[side]["possible_reuse"] for side in ("first", "second"))
    assert found["possible_reuse_difference"] == pytest.approx(second - first)


def test_what_one_of_them_has_not_is_unknown(two: tuple[Inspection, Inspection], tmp_path: Path) -> None:
    alone = inspected(tmp_path / "alone.trace", linear(1))  # it waits for nothing
    assert document(alone, two[0])["distances"]["gap_tool"]["ks"] is None
    text = as_text(blocks(alone, two[0]))
    assert "unknown" in next(line for line in text.splitlines() if "gap_tool" in line)
    assert text.isascii()
    assert all(len(line) <= 100 for line in text.splitlines())
