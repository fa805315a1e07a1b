"""Verdicts: what a workload promised against what it makes; what the shipped ones promise."""

from __future__ import annotations

import re

import pytest
from specs import EVERYTHING, FIXED, made

from agentx import catalog, reuse
from agentx.core import Session
from agentx.distributions import Distribution
from agentx.generator.expect import Measured, ks_distance, quantile, verdicts
from agentx.generator.expectation import QUANTITIES, SHARES, Expectation
from agentx.generator.quantities import Counts
from agentx.generator.sessions import sessions
from agentx.generator.spec import WorkloadSpec, load_spec

# Two user messages, each with two calls; every quantity is fixed, so every statistic is known.
PLAIN = (
    "layers={tools: 100}",
    "turns={user: 2, loop: 2}",
    "tokens={first_message: 50, message: 20, tool_result: 30, reply: 10, reasoning: 5}",
    "gaps.human=60s",
)
AGENTS = "subagents={share: 1, count: 2, types: {x: {weight: 1, system: 5, prompt: 40, turns: 2, report: 55}}}"
COMPACT = ("turns={user: 1, loop: 5}", "compaction={trigger: 400, summary: 100}")

STATISTICS = [
    # (overrides, statistic, value)
    (PLAIN, "turns_p50", 4),
    (PLAIN, "turns_mean", 4),
    (PLAIN, "main_turns_p50", 4),
    (PLAIN, "isl_p50", 212.5),  # prompts of 150, 195, 230 and 275 tokens
    (PLAIN, "isl_mean", (150 + 195 + 230 + 275) / 4),
    (PLAIN, "first_isl_p50", 150),
    (PLAIN, "last_isl_p50", 275),
    (PLAIN, "osl_p50", 15),
    (PLAIN, "total_mean", (150 + 195 + 230 + 275) / 4 + 15),
    (PLAIN, "input_p50", 150 + 195 + 230 + 275),
    (PLAIN, "output_p50", 60),
    (PLAIN, "leading_p50", 100),
    (PLAIN, "context_p90", 290),
    (PLAIN, "loop_mean", 2),
    (PLAIN, "fresh_p50", 30),
    (PLAIN, "tools_mean", 1),
    (PLAIN, "tool_gap_p50", 2.0),
    (PLAIN, "human_gap_mean", 60.0),
    (PLAIN, "tool_share", 0.5),
    (PLAIN, "single_turn_share", 0),
    (PLAIN, "multi_turn_calls", 1),
    ((*PLAIN, "turns={user: 1, loop: 1}"), "single_turn_share", 1),
    ((*PLAIN, AGENTS), "subagent_share", 8 / 12),
    ((*PLAIN, AGENTS), "subagent_sessions", 1),
    ((*PLAIN, AGENTS), "subagent_turns_p50", 2),
    ((*PLAIN, AGENTS), "subagent_isl_mean", (45 + 45 + 15 + 30) / 2),
    ((*PLAIN, AGENTS), "subagent_osl_mean", (15 + 55) / 2),
    ((*PLAIN, AGENTS), "main_turns_mean", 4),
    ((*PLAIN, AGENTS), "fan_out_p50", 2),
    ((*PLAIN, AGENTS, "subagents.run=serial"), "fan_out_mean", 2),
    ((*PLAIN, AGENTS, "subagents.sessions=1e-9"), "subagent_sessions", 0),
    ((*PLAIN, "side_calls={t: {at: start, prompt: 9, reply: 3}}"), "side_share", 1 / 5),
    ((*PLAIN, "side_calls={t: {at: start, prompt: 9, reply: 3}}"), "first_isl_p50", 150),
    ((*PLAIN, "side_calls={t: {at: start, prompt: 9, reply: 3}}"), "leading_p50", 100),
    (COMPACT, "compaction_share", 1),
    (COMPACT, "compaction_before_mean", 420),
    (COMPACT, "compaction_after_p50", 250),
    (COMPACT, "pull_back_share", 0),
    ((*PLAIN, "pull_backs={share: 1, lost: 0.3}"), "pull_back_share", 1),
    ((*PLAIN, "pull_backs={share: 1, lost: 0.05}"), "pull_back_share", 0),
    ((*PLAIN, "aborts={share: 1}"), "abort_share", 1),
]


@pytest.mark.parametrize(("sets", "name", "value"), STATISTICS)
def test_statistics(sets: tuple[str, ...], name: str, value: float) -> None:
    measured = Measured()
    assert len(list(measured.watch(sessions(made(FIXED, *sets), 0, 3)))) == 3
    assert measured.statistic(name) == pytest.approx(value)


def test_every_statistic_can_be_measured() -> None:
    measured = Measured()
    for _ in measured.watch(sessions(made(EVERYTHING), 0, 60)):
        pass
    names = [f"{quantity}_p50" for quantity in QUANTITIES] + [share for share in SHARES if share != "possible_reuse"]
    assert [name for name in names if measured.statistic(name) is None] == []


def test_a_session_without_turns_is_counted_and_no_more() -> None:
    measured = Measured()
    measured.add(Session("s", ()))
    assert (measured.statistic("turns_p50"), measured.statistic("isl_p50")) == (0, None)


