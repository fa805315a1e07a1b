from __future__ import annotations

import csv
import json

import pytest
from making_aiperf import answered, ns, row, summary, write_rows

from agentx.cli.main import main
from agentx.errors import BadInput
from agentx.reporter.compare import compare
from agentx.reporter.foreign import read_run
from agentx.reporter.reporting import report


def write(folder, rows, **documents):
    write_rows(folder, rows)
    for name, content in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def made(tmp_path):
    """A warm-up request; two answered turns of s0, at 1000 ... 1100 and 2000 ... 2200 ms; a refused one of s1."""
    rows = [
        answered("s0", 0, start=10, phase="warmup"),
        answered("s0", 1, start=1000),
        answered("s0", 2, start=2000, request_latency=200.0, inter_chunk_latency=[80.0, 80.0]),
        row("s1", 0, start=1500, end=1501, due=1500, error={"type": "ClientConnectorError", "message": "no"}),
    ]
    return write(tmp_path / "peer", rows, profile_export_aiperf=summary())


def test_figures_are_those_of_the_rows_by_hand(tmp_path):
    found = report(made(tmp_path))
    metrics = found.metrics
    assert (metrics.attempts, metrics.completed, metrics.other_phases) == (3, 2, {"warmup": 1})
    assert metrics.latency.ttft.at(50) == pytest.approx(0.040)
    assert metrics.latency.ttft_from_due.at(50) == pytest.approx(0.050)  # each left 10 ms after its credit
    assert metrics.latency.latency.mean == pytest.approx((0.100 + 0.200) / 2)
    # 3 tokens in 3 chunks: (100 - 40) / 2 = 30 ms, (200 - 40) / 2 = 80 ms
    assert metrics.latency.tpot.mean == pytest.approx((0.030 + 0.080) / 2)
    assert metrics.latency.tpot_estimated == 2
    # completed: 6 tokens from 1.000 s to the last end, 2.101 s
    flow = metrics.throughput.completed
    assert flow.seconds == pytest.approx(1.101)
    assert flow.per_second(flow.output) == pytest.approx(6 / 1.101)
    assert flow.per_second(flow.input_cached) == pytest.approx(300 / 1.101)
    assert (metrics.reuse.by_request.cached, metrics.reuse.by_request.prompt) == (300, 400)
    assert [(one.kind, one.count) for one in metrics.failures] == [("refused", 1)]
    assert metrics.books.balanced


def test_what_is_not_in_the_artifacts_is_unknown(tmp_path):
    document = report(made(tmp_path)).document()
    assert document["reuse"]["ideal"] is None
    assert document["run"]["gpus"] is None
    assert document["run"]["salt"] is None
    assert document["jobs"]["whole_in_window"] is None  # no inputs.json: nobody knows how long a session is
    assert document["jobs"]["equivalents_in_window"] is None
    assert document["latency"]["inter_token_seconds"] is None


def test_the_run_is_told_as_far_as_it_is_known(tmp_path):
    about = report(made(tmp_path)).about
    assert (about.state, about.trace, about.target, about.model) == ("done", "weka", "http://127.0.0.1:9", "glm")
    assert about.plan == {"history": "recorded", "load": {"sessions": 4}, "measure": "60s", "wire": "chat"}
    assert (about.seed, about.started) == (42, "2027-01-15T08:00:00Z")


def test_the_finding_says_whose_they_are_and_what_they_lack(tmp_path):
    found = {one.kind: one.text for one in report(made(tmp_path)).findings}
    assert "Measured by AIPerf 1.0.12 (scenario agentx), which does not tell what was sent" in found["foreign"]
    assert "from its 4 rows" in found["foreign"]
    for lack in (
        "no possible and ideal reuse",
        "tokens of a chunk",
        "server's counters",
        "how many turns sessions have",
    ):
        assert lack in found["foreign"]
    assert "unsafe_override" in found["note"]
    assert "cut" not in found  # nobody knows whether the session was


def test_what_rows_lack_is_counted(tmp_path):
    bare = row("s0", 0, due=None, output_sequence_length=2, input_sequence_length=5)
    text = report(write(tmp_path, [bare])).document()["findings"]
    told = next(one["text"] for one in text if one["kind"] == "foreign")
    for lack in (
        "how the run was set up", "token counts of 1 request: lengths are the client's own",
        "the first token of 1 request", "the length that was asked for of 1 request", "when 1 request was due",
    ):  # fmt: skip
        assert lack in told
    assert report(tmp_path).about.state == "unknown"


def test_inputs_tell_how_long_sessions_are(tmp_path):
    """a: both of 2 turns, one second from send to end; b: the first of 2; c: its last failed."""
    rows = [
        answered("a", 0, start=0), answered("a", 1, start=899), answered("b", 0, start=0),
        row("c", 0, start=100, end=200, error={"message": "broke"}),
    ]  # fmt: skip
    inputs = {"data": [{"session_id": name, "payloads": [{}, {}]} for name in "abc"]}
    metrics = report(write(tmp_path, rows, inputs=inputs)).metrics
    assert (metrics.books.done, metrics.books.cut, metrics.books.failed) == (1, 1, 1)
    assert (metrics.books.turns, metrics.books.completed, metrics.books.turns_unsent) == (6, 3, 2)
    assert metrics.jobs.whole == 1
    assert metrics.jobs.equivalents == pytest.approx(1 + 1 / 2)
    assert metrics.jobs.latency.mean == pytest.approx(1.0)


