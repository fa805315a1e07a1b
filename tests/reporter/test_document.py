from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentx.reporter.reporting import report

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
FREE = ("plan", "statuses", "requests_in_other_phases")  # their keys are the user's or the server's


def keys_of(value, free=False):
    if isinstance(value, dict):
        for key, inner in value.items():
            if not free:
                yield key
            yield from keys_of(inner, key in FREE)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, free)


def test_every_key_is_in_the_reference(full):
    documented = set(re.findall(r"`([a-z0-9_.]+)`", REFERENCE.read_text()))
    keys = set(keys_of(report(full).document()))
    assert len(keys) > 100
    assert sorted(keys - documented) == []


def test_the_same_run_gives_the_same_document(full):
    assert json.dumps(report(full).document()) == json.dumps(report(full).document())


def test_it_is_json_without_paths(full):
    text = json.dumps(report(full).document(), allow_nan=False)
    assert json.loads(text)["schema"] == "agentx/report/1"
    assert str(full.folder) not in text


def test_a_lost_trace_is_told_without_its_path(attempt, run, tmp_path):
    settings = {"plan": {"wire": "chat", "salt": "run"}, "salt": "x", "trace": {"path": str(tmp_path / "gone.trace")}}
    text = json.dumps(report(run([attempt(cached=1)], settings=settings)).document())
    assert "gone.trace" in text
    assert str(tmp_path) not in text


def test_figures_are_those_of_the_run(full):
    found = report(full).document()
    assert found["latency"]["ttft_seconds"]["p50"] == 1.0
    assert found["lengths"]["shorter_than_asked"] == 1
    assert found["reuse"]["by_request"]["share"] == pytest.approx(60 / 165)
    assert found["reuse"]["missing_to_ideal_tokens"] == 15
    assert found["run"]["engine_rules"] == "SGLang 0.5.23"
    assert found["run"]["requests_in_other_phases"] == {"warmup": 1}
    # the window goes from 0 to 11, the answered from 0 to 5 s: 4 tokens, on 2 GPUs
    assert found["throughput"]["completed"]["output"]["tokens_per_second_per_gpu"] == pytest.approx(4 / 5 / 2)
    assert found["failures"] == [
        {"kind": "http", "requests": 1, "statuses": {"500": 1}, "example": "http happened"},
    ]


def test_an_empty_run_is_null_not_zero(run):
    found = report(run()).document()
    assert found["latency"]["ttft_seconds"] is None
    assert found["throughput"]["window"] is None
    for view in ("emitted", "completed"):
        for kind in ("output", "input_computed", "input_cached"):
            assert found["throughput"][view][kind]["tokens"] is None
            assert found["throughput"][view][kind]["tokens_per_second"] is None
    assert found["reuse"]["by_counters"] is None
    assert found["reuse"]["by_request"]["cached_tokens"] is None
    assert found["run"]["gpus"] is None
    json.dumps(found, allow_nan=False)
