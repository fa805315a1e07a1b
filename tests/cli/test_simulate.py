"""agentx simulate as a command: the report or one document on stdout, a sweep's files, mistakes in one line."""

from __future__ import annotations

import json
import re

import pytest

from agentx.cli.main import main
from agentx.core import Header
from agentx.trace import TraceWriter
from tests.making import linear


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(3):
            writer.session(linear(4, id=f"s{number}", fresh=60, reply=8))
    return "t.trace"


def test_the_report_goes_to_stdout(trace, capsys):
    assert main(["simulate", trace, "-o", "sim", "--sessions", "2", "--seed", "4"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("agentx report: t on laptop")
    assert "seed 4" in out
    assert "no plan given" in err
    assert "results in sim" in err


def test_json_is_one_document(trace, capsys):
    assert main(["simulate", trace, "-o", "sim", "--json", "--salt", "mine"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "agentx/report/1"
    assert document["run"]["salt"] == "mine"
    assert document["run"]["requests_completed"] == 12


def test_a_sweep_leaves_a_table_a_document_and_a_plot(trace, tmp_path, capsys):
    words = ["simulate", trace, "--sweep", "target.cache.pool=600,4000", "-o", "sw", "--workers", "1"]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("agentx sweep: t, 2 simulations")
    assert {path.name for path in (tmp_path / "sw").iterdir()} == {
        "000",
        "001",
        "sweep.svg",
        "sweep.json",
        "sweep.html",
    }
    assert main([*words[:-3], "sw2", "--json", "--workers", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "sw/sweep.json").read_text())


def test_objectives_decide_the_exit_code(trace, tmp_path, capsys):
    words = ["simulate", trace, "-o", "sim", "--slo", "ttft=1h,ttft_p95=1h"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "ttft_p95 <= 1h" in out
    assert "goodput     12 of 12 turns (100.0 %) meet" in out
    assert "missed" not in err
    assert main(["report", "sim", "--slo", "ttft_p95=1us"]) == 3
    assert "agentx: objective missed: ttft_p95 <= 1us: it is" in capsys.readouterr().err
    assert main(["report", "sim", "--slo", "ttft_p9=1us"]) == 2
    assert "did you mean 'ttft_p99'?" in capsys.readouterr().err


def test_a_search_prints_the_curve_and_leaves_it(trace, tmp_path, capsys):
    words = ["simulate", trace, "--find", "sessions 1..3: ttft_p95 <= 1h", "-o", "f", "--repeats", "2"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("agentx find: t, sessions: ttft_p95 <= 1h")
    assert "agentx find: sessions 3: 2 of 2 runs met" in err
    assert {path.name for path in (tmp_path / "f").iterdir()} >= {"sessions-1", "find.svg", "find.json"}
    assert main([*words, "--json"]) == 0  # nothing is run again
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "f/find.json").read_text())
    assert main(["simulate", trace, "--find", "sessions 1..3: ttft_p95 <= 1us", "-o", "f"]) == 3


def test_repeats_are_runs_in_a_folder(trace, tmp_path, capsys):
    assert main(["simulate", trace, "--repeats", "2", "-o", "r", "--slo", "ttft_p95=1us"]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("agentx repeats: t on laptop, 2 runs")
    assert err.count("objective missed") == 2
    assert {path.name for path in (tmp_path / "r").iterdir()} == {"run-1", "run-2", "repeats.json"}


MISTAKES = [
    (["simulate", "t.trace", "--find", "rate: ttft_p95 <= 5"], "ttft_p95: a duration needs a unit"),
    (["simulate", "t.trace", "--find", "rate: ttft_p95 <= 5s", "--sweep", "seed=1,2"], "--find and --sweep"),
    (["simulate", "t.trace", "--find", "pool: ttft_p95 <= 5s"], "there are rate, sessions, requests"),
    (["simulate", "missing.trace", "--find", "rate: ttft_p95 <= 5s"], "no such file"),
    (["simulate", "t.trace", "--repeats", "0"], "repeats: should be greater than or equal to 1"),
    (["simulate", "t.trace", "--slo", "ttft_p95=5"], "a duration needs a unit"),
    (["simulate"], "no trace to replay"),
    (["simulate", "t.trace", "--target", "http://127.0.0.1:1"], "is a server, and only an engine can be simulated"),
    (["simulate", "t.trace", "--workers", "2"], "there is no --sweep"),
    (["simulate", "t.trace", "--sweep", "seed=1", "--workers", "0"], "at least 1 is needed"),
    (["simulate", "t.trace", "--sweep", "sed=1"], "--sweep sed=1: sed: unknown key, did you mean 'seed'?"),
    (["simulate", "t.trace", "--sweep", "seed="], "no values"),
    (["simulate", "t.trace", "--set", "target.cache.pool=0"], "greater than or equal to 1"),
]


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_mistakes_are_one_line_and_leave_nothing(trace, tmp_path, capsys, words, says):
    assert main(words) == 2
    err = capsys.readouterr().err.splitlines()
    assert says in err[-1]
    assert len(err) <= 2  # what was chosen, where no plan was given
    assert [path.name for path in tmp_path.iterdir()] == ["t.trace"]


def test_a_run_in_which_every_turn_failed(trace, capsys):
    words = ["simulate", trace, "-o", "sim", "--set", "timeouts.stall=1s", "--set", "target.timing.prefill_batch=9s"]
    assert main(words) == 4
    assert "every turn failed" in capsys.readouterr().err


def test_the_cliff_is_found_without_a_folder(trace, tmp_path, capsys):
    words = [
        "simulate",
        trace,
        "--find-cliff",
        "--draws",
        "2",
        "--set",
        "target.cache.pool=600",
        "--set",
        "measure=30s",
    ]
    assert main(words) == 0
    assert "falls off at" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"t.trace"}
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "agentx/cliff/1"
    assert main([*words, "-o", "sim"]) == 2
    assert "they take no --sweep, no --find and no folder" in capsys.readouterr().err
    assert main(["simulate", trace, "--draws", "3"]) == 2
    assert "--draws 3: it is how many plays --find-cliff or --forecast makes" in capsys.readouterr().err


def test_a_forecast_is_made_given_to_a_replay_and_scored(trace, tmp_path, capsys):
    assert main(["simulate", trace, "--forecast", "f.yaml", "--draws", "2"]) == 0
    assert "reuse_share: {low:" in capsys.readouterr().out
    assert main(["simulate", trace, "--forecast", "f.yaml"]) == 2
    assert "not written over" in capsys.readouterr().err
    assert main(["replay", trace, "--forecast", "f.yaml", "-o", "runs/one"]) in (0, 5)  # 5: a busy machine
    assert re.search(r"forecast +\d of \d figures inside their intervals", capsys.readouterr().out)
    assert main(["list", "forecasts", "runs"]) == 0
    assert "forecasts made with laptop" in capsys.readouterr().out
    (tmp_path / "none.yaml").write_text("agentx: plan/1\n")
    assert main(["replay", trace, "--forecast", "none.yaml", "-o", "runs/two"]) == 2
    assert not (tmp_path / "runs/two").exists()
