"""Every policy for turns that do not fit: what is sent, said and accounted for is the same, simulated or over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import header, linear

from agentx.replayer.dry_run import dry_run
from agentx.replayer.run import replay
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.results import RunResults
from agentx.run_reuse import run_reuse
from agentx.trace import TraceWriter

SETS = ["gaps.scale=0", "target.context=220", "target.cache.pool=4000"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A long session, of which the turns 8 ... 11 do not fit 220 tokens, and a short one."""
    path = tmp_path / "a.trace"
    with TraceWriter(path, header()) as writer:
        for session in (linear(12, id="long"), linear(3, id="short")):
            writer.session(session)
    return path


def sent(run: RunResults) -> list[tuple[str, int, int | None]]:
    return [(one.session, one.turn, one.prompt_tokens) for one in run.attempts]


POLICIES = [
    # the policy, turns of each session that are sent
    ("drop_turn", [8, 3]),
    ("end_session", [8, 3]),
    ("skip_session", [0, 3]),
    ("truncate", [12, 3]),
    ("fail", [8, 0]),
]


@pytest.mark.parametrize(("policy", "turns"), POLICIES)
@pytest.mark.parametrize("shape", ["plain", "tools"])
def test_policies(trace: Path, tmp_path: Path, policy: str, turns: list[int], shape: str) -> None:
    context = 220 + (200 if shape == "tools" else 0)
    sets = [*SETS, f"overflow={policy}", f"messages={shape}", f"target.context={context}"]
    simulated = simulate(trace, out=tmp_path / "sim", sets=sets, salt="x")
    replayed = replay(trace, out=tmp_path / "run", sets=sets, salt="x")
    assert sent(simulated) == sent(replayed)
    assert all(one.ok for one in replayed.attempts)
    if shape == "plain":
        played = [one.session for one in replayed.attempts]
        assert [played.count("long"), played.count("short")] == turns
    told = dry_run(trace, sets=sets)
    assert (told.turns, told.prompt_tokens) == (len(sent(replayed)), sum(prompt or 0 for *_, prompt in sent(replayed)))
    reuse = run_reuse(replayed)
    assert (reuse.drift, reuse.ideal.reused) == (
        0,
        sum((one.cached.total or 0) for one in replayed.attempts if one.cached),
    )
    assert replayed.books().balanced


def test_skipped_sessions_are_weighed(trace: Path, tmp_path: Path) -> None:
    sets = [*SETS, "overflow=skip_session"]
    run = replay(trace, out=tmp_path / "run", sets=sets)
    found = report(run).document()
    assert found["adjustments"]["skipped_sessions"] == 1
    assert found["adjustments"]["skipped_turns"] == 12
    assert found["adjustments"]["skipped_share"] == pytest.approx(1890 / (1890 + 270))
    assert "skipped_sessions" in [one["kind"] for one in found["findings"]]
    words = "1 of 2 sessions, 12 of 15 turns, 88% of the prompt tokens"
    assert any(words in note for note in run.notes)
    assert words in dry_run(trace, sets=sets).text()


def test_shortened_prompts_are_told(trace: Path, tmp_path: Path) -> None:
    run = simulate(trace, out=tmp_path / "run", sets=[*SETS, "overflow=truncate"])
    found, reuse = report(run).document(), run_reuse(run)
    lost = sum(one.extra.get("shortened", 0) for one in run.attempts)
    assert (found["adjustments"]["shortened_turns"], found["adjustments"]["shortened_tokens"]) == (4, lost)
    assert lost > 0
    assert reuse.possible.tokens - sum(one.prompt_tokens or 0 for one in run.attempts) == lost - reuse.ideal.template
    assert reuse.possible_less_ideal.truncation > lost  # what stands behind the cut is met by nothing, either
    assert reuse.possible_less_ideal.total == reuse.possible.reused - reuse.ideal.reused
    assert found["reuse"]["ideal"]["possible_less_ideal"]["truncation_tokens"] == reuse.possible_less_ideal.truncation
    assert "lose" in dry_run(trace, sets=[*SETS, "overflow=truncate"]).text()
