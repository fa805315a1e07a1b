"""The page around the charts: everything is escaped, everything is inside, and the document can be read back."""

from __future__ import annotations

import json
import re

from agentx.pages.shell import ROWS, Section, figure, listed, page, table, tiles

EVIL = '</script><img src="http://x/">'


def test_a_page_holds_its_document_and_fetches_nothing() -> None:
    document = {"schema": "x/1", "name": EVIL}
    text = page(EVIL, "<p>lead</p>", [Section("First part", "<p>one</p>")], document)
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == document
    assert "<img" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:,")', text)  # data:, is the empty icon, which is in the page
    assert '<a href="#first-part">' in text
    assert 'id="first-part"' in text
    assert text.count("<script") == 1


def test_a_figure_has_its_values_behind_it() -> None:
    text = figure("<svg/>", "what", ("a", "b"), [(at, None) for at in range(ROWS + 5)])
    assert text.count("<tr>") == ROWS + 1
    assert "5 more rows are not shown" in text
    assert "<td>unknown</td>" in text
    assert "<summary>Values</summary>" in text


def test_cells_and_lists_are_escaped() -> None:
    assert table(("<x>",), [(1234567,), (0.123456789,), ("<y>",)]).count("&lt;") == 2
    assert "1,234,567" in table(("x",), [(1234567,)])
    assert listed([]) == ""
    assert listed(["a & b"], "bad") == '<ul><li class="bad">a &amp; b</li></ul>'
    assert 'data-key="a.b"' in tiles([("a.b", "1 s", "what")])
