"""Drawings made of boxes: the tree of first prompts, and the courses of sessions. SVG text; nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from agentx.generator.fit_layers import Node
from agentx.plots import COLOURS, WIDTH
from agentx.reporter.trace_drawing import LONGEST_PAUSE, Story

LAYER_COLOURS = dict(
    zip(("tools", "system", "shared", "user", "tool_result", "assistant", "summary", "reasoning"), COLOURS, strict=True)
)
BAR_COLOURS = {"call": "#0072b2", "tool": "#f3d9a4", "human": "#dddddd", "spawn": "#cfe8dc"}
LEFT, ROW, TREE = 130, 16, 260  # px
SMALL = 1.0  # boxes below this height, in px, are not drawn
MOST_LINES = 24  # threads of a session


def tree(root: Node, sessions: int) -> str:
    """First prompts: tokens to the right, as tall as the share of the sessions that have them; equal ones are one."""
    longest = _longest(root)
    boxes: list[str] = []
    _branches(root, sessions, (WIDTH - 20) / max(1, longest), boxes)
    legend = _legend(LAYER_COLOURS, TREE + 30)
    axis = _text(10, TREE + 16, f"0 tokens; the right edge is {longest:,}")
    return _svg(TREE + 44, [*boxes, axis, *legend])


def _longest(root: Node) -> int:
    """Tokens of the longest first prompt, without a recursion that deep prompts would exhaust."""
    longest, waiting = 0, [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        longest = max(longest, depth)
        for edge in node.edges.values():
            waiting.append((edge.after, depth + edge.run.stop - edge.run.start))
    return longest


def _branches(root: Node, sessions: int, wide: float, boxes: list[str]) -> None:
    high = TREE / max(1, sessions)
    waiting = [(root, 0.0, 0)]
    while waiting:
        node, top, depth = waiting.pop()
        for edge in sorted(node.edges.values(), key=lambda each: -each.sessions):
            tokens, tall = edge.run.stop - edge.run.start, edge.sessions * high
            if tall < SMALL:
                break
            told = f"{edge.run.layer}: {tokens:,} tokens in {edge.sessions:,} sessions"
            colour = LAYER_COLOURS[edge.run.layer]
            boxes.append(_box(10 + depth * wide, top, tokens * wide, tall, colour, told, edge="#fff"))
            said = f"{edge.run.layer} {tokens:,}, {edge.sessions / sessions:.0%}"
            boxes += _inside(10 + depth * wide, top, tokens * wide, tall, said)
            waiting.append((edge.after, top, depth + tokens))
            top += tall


def layers(tokens: Mapping[str, tuple[int, int]]) -> str:
    """All prompt tokens by layer, as wide as their share; the part that no cache could have is drawn paler below."""
    total = sum(count for count, _ in tokens.values())
    wide, x, parts = (WIDTH - 20) / max(1, total), 10.0, []
    for name, (count, reused) in tokens.items():
        colour, new = LAYER_COLOURS.get(name, "#999999"), count - reused
        told = f"{name}: {count:,} tokens, {count / max(1, total):.1%} of all, {reused:,} reusable"
        parts.append(_box(x, 4, count * wide, 2 * ROW, colour, told, edge="#fff"))
        parts += _inside(x, 4, count * wide, 2 * ROW, f"{count / max(1, total):.0%}")
        parts.append(_box(x, 4 + 2 * ROW, new * wide, ROW, colour, f"{name}: {new:,} new tokens"))
        x += count * wide
    said = f"{total:,} tokens; the lower bars are what is new of each layer"
    shown = {name: LAYER_COLOURS.get(name, "#999999") for name in tokens}
    return _svg(94, [*parts, _text(10, 4 + 4 * ROW, said), *_legend(shown, 84)])


def timeline(story: Story) -> str:
    """A session: a line for each thread, calls dark, pauses light."""
    lines = story.lines[:MOST_LINES]
    end = max((bar.end for _, bars in lines for bar in bars), default=0.0) or 1.0
    wide = (WIDTH - LEFT - 20) / end
    parts = []
    for number, (name, bars) in enumerate(lines):
        top = 4 + number * (ROW + 4)
        parts.append(_text(4, top + 12, name if len(name) < 20 else name[:19] + "…"))
        for bar in bars:
            width = max(0.6 if bar.kind == "call" else 0.0, (bar.end - bar.start) * wide)
            if width >= 0.3:
                parts.append(_box(LEFT + bar.start * wide, top, width, ROW, BAR_COLOURS[bar.kind], bar.told))
    bottom = 4 + len(lines) * (ROW + 4)
    more = f"; {len(story.lines) - len(lines)} more threads" if len(story.lines) > len(lines) else ""
    more += f"; {story.left_out:,} more calls" if story.left_out else ""
    said = f"0 to {end:,.0f} s, pauses over {LONGEST_PAUSE:.0f} s drawn as that{more}"
    return _svg(bottom + 34, [*parts, _text(LEFT, bottom + 12, said), *_legend(BAR_COLOURS, bottom + 26)])


def _legend(colours: dict[str, str], y: float) -> list[str]:
    parts, x = [], 10.0
    for name, colour in colours.items():
        parts += [_box(x, y - 9, 10, 10, colour, name), _text(x + 14, y, name)]
        x += 26 + 7 * len(name)
    return parts


def _box(x: float, y: float, width: float, height: float, colour: str, told: str, edge: str = "none") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{colour}" stroke="{edge}" stroke-width=".4"><title>{escape(told)}</title></rect>'


def _inside(x: float, y: float, width: float, height: float, text: str) -> list[str]:
    """The text in a box, where the box has room for it."""
    if height < 14 or width < 8 + 6.5 * len(text):
        return []
    return [f'<text x="{x + 4:.1f}" y="{y + height / 2 + 4:.1f}" fill="#fff">{escape(text)}</text>']


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
    return head + f'height="{height:.0f}" font-family="sans-serif" font-size="12">' + "".join(parts) + "</svg>\n"
