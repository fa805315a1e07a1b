"""The page of a sweep: its points, and published ones that are near."""

from __future__ import annotations

import re

from agentx.pages.sweep_page import sweep_page
from agentx.replayer.sweep import Knob, Point
from agentx.reporter.sweeping import Figures, Sweep


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
