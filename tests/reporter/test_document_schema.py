"""The report's JSON Schema, held against documents of all kinds."""

from __future__ import annotations

import json

import pytest
from making import header, linear
from schema_faults import faults

from agentx.replayer.simulate import simulate
from agentx.replayer.slo import slo_of
from agentx.reporter.document_schema import report_schema
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter

SCHEMA = report_schema()


@pytest.fixture
def simulated(tmp_path):
    """Three sessions, a pool that is too small for them, a host tier and acceptance: every part has figures."""
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for number in range(3):
            writer.session(linear(8, id=f"s{number}", fresh=80, reply=12))
    sets = ["load.sessions=3", "target.cache.pool=900", "target.cache.host.tokens=700", "acceptance={length: 2.5}"]
    sets += ["target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4}"]
    run = simulate(tmp_path / "t.trace", out=tmp_path / "sim", sets=sets, salt="x")
    return report(run, price=2.5, slo=slo_of(["ttft=1ms,tpot=1ms,ttft_p95=5s"])).document()


def test_a_run_with_counters_and_failures(full):
    assert faults(report(full).document(), SCHEMA) == []


def test_a_simulated_run(simulated):
    assert simulated["slo"]["goodput"] is not None
    assert simulated["losses"]["host_dropped_tokens"]
    assert simulated["blame"]["turns"]
    assert simulated["capacity"]["engine"]
    assert simulated["acceptance"]["length"]
    assert faults(json.loads(json.dumps(simulated)), SCHEMA) == []


def test_an_empty_run(run):
    assert faults(report(run()).document(), SCHEMA) == []


def test_a_run_of_failures_alone(run, attempt):
    assert faults(report(run([attempt(failed="http", status=500, told=None, prompt=None)])).document(), SCHEMA) == []


PLANTED = [
    # where, the key, what stands there, what is said
    ((), "extra", 1, "document.extra: not in the schema"),
    (("run",), "extra", 1, "document.run.extra: not in the schema"),
    (("latency", "ttft_seconds"), "p42", 1.0, "document.latency.ttft_seconds.p42: not in the schema"),
    (("throughput", "emitted", "output"), "extra", 1, "document.throughput.emitted.output.extra: not in the schema"),
    (("slo", "objectives", 0), "extra", 1, "document.slo.objectives[].extra: not in the schema"),
    (("blame", "turns", 0, "parts", 0), "extra", 1, "document.blame.turns[].parts[].extra: not in the schema"),
    (("run",), "requests", "12", "document.run.requests: '12' is none of ['integer', 'null']"),
    (("run",), "requests", True, "document.run.requests: True is none of ['integer', 'null']"),
]


def test_what_is_not_in_the_schema_is_found(simulated):
    for where, key, value, says in PLANTED:
        document = json.loads(json.dumps(simulated))
        inner = document
        for step in where:
            inner = inner[step]
        inner[key] = value
        assert faults(document, SCHEMA) == [says]


def test_a_key_that_went_is_found(simulated):
    del simulated["books"]["cut"]
    assert faults(simulated, SCHEMA) == ["document.books.cut: missing"]


def test_every_leaf_may_be_null():
    unknown = dict.fromkeys(SCHEMA["properties"]) | {"schema": "agentx/report/1"}
    assert faults(unknown, SCHEMA) == []
    for definition in SCHEMA["$defs"].values():
        inner = definition.get("items", definition)
        assert faults(dict.fromkeys(inner["properties"]), {**inner, "$defs": SCHEMA["$defs"]}) == []
