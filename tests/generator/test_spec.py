"""The workload spec refuses what makes no sense, and survives its own text."""

from __future__ import annotations

from typing import Any

import pytest

from agentx import catalog
from agentx.errors import BadInput
from agentx.generator.expectation import Expectation
from agentx.generator.shared import shared_layers
from agentx.generator.spec import WorkloadSpec, load_spec, spec_text

SMALL = """\
agentx: workload/1
context_limit: 5000
layers: {tools: 100, system: 50, repos: {count: 3, tokens: {uniform: {low: 200, high: 400}}, zipf: 1}}
turns: {user: 3, loop: {geometric: {mean: 3}}, parallel: {geometric: {mean: 1.5}}}
tokens:
  first_message: 80
  message: 20
  tool_result: {lognormal: {median: 60, sigma: 1}}
  reply: {lognormal: {median: 30, sigma: 0.5}}
  reasoning: {uniform: {low: 0, high: 10}}
gaps:
  human: {lognormal: {median: 30s, sigma: 1}}
  tools:
    shell: {weight: 0.7, time: {lognormal: {median: 400ms, sigma: 2}, max: 1m}}
    read: {weight: 0.3, time: 30ms}
"""


def small(*sets: str) -> WorkloadSpec:
    return load_spec("small.yaml", text=SMALL, sets=sets)


REFUSED = [
    # (override, what the line says)
    ("turns.usr=3", "turns.usr: unknown key, did you mean 'user'?"),
    ("gaps.human=30", "gaps.human: a duration needs a unit: write 30s or 30ms"),
    ("gaps.human={lognormal: {median: 30, sigma: 1}}", "a duration needs a unit"),
    ("tokens.reply={lognormal: {median: 30, sigma: -1}}", "tokens.reply.lognormal.sigma: should be greater than"),
    ("tokens.reply={fixed: 3, min: 9, max: 4}", "tokens.reply: min 9 is more than max 4"),
    ("tokens.reply={mixture: [{weight: 0.5, fixed: 1}]}", "tokens.reply.mixture: the weights sum to 0.5, not 1"),
    ("tokens.reply=-4", "tokens.reply: should be greater than or equal to 0"),
    ("gaps.tools.read.weight=0.5", "gaps.tools: the weights sum to 1.2, not 1"),
    ("gaps.tools={}", "gaps.tools"),
    ("turns.user=0", "turns.user is always 0: the spec makes no turn"),
    ("turns.loop={fixed: 7, max: 0}", "turns.loop is always 0: the spec makes no turn"),
    ("sessions=0", "sessions: should be greater than or equal to 1"),
    ("layers.tools=6000", "layers.tools + layers.system are 6050 tokens, context_limit is 5000: no turn fits"),
    ("layers.repos.count=0", "layers.repos.count"),
    ("expect={isl_p50: {target: 3, tolerance: 15%}}", "expect.isl_p50.source: is missing"),
    ("expect={isl_p500: {target: 3, tolerance: 1, source: x}}", "unknown statistic 'isl_p500'"),
    ("expect={isl_p50: {target: 3s, tolerance: 1s, source: x}}", "isl_p50.target should be a number without a unit"),
    ("expect={human_gap_p50: {target: 3, tolerance: 1, source: x}}", "human_gap_p50.target should be a duration"),
    ("expect={isl_p50: {target: 3, tolerance: some, source: x}}", "should be a duration"),
    ("expect={isl_p50: {target: 3, tolerance: -1, source: x}}", "tolerance -1.0 is below 0"),
]


@pytest.mark.parametrize(("override", "says"), REFUSED)
def test_refused(override: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        small(override)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_repository_contexts_longer_than_the_limit_are_refused_before_anything_is_written() -> None:
    with pytest.raises(BadInput, match=r"repository context \d are \d+ tokens together, context_limit is 300"):
        shared_layers(small("context_limit=300"), seed=0)


def test_a_spec_survives_its_own_text() -> None:
    for spec in (small(), load_spec(catalog.resolve("workloads", "coding-agent"))):
        again = load_spec("again", text=spec_text(spec))
        assert again == spec
        assert spec_text(again) == spec_text(spec)


DIFFERENCES = [
    # (target, tolerance, seconds or tokens that the realised value may differ)
    (200, "15%", 30.0),
    (200, 5, 5.0),
    ("2s", "10%", 0.2),
    ("2s", "100ms", 0.1),
    (0.965, 0.02, 0.02),
]


@pytest.mark.parametrize(("target", "tolerance", "difference"), DIFFERENCES)
def test_tolerances(target: Any, tolerance: Any, difference: float) -> None:
    made = Expectation(target=target, tolerance=tolerance, source="x")
    assert made.difference == pytest.approx(difference)
