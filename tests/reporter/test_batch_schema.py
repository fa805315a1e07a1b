"""The schemas of sweeps, repeats, searches and cliffs, held against such with and without repeats and objectives."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear
from schema_faults import faults, unseen

from agentx.reporter.batch_schema import cliff_schema, find_schema, repeats_schema, sweep_schema
from agentx.reporter.cliff import find_cliff
from agentx.reporter.repeating import repeat
from agentx.reporter.searching import find
from agentx.reporter.sweeping import sweep
from agentx.trace import TraceWriter

SLO = ["slo.turn.ttft=1ms", "slo.run.ttft_p95=1ms"]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("batch") / "t.trace"
    with TraceWriter(path, header()) as writer:
        for number in range(4):
            writer.session(linear(4, id=f"s{number}", fresh=60))
    return path


@pytest.mark.parametrize("sets", [[], [*SLO, "repeats=2"]])
def test_a_sweep(trace: Path, tmp_path: Path, sets: list[str]) -> None:
    knobs = ["target.cache.pool=600,4000", "load.sessions=2"]
    found = sweep(trace, knobs=knobs, out=tmp_path / "s", sets=["gaps.scale=0", *sets], workers=1).document()
    assert (found["points"][0]["runs"] is None) is ("repeats=2" not in sets)
    assert faults(found, sweep_schema()) == []
    assert unseen(found, sweep_schema()) == []


@pytest.mark.parametrize("sets", [[], SLO, SLO[1:]])
def test_repeats(trace: Path, tmp_path: Path, sets: list[str]) -> None:
    found = repeat(trace, out=tmp_path / "r", sets=["gaps.scale=0", "repeats=2", *sets]).document()
    assert (found["runs"][0]["slo"] is None) is (not sets)
    assert faults(found, repeats_schema()) == []
    assert unseen(found, repeats_schema()) == []


@pytest.mark.parametrize(
    "goal",
    [
        "rate 1..4 by 50%: ttft_p95 <= 5s",
        "sessions 1..2: ttft_p95 <= 1ms, output_per_second >= 1",  # met nowhere
    ],
)
def test_a_search(trace: Path, tmp_path: Path, goal: str) -> None:
    found = find(trace, goal=goal, out=tmp_path / "f").document()
    assert found["points"]
    assert faults(found, find_schema()) == []
    assert unseen(found, find_schema()) == []


@pytest.mark.parametrize("pool", [700, 2_000_000])  # falls off; holds all
def test_a_cliff(trace: Path, tmp_path: Path, pool: int) -> None:
    plan = tmp_path / "p.yaml"
    plan.write_text("agentx: replay/1\nload: {sessions: 1}\nmeasure: 60s\ndrain: 10s\nsalt: session\n")
    found = find_cliff(trace, plan=plan, target="laptop", sets=[f"target.cache.pool={pool}"], draws=2).document()
    assert (found["falls"][0] is None) is (pool > 700)
    assert faults(found, cliff_schema()) == []
    assert unseen(found, cliff_schema()) == []