QUANTILES = [
    ([5.0], 0.9, 5.0),
    ([1.0, 2.0], 0.5, 1.5),
    ([1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0),
    ([1.0, 2.0], 1.0, 2.0),
]


@pytest.mark.parametrize(("values", "p", "value"), QUANTILES)
def test_quantile(values: list[float], p: float, value: float) -> None:
    assert quantile(values, p) == value


DISTANCES = [
    # (values, distribution, distance)
    ([1.0, 2.0, 3.0, 4.0], {"quantiles": {0.5: 2, 0.75: 3}}, 0.0),  # only the points are judged
    ([1.0, 2.0, 3.0, 4.0], {"quantiles": {0.5: 3, 0.75: 4}}, 0.25),
    ([5.0], {"uniform": {"low": 0, "high": 10}}, 0.5),
    ([20.0], {"uniform": {"low": 0, "high": 10}}, 1.0),
]


@pytest.mark.parametrize(("values", "shape", "distance"), DISTANCES)
def test_distance_to_a_distribution(values: list[float], shape: dict[str, object], distance: float) -> None:
    assert ks_distance(values, Counts.model_validate(shape)) == pytest.approx(distance, abs=0.002)


def test_draws_are_near_their_own_distribution() -> None:
    spec = made(FIXED, "tokens.reply={burr12: {c: 4.5, d: 0.25, scale: 118}}")
    measured = Measured()
    for _ in measured.watch(sessions(spec, 0, 300)):
        pass
    assert isinstance(spec.tokens.reply, Distribution)
    distance = measured.distance("osl", spec.tokens.reply)
    assert distance is not None
    assert distance < 0.03
    assert measured.distance("subagent_isl", spec.tokens.reply) is None


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


@pytest.mark.parametrize("name", ["human_gap_p50", "human_gap_ks", "compaction_share"])
def test_what_never_occurs_is_a_miss(name: str) -> None:
    targets = {"human_gap_p50": "1s", "human_gap_ks": {"lognormal": {"median": "1s", "sigma": 1}}}
    expect = {name: Expectation(target=targets.get(name, 0.0), tolerance=1.0 if "ks" in name else "5%", source="x")}
    assert [verdict.met for verdict in verdicts(expect, Measured())] == [False]


SHIPPED = {entry.name: load_spec(entry.path) for entry in catalog.entries("workloads")}


def few(spec: WorkloadSpec, seed: int, calls: int) -> tuple[Measured, float | None]:
    """Sessions of about so many calls."""
    measured = Measured()

    def some() -> list[Session]:
        found = []
        for session in measured.watch(sessions(spec, seed, calls)):
            found.append(session)
            if measured.counts["turns"] >= calls:
                break
        return found

    return measured, reuse.possible(some()).share


@pytest.mark.parametrize("name", [name for name, spec in SHIPPED.items() if spec.expect])
def test_shipped_specs_are_near_their_promises(name: str) -> None:
    # benchmarks/workloads.py judges them in full; so few sessions stand for medians, means and reuse only, with room.
    expect = {
        key: each.model_copy(update={"tolerance": each.difference * 2 + 1e-9})
        for key, each in SHIPPED[name].expect.items()
        if re.search("_p50|_mean|_reuse", key) and isinstance(each.target, float)
    }
    measured, share = few(SHIPPED[name], 1, 4000)
    found = verdicts(expect, measured, share)
    assert found
    assert [(verdict.statistic, verdict.realised) for verdict in found if not verdict.met] == []


ROWS = {
    # what is published for a workload, and must be promised by its spec
    "claude-code": "main_turns_p50 osl_p50 possible_reuse leading_p50"
    " compaction_share compaction_before_p50 compaction_after_p50",
    "claude-code-subagents": "subagent_share total_ks possible_reuse subagent_isl_p50 subagent_turns_p50",
    "claude-code-1m": "turns_mean subagent_share subagent_sessions total_ks possible_reuse",
    "codex-swebench": "turns_p50 first_isl_p50 last_isl_mean possible_reuse",
    "swe-coder-short": "isl_p50 osl_p50 turns_p50 possible_reuse",
    "deep-research": "isl_p50 osl_p50 possible_reuse fan_out_p50",
    "customer-support": "turns_mean tool_share",
    "office-work": "turns_p50 first_isl_p50 leading_p50",
    "code-qa": "turns_p50 first_isl_p50 leading_p50",
    "agentic-coding": "turns_p50 first_isl_p50 leading_p50",
    "toolagent-openloop": "isl_mean osl_mean possible_reuse",
    "mixed-production": "single_turn_share multi_turn_calls turns_mean",
    "node-aggregate": "isl_mean osl_mean possible_reuse",
    "single-stream": "isl_mean osl_mean",
}


@pytest.mark.parametrize(("name", "keys"), ROWS.items())
def test_what_is_published_is_expected(name: str, keys: str) -> None:
    assert [key for key in keys.split() if key not in SHIPPED[name].expect] == []


def test_tolerances_are_those_of_the_house() -> None:
    allowed = {"p50": 0.15, "p90": 0.25, "p99": 0.25, "mean": 0.25}
    wide = []
    for name, spec in SHIPPED.items():
        for key, each in spec.expect.items():
            share = isinstance(each.tolerance, str) and each.tolerance.endswith("%")
            room = allowed.get(key.rpartition("_")[2], 1.0) * each.value if share else 0.02
            if (share or key == "possible_reuse") and each.difference > room + 1e-9:
                wide.append((name, key))
    assert wide == []


def test_what_is_not_published_is_not_expected() -> None:
    assert SHIPPED["rag-shared-document"].expect == {}