def test_counters_stand_beside_the_requests(tmp_path):
    """The same 400 prompt and 300 cached tokens in one slice over both requests."""
    slice = {"start_ns": ns(990), "end_ns": ns(2300)}
    metrics = {
        "sglang:prompt_tokens": {"type": "counter", "series": [{"timeslices": [{**slice, "total": 400}]}]},
        "sglang:cached_tokens": {
            "type": "counter",
            "series": [{"labels": {"cache_source": "device"}, "timeslices": [{**slice, "total": 300}]}],
        },
    }
    folder = made(tmp_path)
    (folder / "server_metrics_export.json").write_text(json.dumps({"metrics": metrics}))
    found = report(folder)
    assert found.metrics.reuse.counters.share == 0.75
    assert found.metrics.reuse.counters.difference == 0
    assert "counters (no server" not in found.about.foreign
    assert "before the first scrape" in found.about.foreign


def test_a_summary_that_counts_otherwise_is_said(tmp_path):
    other = summary(
        request_count={"avg": 9.0}, was_cancelled=True, theoretical_prefix_cache_hit={"unit": "%", "avg": 92.58}
    )
    folder = write(tmp_path, [answered(metadata={"agent_depth": 1})], profile_export_aiperf=other)
    notes = [one.text for one in report(folder).findings if one.kind in ("note", "interrupted")]
    assert any("counts 9 answered requests, the rows 1" in note for note in notes)
    assert any("92.6 % of the prompts' blocks" in note for note in notes)
    assert any("1 conversation of subagents" in note for note in notes)
    assert any("interrupted" in note for note in notes)


def test_a_prefix_of_the_users_own(tmp_path):
    write_rows(tmp_path, [answered()], "mine.jsonl")
    (tmp_path / "mine.json").write_text(json.dumps(summary()))
    assert report(tmp_path / "mine.jsonl").about.model == "glm"


def test_the_verb_writes_every_form(tmp_path, capsys):
    folder = made(tmp_path)
    table, page = tmp_path / "turns.csv", tmp_path / "page.html"
    assert main(["report", str(folder), "--json", "--export", str(table), "--html", str(page)]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["requests_completed"] == 2
    rows = list(csv.DictReader(table.open()))
    assert [one["cached_tokens"] for one in rows] == ["150", "150", "", "150"]
    assert [one["osl"] for one in rows] == ["3", "3", "", "3"]  # of the refused one nothing is known
    assert "Measured by AIPerf" in page.read_text()
    assert main(["report", str(folder)]) == 0
    assert "unknown whole" in capsys.readouterr().out
    assert main(["report", str(folder), "--full"]) == 0
    assert "unknown whole jobs" in capsys.readouterr().out


def test_hostile_names_are_shown_and_break_nothing(tmp_path, capsys):
    odd = summary(
        aiperf_version="\ud800", metadata={"submission_valid": False, "submission_invalid_reasons": ["\x1b[2J"]}
    )
    rows = [answered("\ud800\x1b[31m"), row("s", error={"type": "\ud800", "message": "a\nb\x1b[2J"})]
    folder, table, page = (
        write(tmp_path / "peer", rows, profile_export_aiperf=odd),
        tmp_path / "t.csv",
        tmp_path / "p.html",
    )
    assert main(["report", str(folder), "--full", "--export", str(table), "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said + table.read_text() + page.read_text()
    assert "?: a b?[2J" in said


def test_a_comparison_says_who_measured(tmp_path):
    text = compare([[made(tmp_path / "one")], [made(tmp_path / "other")]]).text()
    assert "A: Measured by AIPerf" in text
    assert "unknown whole plays" in text


def test_what_is_no_run_is_one_line(tmp_path, capsys):
    (tmp_path / "profile_export_aiperf.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    assert "AIPerf left no profile_export.jsonl here" in capsys.readouterr().err
    write_rows(tmp_path, [answered()])
    (tmp_path / "profile_export_aiperf.json").write_text("[]")
    assert main(["report", str(tmp_path)]) == 2
    assert "profile_export_aiperf.json: is not a JSON object" in capsys.readouterr().err


def test_repeats_of_aiperf_are_pointed_to(tmp_path):
    write_rows(tmp_path / "profile_runs/run_0001", [answered()])
    with pytest.raises(BadInput, match=r"AIPerf left 1 run here \(take one, such as .*run_0001\)"):
        read_run(tmp_path)


ODD = {"models": 3, "endpoint": {"urls": [1]}, "datasets": "x", "phases": [1, {"duration": "x"}]}


@pytest.mark.parametrize("odd", [{}, {"input_config": 3, "metadata": [], "run_info": 1}, {"input_config": ODD}])
def test_a_summary_of_another_shape_tells_nothing(tmp_path, odd):
    about = report(
        write(tmp_path, [answered()], profile_export_aiperf=odd, inputs={"data": [3, {"payloads": 1}]})
    ).about
    assert (about.model, about.target, about.trace, about.seed) == (None,) * 4
    assert about.plan == {"history": "unknown"}
