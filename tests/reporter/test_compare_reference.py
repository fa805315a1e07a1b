from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agentx import catalog
from agentx.reporter.compare_reference import compare_reference

ROOT = Path(__file__).parents[2]
CURVE = "inferencex-mi325x-glm-5.2-fp8"


@pytest.fixture
def four(attempt, play, run):
    """Two answered turns of a run of four sessions: 100 prompt and 2 reply tokens each, from 0 to 4 s on 2 GPUs."""
    settings = {
        "plan": {"load": {"sessions": 4}, "measure": "1h", "drain": "30m"},
        "target": {"gpus": 2, "name": "here"},
        "server": {"model": "GLM-5.2", "version": "0.5.23", "max_running_requests": 8, "tp_size": 8},
        "trace": {"name": "agents"},
    }
    made = [attempt("a", 0, cached=50), attempt("b", 0, sent=2.0, cached=50, osl=9)]
    return run(made, [play("a"), play("b")], settings=settings)


def test_ratios_by_hand(four):
    found = compare_reference(four, CURVE, "c4").document()
    (row,) = found["rows"]
    figures = {each["name"]: each for each in row["figures"]}
    # 204 tokens in 4 s on 2 GPUs; 4 of them were generated; both first tokens took 1 s, both second ones 1 s more
    assert figures["total_tokens_per_second_per_gpu"]["run"] == pytest.approx(204 / 8)
    assert figures["output_tokens_per_second_per_gpu"]["ratio"] == pytest.approx(0.5 / 5.88)
    assert figures["ttft_mean_seconds"]["ratio"] == pytest.approx(1 / 42.36373)
    assert figures["tpot_mean_seconds"]["ratio"] == pytest.approx(1 / 0.08203, rel=1e-3)


def test_every_known_difference_of_conditions(four):
    (row,) = compare_reference(four, CURVE, "c4").document()["rows"]
    differences = {each["name"]: (each["published"], each["run"]) for each in row["conditions"]}
    assert differences["gpus"] == (8, 2)
    assert differences["version"] == ("0.5.19", "0.5.23")
    assert differences["workload"] == ("AgentX", "agents")
    assert differences["hardware"] == ("8x MI325X", None)  # not told by the run, so it stands there
    assert {"model", "sessions", "max_running", "tensor_parallel", "drain"} & set(differences) == set()


@pytest.mark.parametrize(("made", "differs"), [(299, False), (290, True)])  # tokens of 100 steps; 2.99 is published
def test_an_acceptance_length_is_alike_to_its_second_decimal(four, sample, made, differs):
    samples = [
        sample(at, generation_tokens=tokens, requests=0, spec_verify_calls=steps)
        for at, tokens, steps in ((-1, 0, 0), (9, made, 100))
    ]
    (row,) = compare_reference(replace(four, samples=tuple(samples)), CURVE, "c4").document()["rows"]
    assert ("acceptance_length" in {each["name"] for each in row["conditions"]}) is differs


def test_the_runs_own_findings_are_said(four):
    text = " ".join(compare_reference(four, CURVE).text().split())
    assert "1 of 2 replies were shorter than asked" in text
    assert "Recorded history was replayed" in text
    assert "sits on a cliff" in text
    assert "row 443210, 2026-09-25" in text


def test_unknown_stays_unknown(run):
    empty = compare_reference(run(), "prosgrow-mi325x-glm-5.2-fp8", "baseline")
    (row,) = empty.document()["rows"]
    assert {each["ratio"] for each in row["figures"]} == {None}
    assert re.search(r"TTFT p50, s +2\.58 +unknown +unknown", empty.text())


@pytest.mark.parametrize("name", [entry.name for entry in catalog.entries("references")])
def test_the_word_is_never_printed(name, four):
    """Conditions are partly unknown, so no run can claim to have made published figures again."""
    found = compare_reference(four, name)
    for text in (found.text(), found.markdown(), json.dumps(found.document(), allow_nan=False)):
        assert "reproduc" not in text.lower()
    assert "do not show that one explains the other" in " ".join(found.text().split())


def test_nothing_of_ours_says_it():
    files = [*(ROOT / "agentx/reporter").glob("*.py"), *(ROOT / "replays").rglob("*.*"), ROOT / "agentx/cli/compare.py"]
    assert [
        path.name for path in files if path.suffix in (".py", ".yaml") and "reproduc" in path.read_text().lower()
    ] == []


def test_every_key_is_in_the_reference(four):
    documented = set(re.findall(r"`([a-z0-9_/-]+)`", (ROOT / "docs/reference/metrics.md").read_text()))
    found = compare_reference(four, CURVE).document()
    keys = {*found, *found["source"], *found["rows"][0], *found["rows"][0]["figures"][0], found["schema"]}
    figures = {each["name"] for row in found["rows"] for each in row["figures"]}
    assert sorted((keys | figures) - documented) == []
