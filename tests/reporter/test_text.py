from __future__ import annotations

import pytest

from agentx.core import Cached
from agentx.frames import Tear
from agentx.reporter.reporting import report
from agentx.reporter.table import WIDTH
from agentx.reporter.text import number, share


def row(text, label):
    """The cells of the first row that begins with `label`."""
    line = next(line for line in text.splitlines() if line.strip().startswith(label))
    return line.strip().removeprefix(label).split()


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, "unknown"),
        (0, "0"),
        (0.0001234, "0.00012"),
        (0.0123, "0.0123"),
        (0.00456789, "0.00457"),  # three digits of a small one too: 4 ms and 5 ms are 15 % apart
        (1.5e300, "1.5e+300"),
        (1.5, "1.50"),
        (12.345, "12.35"),
        (123.45, "123.5"),
        (123456.7, "123,457"),
        (1234567.8, "1.23M"),
        (-2.5, "-2.50"),
    ],
)
def test_number(value, want):
    assert number(value) == want


def test_share():
    assert (share(None), share(0.0), share(0.9657)) == ("unknown", "0.0 %", "96.6 %")


def test_the_tables_hold_the_figures(attempt, play, run, sample):
    samples = [
        sample(-1, prefill_input=0, prefill_device_hit=0),
        sample(9, prefill_input=100, prefill_device_hit=90, prefill_host_hit=10),
    ]
    made = [
        attempt("a", cached=Cached(40, device=40, host=0)),
        attempt("b", sent=2.0, cached=Cached(60, device=50, host=10)),
    ]
    text = report(run(made, [play("a"), play("b", ended=4.0)], samples, settings={"target": {"gpus": 8}})).text()
    # n, sessions, p5, p50, p90, p95, p99, mean, max: both first tokens came after 1 s
    assert row(text, "TTFT from sent, s") == ["2", "2", *["1.00"] * 7]
    assert row(text, "TPOT, ms") == ["2", "2", *["1,000"] * 7]
    # 4 tokens in 4 s on 8 GPUs
    assert row(text, "output") == ["4", "1.00", "1.00", "0.125"]
    assert row(text, "by request (2 of 2 told)") == ["100", "200", "50.0", "%", "90", "10", "unknown"]
    assert row(text, "by counters") == ["100", "200", "50.0", "%", "90", "10", "unknown"]
    assert "agree exactly" in text
    assert row(text, "job latency, s")[:2] == ["2", "2"]


def test_the_first_lines_say_whether_the_run_is_whole(attempt, run):
    torn = report(run([attempt()], end=None, tear=Tear(4096, 12, "cut short"))).text().splitlines()
    assert torn[1].startswith("  state   PARTIAL")
    assert "torn at byte 4096" in torn[1] + torn[2]
    assert "state   complete" in report(run([attempt()])).text()
    assert "INTERRUPTED" in report(run([attempt()], end={"outcome": "interrupted"})).text().splitlines()[1]


def test_figures_of_the_embedded_engine_are_stamped(attempt, run):
    text = report(run([attempt()], settings={"target": {"kind": "engine"}})).text()
    assert "engine rules: SGLang 0.5.23" in "\n".join(text.splitlines()[:4])
    assert "engine rules" not in report(run([attempt()])).text()


def test_recorded_history_is_said(attempt, run):
    assert "its KV is never reused" in " ".join(report(run([attempt()])).text().split())


def test_unknown_and_absent_are_words(run, attempt):
    nothing = report(run()).text()
    assert row(nothing, "TTFT from sent, s") == ["0", "0", *["n/a"] * 7]
    assert row(nothing, "input from cache") == ["unknown"] * 4
    silent = report(run([attempt(chunks=[(1, 1)], told=1)])).text()
    assert row(silent, "TPOT, ms") == ["0", "0", *["n/a"] * 7]
    assert row(silent, "by request (0 of 1 told)") == ["unknown"] * 6


def test_lower_bounds_are_marked(run, attempt):
    text = report(run([attempt("a", cached=10), attempt("b", cached=None)])).text()
    # one of two told 10 cached tokens, in 2 s; GPUs unknown
    assert row(text, "input from cache") == ["1", "told", ">=10", ">=5.00", ">=5.00", "unknown"]


def test_failures_are_listed(run, attempt):
    text = report(run([attempt("a"), attempt("b", failed="http", status=500)])).text()
    assert row(text, "http") == ["1", "500:1", "http", "happened"]


def test_it_fits_the_terminal(run, attempt, play):
    # large figures, a long name, a long message
    big = [
        attempt(
            f"session-{turn}", turn, sent=turn * 1e4, prompt=10**6, cached=Cached(999_999, device=999_999, host=0),
            chunks=[(345.678, 1), (1_999.5, 64)], told=65, failed=None if turn else "http", status=500,
        )
        for turn in range(30)
    ]  # fmt: skip
    settings = {
        "target": {"kind": "endpoint", "url": "http://a-long-host-name.example:30000", "model": "org/a-model-of-size"},
        "plan": {"load": {"sessions": 64}, "wire": "chat", "gaps": {"scale": 0.25, "tree_idle_cap": "300s"}},
        "trace": {"path": "a-rather-long-name-of-a-trace-with-dashes.trace", "sha256": "ab" * 32},
    }
    text = report(run(big, [play(turns=30)], settings=settings, notes=("note " * 50,))).text()
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert text.isascii()


def test_markdown_holds_the_same_tables(run, attempt):
    found = report(run([attempt(cached=10)]))
    markdown = found.markdown()
    assert "| TTFT from sent, s | 1 | 1 | 1.00 |" in markdown
    assert markdown.count("### ") == found.text().count("\n\n") + 1


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, "unknown"),
        (0.0, "0.0 %"),
        (1.0, "100.0 %"),
        (0.0004, "< 0.1 %"),  # something is not nothing
        (0.0005, "0.1 %"),
        (0.9996, "> 99.9 %"),  # and not all is not all
        (0.5, "50.0 %"),
        (-0.25, "-25.0 %"),
    ],
)
def test_a_share_is_never_rounded_to_nothing_or_all(value, want):
    assert share(value) == want
