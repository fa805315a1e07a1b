"""The capacity curve of a run: it ends at the ideal, its size is marked, and the engine's cache is not above it."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear

from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import Report, report
from agentx.reporter.run_capacity import RunCapacity, run_capacity_blocks, run_capacity_document
from agentx.trace import TraceWriter


def made(folder: Path, *sets: str) -> Report:
    with TraceWriter(folder / "a.trace", header("agents")) as file:
        for name in "abcde":
            file.session(linear(8, id=name, fresh=300))
    plan = ["load.sessions=3", "gaps.scale=0.1", *sets]
    return report(simulate(folder / "a.trace", out=folder / "run", sets=plan))


def test_the_curve_ends_at_the_ideal_and_the_engine_below_it(tmp_path: Path) -> None:
    found = made(tmp_path, "target.cache.pool=6000")
    capacity, ideal = found.capacity, found.metrics.reuse.ideal
    assert ideal is not None
    assert capacity.curve is not None
    assert capacity.curve.possible == pytest.approx(ideal.share)
    assert (capacity.device, capacity.host, capacity.usable) == (6000, 0, 6000)
    assert 4 <= len(capacity.engine) <= 8
    for size, share in capacity.engine:
        assert share <= (capacity.curve.share(size) or 0) + 0.01  # an upper curve, but for requests in flight
    # with room for everything, all that is lost is in flight
    in_flight = (found.losses.of("in_flight") or 0) / ideal.prompt
    assert capacity.engine[-1][1] == pytest.approx(ideal.share - in_flight, abs=0.002)
    shown = run_capacity_document(capacity)
    assert shown is not None
    assert shown["needed"]["0.5_of_ideal"] <= shown["needed"]["0.99_of_ideal"] <= capacity.curve.held
    assert "the run had" in found.text()


HOSTS = [  # write policy, usable tokens of 6,000 on the device and 9,000 on the host
    ("write_through", 9000),
    ("write_back", 15000),
]


@pytest.mark.parametrize(("write", "usable"), HOSTS)
def test_a_host_tier_counts_as_what_it_adds(tmp_path: Path, write: str, usable: int) -> None:
    host = f"target.cache.host={{tokens: 9000, write: {write}}}"
    found = made(tmp_path, "target.cache.pool=6000", host, "target.cache.bytes_per_token=1000000")
    assert found.capacity.usable == usable
    assert found.capacity.memory is not None
    assert f"{usable / 1000:,.1f} GB" in found.text()


def test_nothing_without_an_ideal(run, attempt) -> None:
    found = report(run([attempt(cached=10)]))
    assert found.capacity == RunCapacity()
    assert run_capacity_document(found.capacity) is None
    assert run_capacity_blocks(found.capacity) == []
