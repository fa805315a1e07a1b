"""The page of a run: its parts, its figures those of the JSON document, and a real browser that has nothing to say."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, TILES, Browser
from making import header, linear

from agentx.cli.main import main
from agentx.pages.run_page import run_page
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.reporter.text import number, share
from agentx.results import RunResults, read_results
from agentx.trace import TraceWriter


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> RunResults:
    folder = tmp_path_factory.mktemp("page")
    with TraceWriter(folder / "a.trace", header("agents <1>")) as file:
        for name in "abc":
            file.session(linear(6, id=name, fresh=600))
    sets = ["load.sessions=3", "target.cache.pool=9000", "gaps.scale=0.2", "slo.run.ttft_p95=1ms", "target.gpus=8"]
    return simulate(folder / "a.trace", out=folder / "run", sets=sets)


def document(text: str) -> dict[str, Any]:
    found = re.search(r'id="document">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    value: dict[str, Any] = json.loads(found[1])
    return value


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[key]
    return value


def shown_as_in(tiles: dict[str, str], document: dict[str, Any]) -> None:
    """Each tile shows the value of its key in the document."""
    assert len(tiles) == 7
    for key, shown in tiles.items():
        value = at(document, key)
        want = share(value) if key.endswith("share") else number(value * (1000 if "tpot" in key else 1))
        assert shown.startswith(want), key


def test_every_part_is_there_with_its_values(ran: RunResults) -> None:
    text = run_page(report(ran), ran)
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == [
        "Know before use", "The slowest turns", "Sessions", "Reuse through time", "Reuse that was lost",
        "Reuse by the size of the cache", "Reuse by groups of requests", "First token and prompt",
        "Load through time", "Latency", "The report in full",
    ]  # fmt: skip
    assert text.count("<svg") == text.count("<details>") == 9
    assert "Objective ttft_p95 &lt;= 1ms: missed" in text
    assert "agents &lt;1&gt;" in text
    assert text == run_page(report(ran), ran)


def test_tiles_are_the_figures_of_the_document(ran: RunResults) -> None:
    found = report(ran)
    text = run_page(found, ran)
    assert document(text) == json.loads(json.dumps(found.document()))
    tiles = {key: unescape(shown) for key, shown in re.findall(r'data-key="(.*?)"><b>(.*?)</b>', text)}
    shown_as_in(tiles, document(text))


def test_a_run_of_nothing_is_a_page_too(run) -> None:
    """No request was answered: unknown and n/a, no zero and no crash."""
    empty = run([], end={"outcome": "interrupted", "at": 1.0})
    text = run_page(report(empty), empty)
    assert "<b>n/a</b>" in text
    assert "interrupted" in text
    assert "<svg" not in text


def test_the_verb_writes_it(ran: RunResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.html"
    assert main(["report", str(ran.folder), "--html", str(out), "--json"]) == 3  # its objective is missed
    assert json.loads(capsys.readouterr().out) == document(out.read_text(encoding="utf-8"))
    assert main(["report", str(ran.folder), "--html", str(tmp_path / "new" / "x.html")]) == 3
    assert (tmp_path / "new" / "x.html").read_bytes() == out.read_bytes()
    assert main(["report", str(ran.folder), "--html", str(out / "x.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err


MARKS = "document.querySelectorAll('figure > svg rect').length"


@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser(browser: Browser, ran: RunResults, tmp_path: Path, dark: bool) -> None:
    """No message on the console, no request but the file, every plot drawn, and tiles that show the document."""
    found = report(read_results(ran.folder))
    path = tmp_path / "run.html"
    path.write_text(run_page(found, ran), encoding="utf-8")
    seen = browser.open(path.as_uri(), TILES, DRAWN, MARKS, dark=dark)
    assert (seen.said, seen.requested) == ([], [path.as_uri()])
    assert seen.values[DRAWN] == 9
    assert seen.values[MARKS] > 20
    shown_as_in(dict(seen.values[TILES]), json.loads(json.dumps(found.document())))
    assert (seen.paper < 0.1) is dark
    assert seen.contrast > 4.5


def test_the_browser_tells_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    """The test above can fail: a fault of a script and a picture from elsewhere are seen."""
    (tmp_path / "bad.html").write_text('<img src="http://agentx.invalid/x.png"><script>nothing.here</script>')
    seen = browser.open((tmp_path / "bad.html").as_uri())
    assert seen.requested[-1] == "http://agentx.invalid/x.png"
    assert any("nothing is not defined" in one for one in seen.said)
    assert any("Failed to load resource" in one for one in seen.said)
