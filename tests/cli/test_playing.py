"""What replay and simulate share: options that become overrides, and the exit code of a run that was reported."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest

from agentx.cli.playing import add_shared, code_of, gate, sets_of
from agentx.core import Attempt, Failure
from agentx.errors import BadInput, InvalidMeasurement, Unreachable
from agentx.replayer.slo import Objective
from agentx.reporter.findings import Finding
from agentx.reporter.goodput import Judged, Verdict


def parsed(*words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    add_shared(parser)
    return parser.parse_args(words)


def test_options_are_overrides_of_the_plan():
    args = parsed("--set", "seed=1", "--sessions", "4", "--seed", "2", "--repeats", "3", "--slo", "ttft=1s,reuse=50%")
    assert sets_of(args) == [
        "seed=1", "load.sessions=4", "seed=2", "repeats=3", "slo.turn.ttft=1s", "slo.run.reuse=50%",
    ]  # fmt: skip
    assert sets_of(parsed()) == []


def run(*failures, outcome="done"):
    attempts = [
        Attempt("a", 0, turn, 0, 0, 0.0, 0.0, 9, 9, failure=None if kind is None else Failure(kind, "why"))
        for turn, kind in enumerate(failures)
    ]
    return SimpleNamespace(attempts=attempts, end={"outcome": outcome})


def judged(*values):
    verdicts = tuple(Verdict(Objective("ttft_p95", 1.0), value) for value in values)
    return SimpleNamespace(findings=(), judged=Judged(None, verdicts))


def test_the_exit_code_of_a_run(capsys):
    assert code_of(run(None)) == 0
    assert code_of(run(None, "http"), judged(0.5)) == 0
    assert code_of(run(None), judged(0.5, 2.0)) == 3
    assert capsys.readouterr().err == "agentx: objective missed: ttft_p95 <= 1s: it is 2.00 s\n"
    assert code_of(run(None), judged(None)) == 3  # what cannot be told is not met
    assert code_of(run(None, outcome="interrupted"), judged(2.0)) == 130
    with pytest.raises(Unreachable, match="every turn failed"):
        code_of(run("http", "cut"))
    with pytest.raises(BadInput, match="nothing was sent"):
        code_of(run())
    invalid = SimpleNamespace(findings=(Finding("books", "They do not balance."),), judged=judged(2.0).judged)
    with pytest.raises(InvalidMeasurement, match="They do not balance"):  # before any objective
        code_of(run(None), invalid)


def test_nothing_asked_is_nothing_missed():
    assert gate(judged().judged) == 0
