"""What a replay is refused for before it begins, and how plans and targets come together."""

from __future__ import annotations

import pytest

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import BadInput
from agentx.replayer.plan import load_plan
from agentx.replayer.run import replay
from agentx.trace import TraceWriter


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "a.trace"
    turns = [
        Turn(at, 0, Prompt((Piece(1, 0, 20),)), 20, Output(2), (at - 1,) if at else (), Gap("tool", 200.0))
        for at in (0, 1)
    ]
    with TraceWriter(path, Header(name="a", scope="a")) as writer:
        writer.session(Session("s", tuple(turns), segments={1: Segment(1, "user", 20)}))
    return path


REFUSED = [
    # arguments, what the one line says
    ({}, "no trace to replay"),
    ({"trace": "missing.trace"}, "no such file"),
    ({"trace": "codin-agent"}, "did you mean 'coding-agent'"),
    ({"plan": "smok"}, "did you mean 'smoke'"),
    ({"target": "lapptop"}, "did you mean 'laptop'"),
    ({"sets": ["load.lanes=2"]}, "--set load.lanes=2: load.lanes: unknown key"),
    ({"sets": ["target.cache.poool=2"]}, "unknown key"),
    ({"sets": ["history=live-ids"]}, "history live-ids does not go with the wire chat"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED)
def test_what_is_refused_leaves_nothing_behind(trace, tmp_path, arguments, says):
    with pytest.raises(BadInput, match=says):
        replay(**({"trace": trace} if arguments else {}) | arguments, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_plan_may_name_trace_and_target(trace, tmp_path, capsys):
    plan = tmp_path / "p.yaml"
    plan.write_text(f"agentx: replay/1\ntrace: {trace}\ntarget: laptop\ngaps: {{scale: 0}}\nseed: 7\n")
    run = replay(plan=plan, out=tmp_path / "run", sets=["target.cache.pool=500", "seed=8"], salt="abc")
    assert run.complete
    assert (run.settings["salt"], run.settings["seed"]) == ("abc", 8)
    assert run.settings["target"]["cache"]["pool"] == 500
    assert run.settings["plan"]["trace"] == str(trace)
    assert capsys.readouterr().err == ""  # a plan was given: nothing was chosen


def test_without_a_plan_the_pauses_are_chosen_and_it_is_said(trace, tmp_path, capsys, monkeypatch):
    run = replay(trace, out=tmp_path / "run", sets=["gaps.tree_idle_cap=10ms"], progress=True)
    assert run.settings["plan"]["gaps"] == {
        "scale": 1.0,
        "tree_idle_cap": "10ms",
        "system_idle_cap": None,
    }  # they were the user's
    assert "no plan given" not in capsys.readouterr().err
    monkeypatch.setattr("agentx.replayer.defaults.CAP", 0.01)
    run = replay(trace, out=tmp_path / "chosen", progress=True)
    assert run.settings["plan"]["gaps"] == {"scale": 0.3, "tree_idle_cap": "10ms", "system_idle_cap": None}
    assert "pauses of 1 sessions (200 s) are scaled by 0.3" in capsys.readouterr().err
    assert "scaled by 0.3" in run.notes[0]
    run = replay(trace, plan=load_plan(sets=["gaps.scale=0"]), out=tmp_path / "other", sets=["abort=skip"])
    assert (run.settings["plan"]["abort"], run.settings["plan"]["gaps"]["scale"]) == ("skip", 0.0)
