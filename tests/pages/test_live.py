"""The page of a run that goes on: what it counts can be asked, and in the end it is the report."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from browsing import DRAWN, TILES, Browser
from making import header, linear

from agentx.cli.main import main
from agentx.core import Attempt, Cached
from agentx.errors import BadInput
from agentx.pages.live import LivePage
from agentx.replayer.progress import Progress, Watch
from agentx.reporter.text import number, share
from agentx.trace import TraceWriter


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_state_then_the_report() -> None:
    state = {"state": "running", "turns": 3, "reuse": None}
    live = LivePage(lambda: state)
    try:
        assert live.url.startswith("http://127.0.0.1:")
        status, text = get(live.url)
        assert status == 200
        assert "http" not in text.replace("http-equiv", "")  # it fetches from nowhere else
        assert json.loads(get(live.url + "state")[1]) == state
        assert get(live.url + "report")[0] == 404
        live.finish("<p>the report</p>")
        assert json.loads(get(live.url + "state?x=1")[1]) == {"state": "done"}
        assert get(live.url + "report") == (200, "<p>the report</p>")
        live.linger(until_interrupted=False)  # it was seen: it does not wait
    finally:
        live.close()


def test_a_port_in_use() -> None:
    live = LivePage(dict)
    try:
        taken = int(live.url.rsplit(":", 1)[1].rstrip("/"))
        with pytest.raises(BadInput, match=f"--live cannot listen on port {taken}"):
            LivePage(dict, taken)
    finally:
        live.close()


def test_what_a_watch_tells() -> None:
    """Two turns at 10 s: rates over the last ten seconds, reuse over what was told, None for what was not."""
    watch, progress = Watch(), Progress(lambda: 10.0, 4, wanted=False)
    assert watch.ask() == {"state": "starting"}
    watch.of(progress, lambda: 2, lambda: {"p99": 0.004})
    assert (watch.ask()["reuse"], watch.ask()["ttft_p50_seconds"]) == (None, None)
    for first, cached in ((1.5, Cached(total=60)), (2.5, None)):
        progress.count(
            Attempt("s", 0, 0, 0, 0, due=1.0, sent=1.0, isl=100, osl=20, first=first, end=9.0, prompt_tokens=100,
                    completion_tokens=20, cached=cached)
        )  # fmt: skip
    progress.count_play()
    found = watch.ask()
    assert (found["in_flight"], found["turns"], found["plays"], found["plays_expected"]) == (2, 2, 1, 4)
    assert (found["reuse"], found["output_tokens_per_second"], found["loop_lag_p99_seconds"]) == (0.6, 4.0, 0.004)
    assert (found["ttft_p50_seconds"], found["ttft_p95_seconds"]) == (1.5, 1.5)


def test_a_replay_is_watched(tmp_path: Path) -> None:
    """A run of some seconds against the embedded engine: the page counts its turns, then is its report."""
    with TraceWriter(tmp_path / "a.trace", header("agents")) as file:
        for name in "abcd":
            file.session(linear(12, id=name, reply=60))
    words = [sys.executable, "-m", "agentx", "replay", "a.trace", "-o", "run", "--live", "--set", "gaps.scale=0"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url = next(line for line in process.stderr if "the run as it goes" in line).split()[-1]
        threading.Thread(target=process.stderr.read, daemon=True).start()
        seen = []
        while not seen or seen[-1]["state"] != "done":
            seen.append(json.loads(get(url + "state")[1]))
        turns = [state["turns"] for state in seen if state["state"] == "running"]
        assert turns == sorted(turns)
        assert max(turns) > 4
        assert "Sessions, a lane for each thread" in get(url + "report")[1]
        out, _ = process.communicate(timeout=60)
        assert out.startswith("agentx report: ")
    finally:
        process.kill()


def test_one_run_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "a.trace", "--live", "--repeats", "3"]) == 2
    assert "--live is of one run" in capsys.readouterr().err


def test_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    """A run as a reader sees it: tiles that count, then by itself the report, whose tiles are those of `--json`."""
    with TraceWriter(tmp_path / "a.trace", header("agents")) as file:
        for name in "ab":
            file.session(linear(5, id=name, reply=40))
    words = [sys.executable, "-m", "agentx", "replay", "a.trace", "-o", "run", "--live", "--json"]
    process = subprocess.Popen(
        [*words, "--set", "gaps.scale=0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        url = next(line for line in process.stderr if "the run as it goes" in line).split()[-1]
        threading.Thread(target=process.stderr.read, daemon=True).start()
        report = browser.open(url, TILES, DRAWN, until="location.pathname === '/report'", dark=True)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    told = json.loads(out)
    assert report.said == []
    assert {one.rpartition("/")[0] + "/" for one in report.requested} == {url}
    assert report.requested[:2] == [url, url + "state"]
    assert report.requested[-1] == url + "report"
    assert report.values[DRAWN] > 5
    tiles = dict(report.values[TILES])
    assert tiles["latency.ttft_seconds.p95"].startswith(number(told["latency"]["ttft_seconds"]["p95"]))
    assert tiles["reuse.by_request.share"].startswith(share(told["reuse"]["by_request"]["share"]))
    assert report.paper < 0.1
    assert report.contrast > 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_tiles_of_a_run_that_goes_on(browser: Browser, dark: bool) -> None:
    """They show the state that is told, and what is not known as unknown."""
    state = {"state": "running", "plays_expected": 8, "in_flight": 3, "turns": 1234, "reuse": 0.5, "seconds": None}
    live = LivePage(lambda: state)
    said = "document.getElementById('said').innerText"
    shown = "[...document.querySelectorAll('.tile')].map(one => [one.children[1].innerText, one.children[0].innerText])"
    try:
        seen = browser.open(live.url, shown, said, until=f"{shown}.length", dark=dark)
    finally:
        live.close()
    tiles = dict(seen.values[shown])
    assert (tiles["requests in flight"], tiles["turns answered or failed"]) == ("3", "1,234")
    assert (tiles["reuse so far, %"], tiles["seconds of the run"]) == ("50", "unknown")
    assert seen.values[said] == "running, of 8 plays"
    assert (seen.said, set(seen.requested)) == ([], {live.url, live.url + "state"})
    assert (seen.paper < 0.1) is dark
    assert seen.contrast > 4.5
