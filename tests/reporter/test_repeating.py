"""A plan with repeats: as many runs, one table, and objectives of each."""

from __future__ import annotations

import json

import pytest

from agentx.core import Header
from agentx.errors import BadInput
from agentx.reporter.compare import compare
from agentx.reporter.repeating import repeat
from agentx.reporter.sweeping import sweep
from agentx.trace import TraceWriter
from tests.making import linear


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(2):
            writer.session(linear(3, id=f"s{number}", fresh=60, reply=8))
    return tmp_path / "t.trace"


SETS = ["gaps.scale=0", "repeats=2"]


@pytest.mark.parametrize("simulated", [True, False])
def test_runs_and_their_table(trace, tmp_path, simulated):
    found = repeat(trace, out=tmp_path / "r", sets=[*SETS, "slo.run.ttft_p95=1us"], simulated=simulated)
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["run-1", "run-2"]
    assert [len(run.attempts) for run, _ in found.runs] == [6, 6]
    lines = found.text().splitlines()
    assert lines[0] == "agentx repeats: t on laptop, 2 runs"
    assert [line.split()[:2] for line in lines if line.strip().startswith(("run-", "mean"))][:3] == [
        ["run-1", "6"], ["run-2", "6"], ["mean", "12"],
    ]  # fmt: skip
    assert sum("MISSED" in line for line in lines) == 2
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    assert document["schema"] == "agentx/repeats/1"
    assert [one["slo"]["objectives"][0]["met"] for one in document["runs"]] == [False, False]


def test_the_trace_of_a_workload_is_made_once(tmp_path):
    sets = [*SETS, "measure={sessions: 2}"]
    found = repeat("single-stream", out=tmp_path / "r", sets=sets)
    made = {run.settings["trace"]["path"] for run, _ in found.runs}
    assert made == {str(tmp_path / "r/trace-0.trace")}
    with pytest.raises(BadInput, match="no trace to replay"):
        repeat(out=tmp_path / "other", sets=sets)


def test_a_sweep_with_repeats_can_be_compared(trace, tmp_path):
    found = sweep(trace, knobs=["load.sessions=1,2"], out=tmp_path / "s", sets=SETS, workers=1)
    assert [len(runs) for runs in found.repeats] == [2, 2]
    assert found.rows[0][2].requests == 12
    assert "means of 2 runs of each point" in found.text()
    assert found.document()["points"][1]["runs"][1]["run"] == "001/run-2"
    sides = [sorted((tmp_path / "s" / point).iterdir()) for point in ("000", "001")]
    assert compare(sides).pairs
    with pytest.raises(BadInput, match="repeats are of every point"):
        sweep(trace, knobs=["repeats=1,2"], out=tmp_path / "s2", workers=1)


def test_a_replayed_sweep_is_one_table(trace, tmp_path):
    found = sweep(trace, knobs=["load.sessions=1,2"], out=tmp_path / "s", sets=["gaps.scale=0"], simulated=False)
    assert found.about == "t, 2 replays"
    assert "of a model" not in found.text()
    assert [each.requests for _, _, each in found.rows] == [6, 6]
    with pytest.raises(BadInput, match="--salt x gives 2 runs the same words"):
        sweep(trace, knobs=["load.sessions=1,2"], out=tmp_path / "s", salt="x", simulated=False)


def test_two_targets_are_a_sweep_in_abba_order(trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, pool in (("before", 600), ("after", 4000)):
        (tmp_path / f"{name}.yaml").write_text(f"agentx: target/1\nextends: laptop\ncache: {{pool: {pool}}}\n")
    sweep(trace, knobs=["target=before.yaml,after.yaml"], out="ab", sets=SETS, workers=1)
    made = sorted(tmp_path.glob("ab/*/run-*/run.json"), key=lambda path: path.stat().st_mtime_ns)
    assert [path.parts[-3] for path in made] == ["000", "001", "001", "000"]
    pools = [json.loads(path.read_text())["target"]["cache"]["pool"] for path in made]
    assert pools == [600, 4000, 4000, 600]
