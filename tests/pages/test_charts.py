"""Charts are well-formed, hold every value, and say what each mark is."""

from __future__ import annotations

from xml.etree import ElementTree

from agentx.pages.axes import exact, linear
from agentx.pages.charts import Bar, Dots, Line, Mark, bars, dots, lanes, lines, stacked

X, Y = exact("seconds", 0.0, 10.0), linear("tokens & more", [0.0, 50.0])


def parsed(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label")
    return root


def told(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter("title")]


def test_lines_and_marks() -> None:
    root = parsed(
        lines("a < b", X, Y, [Line("one", [(0, 0), (10, 50)]), Line("two", [(1, 2)], True)], [Mark("m", 5.0)])
    )
    paths = [each.get("d") or "" for each in root.iter("path") if "l " in (each.get("class") or "")]
    assert paths[0].startswith("M64.0 254.0L")
    assert paths[0].endswith("706.0 12.0")  # the corners of the frame
    assert told(root)[0] == "a < b"
    assert "m" in [each.text for each in root.iter("text")]


def test_the_names_of_marks_stand_under_each_other() -> None:
    root = parsed(lines("t", X, Y, [Line("one", [(0, 0)])], [Mark("device", 5.0), Mark("host", 5.1)]))
    heights = [each.get("y") for each in root.iter("text") if each.text in ("device", "host")]
    assert len(set(heights)) == 2


def test_a_diagonal_goes_from_corner_to_corner() -> None:
    groups = [Dots("g", [(1, 2, "turn 1")])]
    paths = [each.get("d") for each in parsed(dots("t", X, X, groups, diagonal=True)).iter("path")]
    assert "M64 254L706 12" in paths
    assert "M64 254L706 12" not in [each.get("d") for each in parsed(dots("t", X, X, groups)).iter("path")]


def test_an_empty_line_draws_nothing() -> None:
    assert [each for each in told(parsed(lines("t", X, Y, [Line("none", [])]))) if each == "none"] == []


def test_dots_say_what_they_are() -> None:
    root = parsed(dots("t", X, Y, [Dots("g", [(1, 2, "turn <1>"), (3, 4, "turn 2")])]))
    assert told(root)[1:] == ["turn <1>", "turn 2"]


def test_stacked_columns_add_up() -> None:
    root = parsed(stacked("t", X, Y, 5.0, ["a", "b"], [[10.0, 20.0], [0.0, 50.0]]))
    heights = [float(each.get("height") or 0) for each in root.iter("rect") if each.find("title") is not None]
    whole = 300 - 46 - 12  # px of 50 tokens
    assert [round(height / whole * 50) for height in heights] == [10, 20, 50]


def test_bars_go_both_ways() -> None:
    root = parsed(bars("t", "tokens", [("up", 30.0), ("down", -10.0), ("none", 0.0)]))
    rects = [(float(each.get("x") or 0), float(each.get("width") or 0)) for each in root.iter("rect")]
    (up, wide), (down, narrow), _ = rects
    assert abs(down + narrow - up) < 0.2  # both begin at 0
    assert abs(wide - 3 * narrow) < 0.5
    assert "up: 30 tokens" in told(root)


def test_lanes_draw_later_kinds_above() -> None:
    rows = [("a very long name of a session", [Bar(1, 2.0, 4.0, "reply"), Bar(0, 0.0, 9.0, "pause")])]
    root = parsed(lanes("t", X, ("pause", "reply"), rows))
    assert [text for text in told(root) if text in ("pause", "reply")] == ["pause", "reply"]
    assert any((each.text or "").startswith("a very long name") for each in root.iter("text"))
