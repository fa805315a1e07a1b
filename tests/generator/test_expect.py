"""Verdicts: what a workload promised against what it makes."""

from __future__ import annotations

import pytest

from agentx import catalog
from agentx.generator.expect import Measured, quantile, verdicts
from agentx.generator.expectation import Expectation
from agentx.generator.sessions import sessions
from agentx.generator.spec import load_spec

# Two user messages, each with two calls; every quantity is fixed, so every statistic is known.
SPEC = load_spec(
    "fixed",
    text="""\
agentx: workload/1
context_limit: 5000
layers: {tools: 100}
turns: {user: 2, loop: 2}
tokens: {first_message: 50, message: 20, tool_result: 30, reply: 10, reasoning: 5}
gaps: {human: 60s, tools: {shell: {weight: 1, time: 2s}}}
""",
)

STATISTICS = [
    ("turns_p50", 4),
    ("turns_mean", 4),
    ("isl_p50", 212.5),  # prompts of 150, 195, 230 and 275 tokens
    ("isl_mean", (150 + 195 + 230 + 275) / 4),
    ("osl_p50", 15),
    ("context_p90", 290),
    ("tool_gap_p50", 2.0),
    ("human_gap_mean", 60.0),
]


@pytest.mark.parametrize(("name", "value"), STATISTICS)
def test_statistics(name: str, value: float) -> None:
    measured = Measured()
    assert len(list(measured.watch(sessions(SPEC, 0, 3)))) == 3
    assert measured.statistic(name) == value


QUANTILES = [
    ([5.0], 0.9, 5.0),
    ([1.0, 2.0], 0.5, 1.5),
    ([1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0),
    ([1.0, 2.0], 1.0, 2.0),
]


@pytest.mark.parametrize(("values", "p", "value"), QUANTILES)
def test_quantile(values: list[float], p: float, value: float) -> None:
    assert quantile(values, p) == value


VERDICTS = [
    # (target, tolerance, realised possible reuse, met)
    (0.96, 0.02, 0.975, True),
    (0.96, 0.02, 0.985, False),
    (0.96, "1%", 0.965, True),
    (0.96, 0.02, None, False),  # unknown is a miss, not a zero and not a pass
]


@pytest.mark.parametrize(("target", "tolerance", "realised", "met"), VERDICTS)
def test_verdicts(target: float, tolerance: float | str, realised: float | None, met: bool) -> None:
    expect = {"possible_reuse": Expectation(target=target, tolerance=tolerance, source="x")}
    assert [verdict.met for verdict in verdicts(expect, Measured(), realised)] == [met]


def test_what_never_occurs_is_a_miss() -> None:
    one = SPEC.model_copy(update={"expect": {"human_gap_p50": Expectation(target="1s", tolerance="1s", source="x")}})
    assert [verdict.met for verdict in verdicts(one.expect, Measured())] == [False]


def test_the_coding_agent_keeps_its_promises() -> None:
    spec, measured = load_spec(catalog.resolve("workloads", "coding-agent")), Measured()
    for _ in measured.watch(sessions(spec, 0, 800)):
        pass
    found = verdicts({name: each for name, each in spec.expect.items() if name != "possible_reuse"}, measured)
    assert len(found) >= 5
    assert [verdict.statistic for verdict in found if not verdict.met] == []
