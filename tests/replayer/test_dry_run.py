"""A dry run says what a run with a fixed amount of work then sends, to the token."""

from __future__ import annotations

import dataclasses
import json

import pytest

from agentx.cli.main import main
from agentx.core import Gap, Header, Observed, Output
from agentx.engine.server import running
from agentx.engine.settings import load_engine
from agentx.errors import EXIT_OK, BadInput, Unreachable
from agentx.replayer.dry_run import dry_run
from agentx.replayer.plan import load_plan
from agentx.replayer.run import replay
from agentx.replayer.simulate import simulate
from agentx.trace import TraceWriter
from tests.making import linear


def varied(number):
    session = linear(4 + number % 3, id=f"s{number}", fresh=30 + 7 * number, reply=9 + number)
    turns = [dataclasses.replace(turn, gap=Gap("tool", 2.0 + turn.index)) for turn in session.turns]
    if number == 1:
        turns[-1] = dataclasses.replace(turns[-1], output=Output(0), reply=None)
    return dataclasses.replace(session, turns=tuple(turns), arrival=4.0 * number)


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(5):
            writer.session(varied(number))
    return tmp_path / "t.trace"


PLANS = [
    # keys -> what is left out: (overflows, aborted)
    ([], (0, 0)),
    (["wire=generate", "history=live-ids"], (0, 0)),
    (["load.sessions=3", "order=shuffle", "abort=skip"], (0, 1)),
    (["target.context=200", "overflow=drop_turn"], (14, 0)),
    (["target.context=200", "overflow=end_session"], None),
    (["measure={sessions: 8}", "load.sessions=2"], (0, 0)),
    (["load={rate: {per_second: 0.5}}", "wire=completions-ids"], (0, 0)),
    (["load={requests: 2}", "history=live"], (0, 0)),
    (["load.sessions=2", "start={min: 0.2, max: 0.6}", "warmup.turns=1"], (0, 0)),
]


@pytest.mark.parametrize("play", [simulate, replay])
@pytest.mark.parametrize(("sets", "left_out"), PLANS)
def test_a_fixed_amount_of_work_is_foretold_to_the_token(trace, tmp_path, play, sets, left_out):
    sets = ["gaps.scale=0.01" if play is replay else "gaps.scale=1", *sets]
    told = dry_run(trace, plan=load_plan(), sets=sets)
    run = play(trace, plan=load_plan(), sets=sets, out=tmp_path / "run", salt="x")
    measured = [attempt for attempt in run.attempts if attempt.phase == "measure"]
    warming = [attempt for attempt in run.attempts if attempt.phase == "warmup"]
    assert told.fixed
    assert (told.plays, told.turns, told.warmup_turns) == (len(run.plays), len(measured), len(warming))
    assert told.prompt_tokens == sum(attempt.prompt_tokens for attempt in measured)
    assert told.warmup_prompt_tokens == sum(attempt.prompt_tokens for attempt in warming)
    assert told.output_tokens == sum(attempt.completion_tokens for attempt in measured)
    assert left_out is None or (told.overflows, told.aborted) == left_out
    assert told.overflows + told.aborted == sum(one.extra.get("dropped", 0) for one in run.plays) or left_out is None


def test_duration_and_cost_of_an_engine(trace, tmp_path):
    sets = ["gaps.scale=1", "target.gpus=4", "target.price.gpu_hour=9"]
    told, run = dry_run(trace, sets=sets), simulate(trace, sets=sets, out=tmp_path / "run")
    assert told.seconds == pytest.approx(run.end["at"], rel=0.02)
    assert told.dollars == pytest.approx(told.seconds / 3600 * 4 * 9)
    assert dry_run(trace, sets=sets[:1]).dollars is None


def test_a_server_is_asked_for_its_context(trace):
    settings = load_engine("t", text="agentx: target/1\nkind: engine\n", sets=["context=200"])
    with running(settings) as url:
        told = dry_run(trace, target=url, sets=["gaps.scale=0"])
    assert (told.overflows, told.template_known) == (14, True)
    assert told.seconds == pytest.approx(2.0 * told.turns + 0.02 * told.output_tokens)  # nothing was recorded
    assert told.dollars is None
    with pytest.raises(Unreachable):
        dry_run(trace, target="http://127.0.0.1:1")


def test_recorded_call_times_are_taken(tmp_path):
    session = linear(2)
    turns = [
        dataclasses.replace(turn, observed=Observed(start=10.0 * turn.index, end=10.0 * turn.index + 4))
        for turn in session.turns
    ]
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        writer.session(dataclasses.replace(session, turns=tuple(turns)))
    with running(load_engine("t", text="agentx: target/1\nkind: engine\n")) as url:
        assert dry_run(tmp_path / "t.trace", target=url, sets=["gaps.scale=1"]).seconds == pytest.approx(4 + 1 + 4)


@pytest.mark.parametrize("sets", [["measure=10s"], ["measure={turns: 3}"], ["wire=messages"]])
def test_work_that_hangs_on_time_is_said_to(trace, sets):
    told = dry_run(trace, plan=load_plan(), sets=sets)
    assert not told.fixed
    assert "an estimate" in told.text()


def test_the_command_sends_nothing(trace, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["replay", str(trace), "--dry-run", "--sessions", "2"]) == EXIT_OK
    out = capsys.readouterr().out
    assert out.startswith("nothing was sent\n")
    assert "24 of 5 plays" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.trace"]


def test_what_a_run_is_refused_for_is_refused(trace):
    with pytest.raises(BadInput, match="does not go with the wire"):
        dry_run(trace, sets=["history=live-ids"])
    with pytest.raises(BadInput, match="decodes without speculation"):
        dry_run(trace, sets=["acceptance.length=2"])


def test_a_dry_run_is_of_one_run(trace, capsys):
    for more in (["--find", "sessions: ttft_p95 <= 1s"], ["--sweep", "seed=1,2"], ["--order-from", "run"]):
        assert main(["replay", str(trace), "--dry-run", *more]) == 2
        assert "--dry-run is of one run" in capsys.readouterr().err
    assert main(["replay", str(trace), "--dry-run", "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["turns"] == 24
