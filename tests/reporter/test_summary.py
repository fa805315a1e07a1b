"""The report on one screen: never larger than one, whatever the run, and its figures are those of the document."""

from __future__ import annotations

import re

import pytest
from making import header, linear

from agentx.replayer.simulate import simulate
from agentx.replayer.slo import slo_of
from agentx.reporter.findings import INVALIDATING, Finding
from agentx.reporter.losses import CAUSES, Losses, TurnLoss
from agentx.reporter.reporting import report
from agentx.reporter.summary import LINES, _largest
from agentx.reporter.table import WIDTH
from agentx.reporter.text import number, share
from agentx.trace import TraceWriter


def screen(found):
    """The lines of the summary, which fit."""
    lines = found.summary().splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    return lines


def cells(lines, label):
    (line,) = (line for line in lines if line.strip().startswith(label))
    return re.split(r"\s{2,}", line.strip())[1:]


@pytest.fixture
def evicted(tmp_path):
    """Four sessions side by side in a pool that holds one of them."""
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for each in range(4):
            writer.session(linear(6, id=f"s{each}", fresh=80, reply=12))
    sets = ["load.sessions=4", "target.cache.pool=700", "target.price={gpu_hour: 2}"]
    run = simulate(tmp_path / "t.trace", out=tmp_path / "sim", sets=sets, salt="x")
    return report(run, slo=slo_of(["ttft=1us,ttft_p95=1us,tpot_p95=1h"]))


def test_its_figures_are_those_of_the_document(evicted):
    lines, found = screen(evicted), evicted.document()
    ttft = found["latency"]["ttft_seconds"]
    assert cells(lines, "TTFT") == [*(number(ttft[key]) for key in ("p50", "p90", "p95", "mean")), "24", "4"]
    output = found["throughput"]["emitted"]["output"]
    rates = [number(output[key]) for key in ("tokens_per_second", "tokens_per_second_per_gpu")]
    assert cells(lines, "output") == [*rates, f"{output['tokens']:,.0f}", "24", "24"]
    reuse, eligible = found["reuse"], found["reuse_by"]["eligible"]
    text = "\n".join(lines)
    assert f"observed  {share(reuse['by_request']['share'])} by request (24 of 24 told)" in text
    assert f"possible {share(reuse['ideal']['possible_share'])}" in text
    assert f"eligible {share(eligible['share'])} cached, {eligible['requests']} turns" in text
    losses = found["losses"]
    assert losses["evicted_tokens"] == max(losses[f"{cause}_tokens"] or 0 for cause in CAUSES)
    lost = losses["sum_tokens"] - losses["surplus_tokens"]
    assert f"{lost:,d} tokens; most: evicted, modelled, {losses['evicted_tokens']:,d}" in text
    slowest = found["blame"]["turns"][0]
    assert f"slowest   session {slowest['session']} turn {slowest['turn']}: " in text
    assert f"${number(found['cost']['dollars_per_million_output_tokens'])} per million output tokens" in text


def test_missed_objectives_stand_first(evicted):
    (line,) = (line for line in screen(evicted) if "objectives" in line.split()[:1])
    assert re.search(r"objectives  ttft_p95 <= 1us: MISSED, .*; tpot_p95 <= 1h: met", line)


def test_more_findings_than_room_are_counted(evicted):
    """The invalidating one stands first, wherever it was found."""
    many = [Finding(f"kind_{each}", f"{each} " + "words " * 40) for each in range(30)]
    findings = (*many, Finding(INVALIDATING[0], "it is not valid"))
    object.__setattr__(evicted, "findings", findings)  # a frozen value, in a test of its rendering alone
    lines = screen(evicted)
    assert len(lines) == LINES
    assert "MEASUREMENT INVALID: books" in lines[1]
    at = lines.index("Know before use")
    assert lines[at + 1] == "  - it is not valid"
    assert lines[at + 2].endswith("words...")
    shown = lines.index("", at) - at - 2  # and a line for those that are not
    assert f"... and {31 - shown} more, in the full report" in lines[at + 1 + shown]


def test_whatever_a_run_lacks_is_said(run, attempt, full):
    empty = "\n".join(screen(report(run())))
    assert "nothing was answered" in empty
    assert "observed  unknown by request (0 of 0 told); by counters unknown" in empty
    silent = screen(report(run([attempt(told=None, prompt=None, chunks=[(1, None)])])))
    assert cells(silent, "TPOT") == ["n/a"] * 4 + ["0", "0"]
    assert cells(silent, "output")[0] == "unknown"
    failed = screen(report(run([attempt(failed="http", status=500)])))
    assert cells(failed, "TTFT") == ["n/a"] * 4 + ["0", "0"]
    screen(report(full))


def test_long_names_are_cut(run, attempt):
    settings = {"trace": {"name": "long " * 60}, "target": {"kind": "url", "name": "t" * 300, "gpus": 8}}
    screen(report(run([attempt()], settings=settings)))


def test_markdown_is_the_same(evicted):
    text = evicted.summary(markdown=True)
    assert text.startswith("### agentx report: ")
    assert "| TTFT from sent, s |" in text
    assert "- **slowest**: session" in text


def test_a_surplus_is_not_set_off_against_what_was_lost(attempt):
    """30 tokens in flight and 30 above the ideal are no loss of 0 tokens."""
    one = TurnLoss(attempt(cached=1), 30, 0, 0, 0, 0, 0, 0)
    other = TurnLoss(attempt("b", cached=1), 0, 0, 0, 0, 0, 0, -30)
    told = _largest(Losses((one, other), shadowed=True))
    assert told.startswith("30 tokens, 30 more than the ideal elsewhere; most: in flight")
    assert told.endswith(", 30")


def test_a_price_of_zero_says_why_there_is_no_cost(tmp_path):
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        writer.session(linear(2))
    found = report(simulate(tmp_path / "t.trace", out=tmp_path / "run", sets=["target.price={gpu_hour: 0}"]))
    assert "cost      unknown: the price is 0" in "\n".join(screen(found))
