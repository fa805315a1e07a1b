"""The page of a comparison: what is known against it first, then ratios, then turns side by side."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browsing import DRAWN, ROWS, Browser
from making import header, linear

from agentx.cli.main import main
from agentx.pages.compare_page import compare_page
from agentx.replayer.simulate import simulate
from agentx.reporter.compare import compare
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES
from agentx.trace import TraceWriter


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for trace, count in (("a", 4), ("b", 5)):
        with TraceWriter(folder / f"{trace}.trace", header("agents")) as file:
            for name in "xyz"[:3]:
                file.session(linear(count, id=name, fresh=500))
    for name, trace, pool in (("small", "a", 4000), ("large", "a", 90000), ("other", "b", 90000)):
        sets = ["load.sessions=3", f"target.cache.pool={pool}", "gaps.scale=0.2"]
        simulate(folder / f"{trace}.trace", out=folder / name, sets=sets)
    return folder


def test_paired_turns(runs: Path) -> None:
    text = compare_page(compare([[runs / "small"], [runs / "large"]]))
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles[:3] == ["Ratios, B / A", "Reuse that was lost, B against A", "TTFT, B / A"]
    assert titles[-1] == "The comparison in full"
    assert "one pair, 3 sessions: no interval" in text
    dots = re.findall(r"<title>([xyz] turn \d+): ", text)
    assert len(dots) == 3 * 12  # each of 12 turns in TTFT, TPOT and latency
    assert text.index("Know before use") < text.index("Ratios, B / A")
    assert text.count('d="M64 254L706 12"') == 3  # the diagonal that the captions speak of


def test_ratios_are_written_as_in_the_text(runs: Path) -> None:
    found = compare([[runs / "small"], [runs / "large"]])
    page, text = compare_page(found), found.text()
    (row,) = re.findall(r"<td>TPOT p50, ms</td>(.*?)</tr>", page)
    cells = re.findall(r"<td>(.*?)</td>", row)
    (line,) = (line for line in text.splitlines() if line.strip().startswith("TPOT p50, ms"))
    assert line.split()[3:] == cells


def test_where_reuse_was_lost(runs: Path) -> None:
    """The figures of the page are those of the document."""
    found = compare([[runs / "small"], [runs / "large"]])
    text = compare_page(found)
    (pair,) = found.document()["pairs"]
    (row,) = (row for row in pair["losses"]["causes"] if row["cause"] == "evicted")
    before, after = row["all_answered"]["baseline_mean"], row["all_answered"]["other_mean"]
    assert before > after == 0
    assert f"<td>evicted</td><td>{before:,.0f}</td><td>0</td><td>-{before:,.0f}</td>" in text
    assert re.search(rf"<title>evicted, A: {before:,.6g} tokens</title>", text)
    assert "What was evicted: A modelled, B modelled." in text


def test_unpaired_distributions(runs: Path) -> None:
    text = compare_page(compare([[runs / "small"], [runs / "other"]]))
    assert "Not comparable as they stand" in text
    assert "only their distributions can be compared" in text


def test_the_verb_writes_it(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pair.html"
    assert main(["compare", str(runs / "small"), str(runs / "large"), "--html", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["compare", str(runs / "small"), "--reference", "x", "--html", str(out)]) == 2
    assert "--html is for runs" in capsys.readouterr().err


@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser(
    browser: Browser, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], dark: bool
) -> None:
    """No message, no request but the file, every plot drawn, and the ratios that are seen are those of `--json`."""
    path = tmp_path / "pair.html"
    assert main(["compare", str(runs / "small"), str(runs / "large"), "--html", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    inside = "JSON.parse(document.getElementById('document').textContent)"
    seen = browser.open(path.as_uri(), ROWS, DRAWN, inside, dark=dark)
    assert (seen.said, seen.requested) == ([], [path.as_uri()])
    assert seen.values[inside] == told
    assert seen.values[DRAWN] == 4  # lost reuse, and three times turn by turn
    rows = {row[0]: row for row in reversed(seen.values[ROWS])}  # the first table is that of the ratios
    labels = {figure.name: figure.label for figure in (*FIGURES, *RUN_FIGURES)}
    known = [one for one in told["pairs"][0]["figures"] if one["all_answered"]["ratio"] is not None]
    assert len(known) > 10
    for one in known:
        cells = rows[labels[one["name"]]]
        assert float(cells[3][1:]) == pytest.approx(one["all_answered"]["ratio"], rel=0.006, abs=0.006)
        if one["same_turns"] is not None:
            assert float(cells[6][1:]) == pytest.approx(one["same_turns"]["ratio"], rel=0.006, abs=0.006)
    assert (seen.paper < 0.1) is dark
    assert seen.contrast > 4.5
