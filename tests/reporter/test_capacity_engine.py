"""The engine's cache over a trace, beside the page-LRU curve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from making import header, linear

from agentx.core import Output, Session
from agentx.reporter.capacity_engine import capacities, engine_reuse
from agentx.reporter.inspecting import inspect
from agentx.trace import TraceWriter


def written(path: Path, *made: Session) -> Path:
    with TraceWriter(path, header()) as writer:
        for each in made:
            writer.session(each)
    return path


@pytest.mark.parametrize("page", [1, 8])
def test_where_all_fits_it_is_what_is_possible(page: int, tmp_path: Path) -> None:
    trace = written(tmp_path / "a.trace", *(linear(4, id=f"s{n}") for n in range(5)))
    curve = inspect(trace, at_once=3, page=page).curve
    assert curve is not None
    (reused,) = engine_reuse(trace, [curve.held + 64], page, 3)
    assert reused == curve.reused[-1]


def test_below_that_it_gives_less_and_never_more_than_page_lru(tmp_path: Path) -> None:
    trace = written(tmp_path / "a.trace", *(linear(6, id=f"s{n}", fresh=40) for n in range(8)))
    curve = inspect(trace, at_once=4).curve
    assert curve is not None
    sizes = capacities(curve)
    reused = engine_reuse(trace, sizes, at_once=4)
    assert len(sizes) == 8
    assert sizes[0] >= curve.longest
    assert reused[0] < reused[-1] == curve.reused[-1]
    for size, got in zip(sizes, reused, strict=True):
        assert got <= curve.share(size) * curve.tokens * 1.02, size  # type: ignore[operator]  # the curve's grid is 1.1 %


def test_what_does_not_fit_is_not_served(tmp_path: Path) -> None:
    assert engine_reuse(written(tmp_path / "a.trace", linear(4)), [50]) == (0,)


def test_tokens_without_identity_take_room_and_are_never_found(tmp_path: Path) -> None:
    made = linear(2)
    turns = tuple(replace(turn, isl=turn.isl + 100, output=Output(5)) for turn in made.turns)
    trace = written(tmp_path / "a.trace", replace(made, turns=turns))
    curve = inspect(trace).curve
    assert curve is not None
    assert engine_reuse(trace, [1000]) == (80,) == (curve.reused[-1],)
    assert curve.longest == 90 + 100 + 5
