"""What is said of a curve: points that contradict each other, repeats that disagree, runs that must not be used."""

from __future__ import annotations

from agentx.replayer.search import goal_of
from agentx.replayer.slo import Objective
from agentx.reporter.found import Found
from agentx.reporter.goodput import Verdict
from agentx.reporter.trials import Spot, Trial


def made(met_at, *, invalid=None, limit=1.0):
    """A curve made by hand: value -> the condition's value in each run."""
    spots = []
    for value, figures in met_at.items():
        verdicts = [(Verdict(Objective("ttft_p95", limit), figure),) for figure in figures]
        why = "The client fell behind." if value == invalid else None
        trials = [Trial(f"rate-{value}/run", 9, 0, 9, one, 1.0, None, "below", why) for one in verdicts]
        spots.append(Spot(float(value), tuple(trials)))
    return Found(goal_of("rate: ttft_p95 <= 1s"), tuple(spots), "t", True, len(next(iter(met_at.values()))))


def test_what_is_said_of_points_that_contradict_each_other():
    found = made({1: [0.5], 2: [1.5], 3: [0.9], 4: [3.0]})
    notes = " ".join(found.notes)
    assert found.bracket == (1, 2)
    assert "Not in order: rate 3 was met, though 2 was not. The lower answer is given." in notes
    assert "ttft_p95 is better at rate 3 than at 2 (900.0 ms, 1.50 s)" in notes


def test_what_is_said_of_repeats_that_disagree():
    found = made({1: [0.5, 0.6], 2: [0.9, 1.1], 3: [2.0, 3.0]})
    assert found.bracket == (1, 2)
    assert "2 is not by 1 of 2" in found.answer
    assert "The repeats disagree at rate 2: 1 of 2 met." in " ".join(found.notes)


def test_a_run_that_must_not_be_used_meets_nothing():
    found = made({1: [0.5], 2: [0.6]}, invalid=2)
    assert found.bracket == (1, 2)
    assert "rate 2 counts as not met, its figures are invalid: The client fell behind." in " ".join(found.notes)
    assert "INVALID" in found.text()


def test_a_figure_that_too_many_turns_do_not_have():
    one = Verdict(Objective("ttft_p95", 1.0), None, endless=True)
    trial = Trial("rate-1/run-1", 9, 9, 9, (one,), None, None, "unknown")
    found = Found(goal_of("rate: ttft_p95 <= 1s"), (Spot(1.0, (trial,)),), "t", False, 1)
    assert "no answer" in found.text()
    assert found.answer == "Not met even at the lowest that was tried: rate 1."
    assert found.document()["points"][0]["runs"][0]["endless"] == ["ttft_p95"]


def test_the_worst_of_the_repeats_says_whether_the_server_kept_up():
    def spot(*states):
        one = (Verdict(Objective("ttft_p95", 1.0), 0.5),)
        return Spot(1.0, tuple(Trial("run", 9, 0, 9, one, 1.0, None, state) for state in states))

    assert spot("below", "saturated", "unknown").server == "saturated"
    assert spot("below", "unknown").server == "unknown"
    assert spot("below", "below").server == "below"
    assert spot(None).server is None
