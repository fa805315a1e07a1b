"""Tool-shaped messages from plan to report: what is sent is what is accounted for, on every wire and history."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear, with_tools

from agentx.core import Attempt
from agentx.replayer.run import replay
from agentx.replayer.simulate import simulate
from agentx.results import RunResults
from agentx.run_reuse import run_reuse
from agentx.trace import TraceWriter

SETS = ["messages=tools", "gaps.scale=0", "load.sessions=2"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a.trace"
    with TraceWriter(path, header()) as writer:
        for session in (with_tools(5), linear(3, id="plain")):
            writer.session(session)
    return path


def cached(attempt: Attempt) -> int | None:
    return None if attempt.cached is None else attempt.cached.total


def explained(run: RunResults) -> None:
    """Every prompt token is accounted for, and an engine without pressure gives exactly the ideal."""
    reuse = run_reuse(run)
    assert len(run.attempts) == 8
    assert all(attempt.ok for attempt in run.attempts)
    assert (reuse.drift, reuse.ideal.tokens) == (0, sum(attempt.prompt_tokens or 0 for attempt in run.attempts))
    told = [(reuse.by_attempt[one.session, one.play, one.turn, one.attempt], cached(one)) for one in run.attempts]
    assert all(ideal == observed for ideal, observed in told)
    assert reuse.ideal.template > 8 * 10


@pytest.mark.parametrize("wire", ["chat", "messages"])
@pytest.mark.parametrize("history", ["recorded", "live"])
def test_ideal_is_what_the_engine_gives(trace: Path, tmp_path: Path, wire: str, history: str) -> None:
    sets = [*SETS, f"wire={wire}", f"history={history}"]
    sets += ["load.sessions=1"]  # one at a time: nothing is still in flight that a later prompt shares
    simulated = simulate(trace, out=tmp_path / "sim", sets=sets, salt="x")
    explained(simulated)
    replayed = replay(trace, out=tmp_path / "run", sets=sets, salt="x")
    explained(replayed)
    assert {(one.session, one.turn): one.prompt_tokens for one in simulated.attempts} == {
        (one.session, one.turn): one.prompt_tokens for one in replayed.attempts
    }


@pytest.mark.parametrize("salt", ["session", "none", "field", "field-session"])
def test_salts_keep_them_apart_as_the_accounting_says(trace: Path, tmp_path: Path, salt: str) -> None:
    explained(simulate(trace, out=tmp_path / "sim", sets=[*SETS, "load.sessions=1", f"salt={salt}"], salt="x"))


def test_they_change_what_is_sent(trace: Path, tmp_path: Path) -> None:
    tools = simulate(trace, out=tmp_path / "tools", sets=SETS, salt="x")
    plain = simulate(trace, out=tmp_path / "plain", sets=[*SETS, "messages=plain"], salt="x")
    more = run_reuse(tools).ideal.template - run_reuse(plain).ideal.template
    assert sum(one.prompt_tokens or 0 for one in tools.attempts) == more + sum(
        one.prompt_tokens or 0 for one in plain.attempts
    )
    assert more > 0
