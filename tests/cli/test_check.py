"""agentx check: verdicts on specs, findings on traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentx.cli import check
from agentx.cli.main import main

EXPECTS = (
    "expect={isl_p50: {target: 14400, tolerance: 15%, source: a paper},"
    " possible_reuse: {target: 0.97, tolerance: 0.03, source: b}}"
)


def test_a_met_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "coding-agent", "--sessions", "200", "--set", EXPECTS]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["statistic", "target", "realised", "tolerance", "verdict", "source"]
    assert rows[1][:2] == ["isl_p50", "14,400"]
    assert [row[4] for row in rows[1:3]] == ["met", "met"]
    assert rows[1][5:] == ["a", "paper"]
    assert 0.94 < float(rows[2][2]) < 1


def test_as_many_sessions_as_it_takes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LEAST": 5, "ENOUGH_TURNS": 40, "MOST": 30}.items():
        monkeypatch.setattr(check, name, value)
    single = ["--set", "turns.user=1", "--set", "turns.parallel=1"]
    made = {}
    for loop in (1, 2, 20):
        main(["check", "coding-agent", "--set", EXPECTS, *single, "--set", f"turns.loop={loop}"])
        made[loop] = capsys.readouterr().out.splitlines()[-1].split(": ")[1]
    assert made == {
        1: "2 expectations, 30 sessions, 30 calls, seed 0",  # the most
        2: "2 expectations, 20 sessions, 40 calls, seed 0",
        20: "2 expectations, 5 sessions, 100 calls, seed 0",  # the least
    }


def test_a_distribution_as_target(capsys: pytest.CaptureFixture[str]) -> None:
    shapes = {"osl": "{median: 110, sigma: 0.895}", "human_gap": "{median: 84s, sigma: 2.2}"}
    for quantity, shape in shapes.items():
        expect = f"expect={{{quantity}_ks: {{target: {{lognormal: {shape}}}, tolerance: 0.1, source: x}}}}"
        assert main(["check", "coding-agent", "--sessions", "100", "--set", expect]) == 0
        row = capsys.readouterr().out.splitlines()[1].split()
        assert row[:3] == [f"{quantity}_ks", "as", "lognormal"]
        assert float(row[3]) < 0.1  # a distance has no unit


def test_a_missed_spec_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sessions", "50", "--set", EXPECTS, "--set", "expect.isl_p50.target=900", "--set", "turns.user=1"]
    assert main(["check", "coding-agent", *words]) == 3
    out = capsys.readouterr().out
    assert "MISSED" in out
    assert "2 expectations, 50 sessions, " in out


def test_what_does_not_occur_is_unknown_and_missed(capsys: pytest.CaptureFixture[str]) -> None:
    expect = "expect={human_gap_p50: {target: 84s, tolerance: 15%, source: x}}"
    assert main(["check", "coding-agent", "--sessions", "5", "--set", expect, "--set", "turns.user=1"]) == 3
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["human_gap_p50", "84s", "unknown", "15%", "MISSED"]


def test_nothing_expected_is_not_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "coding-agent", "--set", "expect={}"]) == 0
    out = capsys.readouterr().out
    assert "not checked" in out
    assert "met" not in out
    assert "pass" not in out


def test_a_spec_without_room_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "coding-agent", "--set", "expect={}", "--set", "context_limit=3000"]) == 2
    assert "no turn fits" in capsys.readouterr().err


def test_a_good_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.trace"
    assert main(["generate", "coding-agent", "--sessions", "3", "-o", str(out)]) == 0
    assert main(["check", str(out)]) == 0
    assert capsys.readouterr().out.endswith("turns, no errors\n")


def test_a_trace_whose_numbers_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.jsonl"
    assert main(["generate", "coding-agent", "--sessions", "1", "-o", str(out)]) == 0
    lines = [line.replace('"isl":', '"isl":1,"was":') for line in out.read_text().splitlines()]
    out.write_text("\n".join(lines) + "\n")
    assert main(["check", str(out)]) == 2
    found = capsys.readouterr().out
    assert "error: a prompt's pieces hold more tokens than its isl" in found
    assert "first in session s0 turn 0" in found


def test_what_is_not_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.trace"
    path.write_text("hello")
    assert main(["check", str(path)]) == 2
    assert "not an agentx trace" in capsys.readouterr().err


def test_verdicts_as_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "coding-agent", "--sessions", "50", "--json", "--set"]
    assert main([*words, EXPECTS.replace("14400", "900")]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["sessions"]) == ("agentx/check/1", 50)
    missed, met = document["expectations"]
    assert (missed["statistic"], missed["target"], missed["met"]) == ("isl_p50", 900, False)
    assert missed["tolerance"] == pytest.approx(135)  # 15 % of 900
    assert missed["realised"] > 900
    assert (met["statistic"], met["met"], met["source"]) == ("possible_reuse", True, "b")
    assert main([*words, "expect={}"]) == 0
    assert json.loads(capsys.readouterr().out)["expectations"] == []


def test_findings_as_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.trace"
    assert main(["generate", "coding-agent", "--sessions", "2", "-o", str(path)]) == 0
    capsys.readouterr()
    assert main(["check", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["sessions"], document["errors"], document["findings"]) == (2, 0, [])
