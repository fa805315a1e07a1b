"""The report's JSON Schema, held against documents by a validator of the few words that it uses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from making import header, linear

from agentx.replayer.simulate import simulate
from agentx.replayer.slo import slo_of
from agentx.reporter.document_schema import report_schema
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter

SCHEMA = report_schema()
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
WORDS = {"$schema", "title", "description", "type", "properties", "required", "items", "anyOf", "allOf", "$ref"}
WORDS |= {"const", "additionalProperties", "$defs"}


def merged(schema):
    """The schema without references: an alternative of something and null, or of a definition and more keys."""
    assert set(schema) <= WORDS, "the validator below does not know all words"
    if "$ref" in schema:
        return merged(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema:
        one, null = schema["anyOf"]
        assert null == {"type": "null"}
        return merged(one)
    if "allOf" in schema:
        parts = [merged(part) for part in schema["allOf"]]
        properties = {key: value for part in parts for key, value in part["properties"].items()}
        return {**parts[0], "properties": properties, "required": sorted(properties)}
    return schema


def faults(value, schema, at="document"):
    """Every way in which the value is not as the schema says; a key that it does not have is one."""
    schema = merged(schema)
    if "const" in schema:
        return [] if value == schema["const"] else [f"{at}: {value!r}"]
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not any(fits(value, kind) for kind in kinds):
        return [f"{at}: {value!r} is none of {kinds}"]
    if isinstance(value, list):
        return [fault for each in value for fault in faults(each, schema["items"], f"{at}[]")]
    if not isinstance(value, dict):
        return []
    if "properties" not in schema:
        free = schema["additionalProperties"]
        return [] if free is True else [fault for key in value for fault in faults(value[key], free, f"{at}.{key}")]
    known = schema["properties"]
    found = [f"{at}.{key}: not in the schema" for key in value.keys() - known.keys()]
    found += [f"{at}.{key}: missing" for key in set(schema["required"]) - value.keys()]
    return found + [
        fault for key in value.keys() & known.keys() for fault in faults(value[key], known[key], f"{at}.{key}")
    ]


def fits(value, kind):
    return isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))


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
        assert faults(dict.fromkeys(inner["properties"]), inner) == []
