"""agentx fit: a trace to a spec that makes such traffic; poor traces say what cannot be known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from making import header, linear

from agentx import reuse
from agentx.cli import check, fit
from agentx.cli.main import main
from agentx.core import Session
from agentx.generator.expect import Measured
from agentx.generator.sessions import sessions
from agentx.generator.spec import WorkloadSpec, load_spec
from agentx.generator.write import generate
from agentx.trace import TraceWriter


@pytest.fixture(autouse=True)
def few_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spec's own check makes some hundred sessions here; as many as `agentx check` would take too long."""
    for name, value in (("LEAST", 150), ("ENOUGH_TURNS", 3000), ("MOST", 400)):
        monkeypatch.setattr(check, name, value)


def write(path: Path, *made: Session, **more: object) -> Path:
    with TraceWriter(path, header(**more)) as writer:
        for each in made:
            writer.session(each)
    return path


def again(trace: Path) -> WorkloadSpec:
    """The spec that a trace is fitted to, read back."""
    out = trace.with_suffix(".yaml")
    assert main(["fit", str(trace), "-o", str(out)]) == 0
    return load_spec(out)


def measured(spec: WorkloadSpec, seed: int, count: int) -> tuple[Measured, float]:
    found = Measured()
    share = reuse.possible(found.watch(sessions(spec, seed, count))).share
    assert share is not None
    return found, share


@pytest.mark.parametrize(("workload", "count"), [("claude-code", 100), ("swe-coder-short", 150)])
def test_a_round_trip_keeps_medians_and_possible_reuse(workload: str, count: int, tmp_path: Path) -> None:
    first = load_spec(workload)
    trace = generate(first, seed=3, sessions=count, out=tmp_path / "first.trace")
    before, kept = measured(first, 3, count)
    after, share = measured(again(trace), 3, count)
    for name in ("isl", "osl", "fresh", "tool_gap"):
        assert after.statistic(f"{name}_p50") == pytest.approx(before.statistic(f"{name}_p50"), rel=0.1), name
    assert after.statistic("loop_mean") == pytest.approx(before.statistic("loop_mean"), rel=0.1)
    assert share == pytest.approx(kept, abs=0.01)


def test_the_spec_passes_its_own_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = generate(load_spec("swe-coder-short"), seed=1, sessions=60, out=tmp_path / "a.trace")
    again(trace)
    told = capsys.readouterr()
    assert "tokens.tool_result" in told.out
    assert "lognormal" in told.out
    assert "not known: later user messages" in told.err
    assert main(["check", str(tmp_path / "a.yaml")]) == 0
    assert "all met" in capsys.readouterr().out
    text = (tmp_path / "a.yaml").read_text()
    assert "KS 0.0" in text
    assert "possible_reuse: {target: 0.9" in text


@pytest.mark.parametrize(
    ("made", "more", "told"),
    [
        ([linear(4)], {}, "how sessions differ: the trace has one"),  # one session
        ([linear(1)], {}, "tool calls and their results: no turn follows any"),  # one turn
        ([linear(3, id=f"s{n}") for n in range(30)], {}, "later user messages"),  # all lengths alike
        ([linear(2, id=f"s{n}") for n in range(3)], {"content": "opaque"}, "content, so layers are as the importer"),
        ([linear(2, id=f"s{n}", blocks_scope=f"scope/s{n}") for n in range(3)], {"identity": "session"},
         "its identities hold inside one session"),
        ([linear(0), linear(2, id="b")], {}, "1 sessions without a turn"),
    ],
)  # fmt: skip
def test_poor_traces_say_what_cannot_be_known_and_give_a_valid_spec(
    made: list[Session],
    more: dict[str, object],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = again(write(tmp_path / "poor.trace", *made, **more))
    assert told in capsys.readouterr().err
    assert spec.sessions == sum(bool(each.turns) for each in made)
    assert next(sessions(spec, 0, 1)).turns
    assert main(["check", str(tmp_path / "poor.yaml")]) == 0


def test_what_sessions_share_is_found_by_identity(tmp_path: Path) -> None:
    shared = again(write(tmp_path / "a.trace", *(linear(3, id=f"s{n}") for n in range(4))))
    assert (shared.layers.tools, shared.layers.system, shared.layers.files) == (40, 25, None)
    alone = again(write(tmp_path / "b.trace", linear(3)))
    assert (alone.layers.tools, alone.layers.system) == (0, 0)
    assert alone.layers.files is not None
    assert alone.layers.files.tokens.fixed == 65


def test_a_round_trip_of_sessions_whose_identities_are_their_own(tmp_path: Path) -> None:
    """As Weka files have them: what is at the front of a session is in no other one."""
    source = load_spec("swe-coder-short", sets=["turns.loop={uniform: {low: 3, high: 9}}"])
    own = [
        replace(each, segments={**each.shared, **each.segments}, shared={}, blocks_scope=f"scope/{each.id}")
        for each in sessions(source, 0, 120)
    ]
    before = Measured()
    kept = reuse.possible(before.watch(iter(own))).share
    spec = again(write(tmp_path / "own.trace", *own, identity="session", content="opaque"))
    after, share = measured(spec, 1, 120)
    assert share == pytest.approx(kept, abs=0.01)
    assert spec.layers.tools == 0
    for name in ("isl", "osl", "fresh", "turns"):
        assert after.statistic(f"{name}_p50") == pytest.approx(before.statistic(f"{name}_p50"), rel=0.1), name


@pytest.mark.parametrize(
    ("out", "told"),
    [("spec.txt", "a spec's name ends in .yaml"), ("spec.yaml", "has no turn: nothing can be fitted")],
)
def test_mistakes_are_one_line(out: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "none.trace", linear(0))
    assert main(["fit", str(trace), "-o", str(tmp_path / out)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / out).exists()


def test_a_spec_that_may_have_been_edited_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, out = write(tmp_path / "a.trace", linear(0)), tmp_path / "mine.yaml"
    out.write_text("edited by hand")
    assert main(["fit", str(trace), "-o", str(out)]) == 2
    assert "exists already (--force overwrites it)" in capsys.readouterr().err
    assert main(["fit", str(trace), "-o", str(out), "--force"]) == 2
    assert "has no turn" in capsys.readouterr().err  # it was asked to, and went on
    assert out.read_text() == "edited by hand"


def test_examples_are_shown() -> None:
    assert "agentx fit a.trace -o mine.yaml" in fit.EPILOG
