"""Acceptance from what replies tell: the unbiased mean, its error over engine steps, and what it is held to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentx.core import Header
from agentx.replayer.simulate import simulate
from agentx.reporter.acceptance import acceptance_of
from agentx.reporter.findings import INVALIDATING
from agentx.reporter.reporting import report
from agentx.results import RunResults
from agentx.trace import TraceWriter
from tests.making import linear
from tests.reporter.conftest import make_attempt, make_run, make_sample


def told(histogram, **more):
    steps, drafts = sum(histogram), sum(at * count for at, count in enumerate(histogram))
    spec = {"spec_verify_ct": steps, "spec_num_correct_drafts": drafts, "spec_correct_drafts_histogram": histogram}
    return make_attempt(extra={"spec": spec}, **more)


def found(tmp_path, attempts, expected=None):
    settings = {} if expected is None else {"acceptance": {"asked": expected, "expected": expected}}
    return acceptance_of(RunResults(tmp_path, settings, 0.0, tuple(attempts), (), ()), attempts)


def test_the_mean_is_over_steps_and_not_over_tokens(tmp_path):
    """3 tokens after one step of 2 accepted drafts: the first token is not the step's."""
    one = found(tmp_path, [told([0, 0, 1]), told([0, 32, 45], sent=10.0)], expected=2.58)
    assert one.length == pytest.approx((3 + 32 * 2 + 45 * 3) / 78)
    assert (one.told, one.of, one.steps, one.engine_steps) == (2, 2, 78, 78)
    assert one.per_request.n == 2
    assert one.off is False


@pytest.mark.parametrize(
    ("starts", "engine_steps"),
    [((0.0, 5.0), 200), ((0.0, 0.0), 100), ((0.0, 0.5), 150)],  # (1 s each): apart, together, half together
)
def test_replies_that_ran_together_shared_their_steps(tmp_path, starts, engine_steps):
    assert found(tmp_path, [told([50, 50], sent=at) for at in starts]).engine_steps == engine_steps


@pytest.mark.parametrize(
    ("histogram", "expected", "off"),
    [
        ([40, 60], 1.6, False),
        ([40, 60], 1.75, False),  # within 4 errors of 0.049
        ([40, 60], 1.85, True),
        ([0, 100_000], 2.01, False),  # within 1 %
        ([0, 100_000], 2.05, True),  # no deviation at all, so beyond 1 % is beyond the errors
        ([40, 60], None, None),
    ],
)
def test_what_is_off(tmp_path, histogram, expected, off):
    assert found(tmp_path, [told(histogram)], expected).off is off


def test_what_is_not_told(tmp_path):
    assert found(tmp_path, [make_attempt()]) is None
    silent = found(tmp_path, [make_attempt()], expected=2.0)
    assert (silent.length, silent.off, silent.told, silent.of) == (None, None, 0, 1)
    assert found(tmp_path, [make_attempt(told=1)], expected=2.0).of == 0  # one token has no step
    whole = found(tmp_path, [make_attempt(extra={"spec": {"spec_verify_ct": 4, "spec_num_correct_drafts": 6}})])
    assert (whole.length, whole.standard_error) == (2.5, None)


def test_a_server_that_counts_tells_what_its_replies_do_not(tmp_path):
    """vLLM: 40 steps accepted 64 drafts in the window."""
    before = {"spec_verify_calls": 10, "spec_accepted": 0, "prompt_tokens": 0}
    after = {"spec_verify_calls": 50, "spec_accepted": 64, "prompt_tokens": 9}
    samples = [make_sample(-1, **before), make_sample(9, **after)]
    made = report(replace(make_run([make_attempt()], samples=samples), folder=tmp_path))
    acceptance = made.metrics.acceptance
    assert (acceptance.length, acceptance.length_by_counters, acceptance.off) == (None, 2.6, None)
    assert "2.600 tokens a step by the server's counters" in made.text()


SPECULATION = "target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4}"


@pytest.mark.parametrize("length", [1.0, 2.6])
def test_a_simulation_has_what_its_plan_states(tmp_path, length):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(4):
            writer.session(linear(4, id=f"s{number}", reply=300))
    sets = ["gaps.scale=0", SPECULATION, f"acceptance.length={length}", "load.sessions=2"]
    made = report(simulate(tmp_path / "t.trace", out=tmp_path / "run", sets=sets))
    acceptance = made.metrics.acceptance
    assert acceptance.off is False
    assert acceptance.length == pytest.approx(length, abs=0.1)
    kinds = {finding.kind for finding in made.findings}
    assert ("acceptance_few" in kinds) == (acceptance.engine_steps < 2000) == (length == 2.6)
    assert "acceptance_off" not in kinds
    assert "acceptance_off" in INVALIDATING
