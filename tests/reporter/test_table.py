from __future__ import annotations

from agentx.reporter.table import WIDTH, Facts, Heading, Lines, Table, as_markdown, as_text

BLOCKS = [
    Heading("Title"),
    Facts((("a", "one"), ("long", "two"))),
    Table(("", "n", "mean"), (("first", "1", "2.50"), ("second row", "20", "n/a"))),
    Table(("", "n"), ()),
    Lines(("said | so",), bullet=True),
    Lines(()),
]


def test_text_aligns_columns():
    assert as_text(BLOCKS) == (
        "Title\n"
        "  a     one\n"
        "  long  two\n"
        "               n  mean\n"
        "  first        1  2.50\n"
        "  second row  20   n/a\n"
        "  - said | so\n"
    )


def test_markdown_has_the_same_cells():
    assert as_markdown(BLOCKS) == (
        "### Title\n\n"
        "- **a**: one\n- **long**: two\n\n"
        "|  | n | mean |\n| --- | ---: | ---: |\n| first | 1 | 2.50 |\n| second row | 20 | n/a |\n\n"
        "- said | so\n"
    )


def test_a_bar_in_a_cell_does_not_end_it():
    assert "| a\\|b |" in as_markdown([Table(("",), (("a|b",),))])


def test_long_lines_are_wrapped_under_their_start():
    words = "word " * 60
    for block in (Lines((words,)), Lines((words,), bullet=True), Facts((("name", words),))):
        rows = as_text([block]).splitlines()
        assert len(rows) > 2
        assert all(len(row) <= WIDTH for row in rows)
    assert rows[1].startswith(" " * len("  name  ") + "word")
