"""The page of a sweep: its points, and published ones that are near."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browsing import DRAWN, ROWS, Browser
from making import header, linear

from agentx.cli.main import main
from agentx.pages.sweep_page import sweep_page
from agentx.replayer.sweep import Knob, Point
from agentx.reporter.sweeping import Figures, Sweep
from agentx.trace import TraceWriter


def made(tpot: float | None) -> Sweep:
    knob = Knob("load.sessions", ("1", "2"))
    points = [Point(at, (("load.sessions", value),), 0) for at, value in enumerate(knob.values)]
    figures = [Figures(9, 0, 0.9, 0.95, rate, 1.0, 2.0, tpot) for rate in (8.0, 9.0)]
    rows = tuple((point, f"{at:03d}", each) for at, (point, each) in enumerate(zip(points, figures, strict=True)))
    return Sweep((knob,), rows, "claude-code, 2 simulations", ("every figure is of a model",))


def test_a_frontier_with_references() -> None:
    text = sweep_page(made(0.0125))
    assert re.findall(r"<title>(sessions \d \(\d+\))</title>", text) == ["sessions 1 (000)", "sessions 2 (001)"]
    assert "<title>inferencex-mi325x-glm-5.2-fp8 c1</title>" in text
    assert "<td>80</td>" in text  # 1 / 12.5 ms
    assert "every figure is of a model" in text


def test_points_without_a_tpot() -> None:
    assert "No point tells both" in sweep_page(made(None))


def test_in_a_browser(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Light and dark: no message, no request but the file, both plots, and points that are those of `--json`."""
    with TraceWriter(tmp_path / "a.trace", header("agents")) as file:
        for name in "abc":
            file.session(linear(4, id=name, reply=30))
    out = tmp_path / "sweep"
    words = ["simulate", str(tmp_path / "a.trace"), "--sweep", "load.sessions=1,3", "-o", str(out), "--json"]
    assert main([*words, "--workers", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    path, panels = out / "sweep.html", "document.querySelectorAll('.paper svg').length"
    for dark in (False, True):
        seen = browser.open(path.as_uri(), ROWS, DRAWN, panels, dark=dark)
        assert (seen.said, seen.requested) == ([], [path.as_uri()])
        assert (seen.values[DRAWN], seen.values[panels]) == (1, 1)
        points = [row for row in seen.values[ROWS] if row[0] == "this sweep"]
        figures = [point["figures"] for point in told["points"]]
        assert [row[2:] for row in points] == [
            [f"{1 / each['tpot_p50']:,.6g}", f"{each['output_per_gpu']:,.6g}"] for each in figures
        ]
        assert (seen.paper < 0.1) is dark
        assert seen.contrast > 4.5
