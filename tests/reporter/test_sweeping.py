"""A sweep's table, document and plot, and that processes change nothing."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from agentx.core import Header
from agentx.errors import BadInput
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.reporter.sweeping import sweep
from agentx.results import RESULTS
from agentx.trace import TraceWriter
from tests.making import linear


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(6):
            writer.session(linear(6, id=f"s{number}", fresh=60, reply=8))
    return tmp_path / "t.trace"


KNOBS = ["target.cache.pool=600,1200,4000", "load.sessions=1,3"]


def test_every_point_is_a_run_of_its_own(trace, tmp_path):
    found = sweep(trace, knobs=KNOBS, out=tmp_path / "sweep", sets=["gaps.scale=0"], workers=1)
    assert [point.settings for point, _, _ in found.rows][:2] == [
        (("target.cache.pool", "600"), ("load.sessions", "1")),
        (("target.cache.pool", "600"), ("load.sessions", "3")),
    ]
    again = simulate(trace, out=tmp_path / "one", sets=["gaps.scale=0", "target.cache.pool=1200", "load.sessions=3"])
    assert (tmp_path / "sweep/003" / RESULTS).read_bytes() == (tmp_path / "one" / RESULTS).read_bytes()
    figures = found.rows[3][2]
    metrics = report(again).metrics
    assert (figures.requests, figures.failed, figures.reuse) == (36, 0, metrics.reuse.by_request.share)
    assert figures.ttft_p90 == metrics.latency.ttft.at(90)
    one_session = [each.reuse for point, _, each in found.rows if point.settings[1][1] == "1"]
    assert one_session == sorted(one_session)  # a larger pool gives no less


def test_processes_change_nothing_and_the_forms_agree(trace, tmp_path):
    one, two = (
        sweep(trace, knobs=KNOBS[:1], out=tmp_path / str(workers), sets=["gaps.scale=0"], workers=workers)
        for workers in (1, 2)
    )
    assert one == two
    document = json.loads(json.dumps(one.document()))
    assert document["schema"] == "agentx/sweep/1"
    assert document["points"][2]["settings"] == {"target.cache.pool": "4000"}
    assert document["points"][2]["figures"]["requests"] == 36
    lines = one.text().splitlines()
    assert lines[0] == "agentx sweep: t, 3 simulations"
    assert "every figure is of a model" in lines[1]
    assert [line.split()[0] for line in lines[-3:]] == ["600", "1200", "4000"]
    circles = list(ElementTree.fromstring(one.plot()).iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) == 3 * 3  # three panels


def test_objectives_have_columns(trace, tmp_path):
    sets = ["gaps.scale=0", "slo.turn.ttft=20ms", "slo.run.goodput=95%"]
    found = sweep(trace, knobs=["target.timing.prefill_batch=1ms,30ms"], out=tmp_path / "s", sets=sets, workers=1)
    (_, _, fast), (_, _, slow) = found.rows
    assert (fast.goodput, fast.objectives_missed) == (1.0, 0)
    assert (slow.goodput, slow.objectives_missed) == (0.0, 1)
    lines = found.text().splitlines()
    assert "goodput  objectives" in next(line for line in lines if "requests" in line)
    assert [line.split()[-1] for line in lines[-2:]] == ["met", "MISSED"]


def test_a_workloads_spec_can_be_swept(tmp_path):
    found = sweep(
        "coding-agent",
        knobs=["spec.turns.loop=1,9"],
        out=tmp_path / "sweep",
        sets=["measure={sessions: 3}"],
        workers=1,
    )
    few, many = (each.requests for _, _, each in found.rows)
    assert 0 < few < many
    assert "no plan given" in found.text()
    assert len(list((tmp_path / "sweep").glob("trace-*.trace"))) == 2


def test_what_a_point_is_refused_for_is_one_line_with_its_settings(trace, tmp_path):
    with pytest.raises(BadInput, match=r"wire=chat,? ?.*|wire=generate") as caught:
        sweep(tmp_path / "missing.trace", knobs=["wire=chat,generate"], out=tmp_path / "sweep", workers=1)
    assert "missing.trace: no such file" in str(caught.value)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    with pytest.raises(BadInput, match="is there already"):
        sweep(trace, knobs=KNOBS, out=tmp_path / "full")
