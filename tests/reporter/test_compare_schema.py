"""The schemas of comparisons, held against every shape: a pair, repeats, unpaired, a reference, a trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear
from schema_faults import faults, unseen

from agentx import catalog
from agentx.replayer.simulate import simulate
from agentx.reporter.compare import compare
from agentx.reporter.compare_recorded import compare_recorded
from agentx.reporter.compare_reference import compare_reference
from agentx.reporter.compare_schema import compare_schema, recorded_schema, reference_schema
from agentx.trace import TraceWriter

COMPARE, REFERENCE, RECORDED = compare_schema(), reference_schema(), recorded_schema()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of each of two sides, spread by their loads; one of another trace, one more at a time."""
    folder = tmp_path_factory.mktemp("runs")
    for trace, count in (("a", 5), ("b", 4)):
        with TraceWriter(folder / f"{trace}.trace", header(trace)) as writer:
            for name, fresh in zip("xyz", (100, 200, 400), strict=True):
                writer.session(linear(count, id=name, fresh=fresh))
    sides = {"small": ["target.cache.pool=2300", "target.cache.host.tokens=1500"], "large": []}
    made = {f"{side}{n}": ("a", [*sets, f"seed={n}", "order=shuffle"]) for side, sets in sides.items() for n in "123"}
    made |= {"other": ("b", []), "more": ("a", ["seed=1", "order=shuffle", "load.sessions=3"])}
    for name, (trace, sets) in made.items():
        simulate(folder / f"{trace}.trace", out=folder / name, sets=["load.sessions=2", "gaps.scale=0.1", *sets])
    return folder


def test_a_pair(runs: Path) -> None:
    found = compare([runs / "small1", runs / "large1"], price=2.0).document()
    (pair,) = found["pairs"]
    assert pair["paired"]
    assert pair["turn_ratios"]
    assert pair["caveats"]
    assert pair["losses"]["causes"]
    assert pair["break_even"][0]["break_even_dollars_per_gpu_hour"]
    assert found["neighbours"]
    assert faults(found, COMPARE) == []
    assert unseen(found, COMPARE) == []


def test_repeats_that_decide(runs: Path) -> None:
    sides = [[runs / f"{side}{n}" for n in "123"] for side in ("small", "large")]
    found = compare(sides, decide_on="ttft_mean_seconds").document()
    assert found["decisions"][0]["looks"]
    assert any(row["all_answered"]["interval_low"] is not None for row in found["pairs"][0]["figures"])
    assert faults(found, COMPARE) == []
    assert unseen(found, COMPARE) == []


def test_unpaired_sides_and_three_of_them(runs: Path) -> None:
    found = compare([runs / "small1", runs / "other", runs / "large1"]).document()
    assert [pair["paired"] for pair in found["pairs"]] == [False, True]
    assert found["pairs"][0]["distribution_distance"]
    assert faults(found, COMPARE) == []
    assert unseen(found, COMPARE) == []


def test_runs_of_which_little_is_known(run, attempt, play, tmp_path) -> None:
    nothing = run([attempt(failed="http", status=500, told=None, prompt=None)], [play(outcome="failed", completed=0)])
    torn = run([], end=None)
    for sides in ([nothing, torn], [run([attempt()], [play()]), nothing], [[nothing, torn], [torn]]):
        assert faults(compare(sides).document(), COMPARE) == []


@pytest.mark.parametrize("name", [entry.name for entry in catalog.entries("references")])
def test_a_reference(runs: Path, run, attempt, name: str) -> None:
    for one in (runs / "large1", run([attempt()])):
        found = compare_reference(one, name).document()
        assert faults(found, REFERENCE) == []
        assert unseen(found, REFERENCE) == []


def test_a_trace_beside_its_replay(runs: Path) -> None:
    found = compare_recorded(runs / "a.trace", runs / "small1").document()
    assert found["differences"]
    assert found["template"]
    assert faults(found, RECORDED) == []
    assert unseen(found, RECORDED) == []
