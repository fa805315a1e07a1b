"""agentx compare: sides from the command line, three forms, and the refusal of what is not comparable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from making import header, linear

from agentx.cli.main import main
from agentx.replayer.simulate import simulate
from agentx.trace import TraceWriter


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulations of one trace: two alike, one with a cache that holds less than a session."""
    folder = tmp_path_factory.mktemp("runs")
    with TraceWriter(folder / "a.trace", header("agents")) as trace:
        for name in ("a", "b", "c"):
            trace.session(linear(6, id=name, fresh=100))
    for name, sets in (("large", []), ("again", []), ("small", ["target.cache.pool=1300"])):
        simulate(folder / "a.trace", out=folder / name, sets=["load.sessions=3", *sets])
    (folder / "capture").mkdir()
    (folder / "capture" / "manifest.json").write_text("{}")
    return folder


def test_a_trace_beside_its_replay(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "a.trace"), str(runs / "large"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["turns"], found["answered"]) == ("agentx/compare-recorded/1", 18, 18)
    # The lengths of this trace are those of its parts, without the template that the engine adds.
    assert found["template"] == {"per_message": 1, "start": 1}
    assert main(["compare", str(runs / "a.trace"), str(runs / "large"), "--strict"]) == 5
    assert "not as recorded: 18 of 18 prompts" in capsys.readouterr().err
    assert main(["compare", str(runs / "large"), str(runs / "a.trace"), "--json"]) == 0  # whichever comes first
    assert json.loads(capsys.readouterr().out) == found


def test_a_smaller_cache_reuses_less(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "large"), str(runs / "small"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (pair,) = found["pairs"]
    assert (pair["paired"], pair["same_turns"], pair["comparable"]) == (True, 18, True)
    figures = {row["name"]: row["same_turns"] and row["same_turns"]["ratio"] for row in pair["figures"]}
    assert figures["reuse_share"] < 0.9
    assert figures["ttft_mean_seconds"] > 1
    assert [caveat["kind"] for caveat in pair["caveats"]] == ["server_flags", "target"]


def test_the_same_run_twice_raises_nothing(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "large"), str(runs / "again"), "--strict"]) == 0
    text = capsys.readouterr().out
    assert "Know before use" not in text
    assert "one pair, 3 sessions: no interval" in text
    assert main(["compare", str(runs / "large"), str(runs / "again"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["caveats"] == []


def test_strict_refuses_and_prints_no_ratio(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate(runs / "a.trace", out=tmp_path / "two", sets=["load.sessions=2"])
    assert main(["compare", str(runs / "large"), str(tmp_path / "two"), "--strict"]) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert "load.sessions 3 / 2" in told.err
    assert main(["compare", str(runs / "large"), str(tmp_path / "two")]) == 0


def test_repeats_by_side(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--a", str(runs / "large"), str(runs / "again"), "--b", str(runs / "small"), "--markdown"]
    assert main(["compare", *words]) == 0
    assert "2 and 1 runs: no interval" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["large"], "two runs are needed"),
        (["--a", "large", "again"], "two runs are needed"),
        (["large", "--b", "small"], "give either RUN RUN"),
        (["large", "large"], "this run is given twice"),
        (["large", "gone"], "no such run folder"),
        (["a.trace"], "a trace stands beside one run"),
        (["a.trace", "large", "small"], "a trace stands beside one run"),
        (["a.trace", "large", "--html", "x"], "are for runs against runs"),
        (["a.trace", "capture"], "has no run.json"),
        (["a.trace", "a.trace"], "is a file, a run folder is needed"),
        (["capture", "large"], "this is a capture, which is private and not played"),
    ],
)
def test_mistakes_are_one_line(runs: Path, words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *(word if word.startswith("-") else str(runs / word) for word in words)]) == 2
    told = capsys.readouterr()
    assert line in told.err
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_beside_a_reference(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "large"), "--reference", "prosgrow-mi325x-glm-5.2-fp8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["row"] for row in found["rows"]] == ["baseline", "optimised"]
    assert main(["compare", str(runs / "large"), "--reference", "inferencex-mi325x-glm-5.2-fp8", "--row", "c4"]) == 0
    assert "run/published" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--reference", "gone"], "no reference named 'gone'"),
        (["--row", "c4"], "--row is of a reference"),
        (["again", "--reference", "x"], "one run stands beside a reference"),
        (["--reference", "x", "--strict"], "--strict is for runs"),
        (["--reference", "x", "--decide"], "--decide is for repeats"),
    ],
)
def test_mistakes_with_references(runs: Path, words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = [str(runs / word) if word == "again" else word for word in words]
    assert main(["compare", str(runs / "large"), *more]) == 2
    assert line in capsys.readouterr().err
