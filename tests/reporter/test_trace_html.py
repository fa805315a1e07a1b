"""One HTML file about a trace."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from making import header, linear

from agentx.core import Session
from agentx.reporter.inspecting import inspect
from agentx.reporter.trace_drawing import Drawing
from agentx.reporter.trace_html import page
from agentx.trace import TraceWriter


def paged(path: Path, *made: Session) -> str:
    with TraceWriter(path, header("a <b> & c")) as writer:
        for each in made:
            writer.session(each)
    drawing = Drawing()
    return page(inspect(path, drawing), drawing)


def test_it_has_every_plot_and_fetches_nothing(tmp_path: Path) -> None:
    html = paged(tmp_path / "a.trace", linear(5), linear(3, id="b"))
    assert re.findall("<h2>(.*?)</h2>", html) == [
        "Lengths", "Gaps", "By the number of the call in its main thread", "Reuse by the size of a cache",
        "Prompt tokens by layer", "First prompts", "Sessions",
    ]  # fmt: skip
    assert html.count("<svg") == 9  # lengths, gaps, growth, reuse, capacity, layers, first prompts, two sessions
    assert "a &lt;b&gt; &amp; c" in html
    assert not re.search(r"(src|href)=|<script|@import", html)
    HTMLParser().feed(html)


def test_equal_traces_give_equal_bytes(tmp_path: Path) -> None:
    assert paged(tmp_path / "a.trace", linear(4)) == paged(tmp_path / "b.trace", linear(4))


def test_poor_traces_have_a_page_too(tmp_path: Path) -> None:
    assert "<p>none</p>" in paged(tmp_path / "a.trace", linear(1))  # nothing waits
    assert "no main thread" in paged(tmp_path / "b.trace", linear(0))
