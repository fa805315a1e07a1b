"""Objectives: names, units, sides, and what is said of those that there are not."""

from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.replayer.plan import load_plan
from agentx.replayer.slo import RUN, TURN, Objective, Slo, as_sets, limit_of, limit_text, objectives_of, slo_of

HEAD = "agentx: replay/1\n"


def test_a_plans_objectives():
    slo = load_plan(text=HEAD + "slo: {turn: {ttft: 5s, tpot: 50ms}, run: {ttft_p95: 5s, goodput: 95%}}\n").slo
    assert slo.turns == (Objective("ttft", 5.0), Objective("tpot", 0.05))
    assert [str(one) for one in slo.runs] == ["ttft_p95 <= 5s", "goodput >= 95%"]
    assert Slo().turns == Slo().runs == ()


@pytest.mark.parametrize("name", [*TURN, *RUN])
def test_what_is_written_is_read_back(name):
    unit = Objective(name, 1.0).figure.unit
    for value in {"time": (0.05, 5.0, 1 / 3), "share": (0.0, 0.95, 1 / 3), "rate": (4.2, 30.0, 1 / 3)}[unit]:
        assert limit_of(name, limit_text(name, value)) == value


WRONG = [
    # text behind slo:, what the line must say
    ("{run: {ttft_p59: 5s}}", ["p.yaml:2:7", "ttft_p59 is no figure", "did you mean 'ttft_p99'?"]),
    ("{run: {ttft: 5s}}", ["ttft is of one turn", "slo.turn", "ttft_p95"]),
    ("{turn: {tfft: 5s}}", ["p.yaml:2:14", "slo.turn.tfft", "did you mean 'ttft'?"]),
    ("{run: {ttft_p95: 5}}", ["ttft_p95: a duration needs a unit"]),
    ("{run: {goodput: 950}}", ["goodput: should be a share", "950"]),
    ("{run: {reuse: 1.5}}", ["reuse: should be a share"]),
    ("{run: {output_per_gpu: fast}}", ["output_per_gpu: should be tokens per second", "fast"]),
    ("{run: {output_per_gpu: 0}}", ["should be above 0"]),
    ("{run: {output_per_gpu: .inf}}", ["inf"]),
    ("{turn: {ttft: 0s}}", ["ttft should be longer than nothing"]),
    ("{run: 5}", ["names with limits"]),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_mistakes_in_a_plan(text, says):
    with pytest.raises(BadInput) as caught:
        load_plan("p.yaml", text=f"{HEAD}slo: {text}\n")
    for part in says:
        assert part in str(caught.value)


WRONG_OPTIONS = [
    ("ttft_p95=5", "--slo ttft_p95=5: ttft_p95: a duration needs a unit"),
    ("tfft_p95=5s", "did you mean 'ttft_p95'?"),
    ("speed=1", "there are ttft, ttft_from_due"),
    ("ttft_p95 >= 5s", "ttft_p95 is good where it is <= a limit"),
    ("goodput <= 95%", "goodput is good where it is >= a limit"),
    ("ttft_p95", "ttft_p95 is no objective (such as ttft_p95 <= 5s)"),
    ("ttft_p95=5s,", "nothing is no objective"),
    ("reuse=1%,reuse=2%", "reuse is there twice"),
]


@pytest.mark.parametrize(("text", "says"), WRONG_OPTIONS)
def test_mistakes_on_the_command_line(text, says):
    with pytest.raises(BadInput) as caught:
        slo_of([text])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_come_on_top_of_a_plan_and_go_into_one():
    plan = load_plan(text=HEAD + "slo: {turn: {ttft: 5s}, run: {ttft_p95: 5s}}\n")
    more = slo_of(["ttft=1s, reuse >= 50%", "tpot=20ms"])
    both = plan.slo.under(more)
    assert (both.turn.ttft, both.turn.tpot, both.run) == (1.0, 0.02, {"ttft_p95": 5.0, "reuse": 0.5})
    assert plan.changed(as_sets([*more.turns, *more.runs])).slo == both
    assert objectives_of("ttft_p95 <= 5s", "x") == objectives_of("ttft_p95=5s", "x") == [Objective("ttft_p95", 5.0)]
