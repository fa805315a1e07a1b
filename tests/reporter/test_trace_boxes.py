"""Drawings made of boxes."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from making import linear

from agentx.generator.fit_layers import Fronts
from agentx.reporter.trace_boxes import layers, timeline, tree
from agentx.reporter.trace_drawing import Bar, Story, story


def boxes(svg: str) -> list[tuple[str, float, float]]:
    """(what it says, width, height) of every box."""
    root = ElementTree.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}"
    return [
        (rect[0].text or "", float(rect.attrib["width"]), float(rect.attrib["height"]))
        for rect in root.iter(f"{name}rect")
    ]


def test_what_sessions_have_in_common_is_one_box_of_its_full_height() -> None:
    fronts = Fronts()
    for number in range(4):
        made = linear(1, id=f"s{number}")
        fronts.add(made, made.pieces(0))
    said = {told: height for told, _, height in boxes(tree(fronts.root, 4)) if "tokens" in told}
    assert said["tools: 40 tokens in 4 sessions"] == 4 * said["user: 10 tokens in 1 sessions"]


def test_a_layer_is_as_wide_as_its_share() -> None:
    found = {told: width for told, width, _ in boxes(layers({"tools": (300, 290), "user": (100, 20)}))}
    wide = next(width for told, width in found.items() if told.startswith("tools: 300"))
    assert wide == 3 * next(width for told, width in found.items() if told.startswith("user: 100"))
    assert "tools: 10 new tokens" in found


def test_a_timeline_says_each_call_and_what_it_leaves_out() -> None:
    svg = timeline(story(linear(3)))
    assert [told for told, _, _ in boxes(svg) if told.startswith("call 2")] == ["call 2: 105 tokens in, 5 out"]
    many = Story("s", tuple((f"subagent <{n}>", (Bar("call", 0, 1, "x & y"),)) for n in range(40)), 7)
    assert re.search("16 more threads; 7 more calls", timeline(many))
