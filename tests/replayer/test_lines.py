"""A cache by lines: what of each is still there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentx.replayer.lines import Lines


def test_a_line_hits_what_it_holds_and_no_more_than_an_unlimited_cache():
    lines = Lines(1000, 1000, 8192)
    assert lines.begin("a", 0, 100, 10) == 0
    lines.end("a")
    assert lines.begin("a", 100, 150, 10) == 100
    lines.end("a")
    assert lines.begin("a", 40, 80, 10) == 40  # the rest was pulled back: its tokens are gone
    assert lines.used == 90


def test_the_line_that_was_used_longest_ago_loses_nodes_from_its_end():
    lines = Lines(300, 300, 8192)
    for line in ("a", "b"):
        lines.begin(line, 0, 100, 10)
        lines.end(line)
    lines.begin("a", 100, 120, 10)  # a is now the younger one
    lines.end("a")
    lines.begin("c", 0, 60, 10)
    lines.end("c")
    assert lines.begin("b", 100, 110, 5) == 100  # b lost its reply, whose node was the last
    assert lines.used <= 300


def test_lines_that_run_are_not_evicted_and_what_does_not_fit_waits():
    lines = Lines(300, 300, 8192)
    assert lines.begin("a", 0, 200, 10) == 0
    assert lines.begin("b", 0, 100, 10) is None
    lines.end("a")
    assert lines.begin("b", 0, 100, 10) == 0
    lines.end("b")
    assert lines.begin("a", 200, 220, 10) == 0  # one node: it went whole


def test_requests_that_run_have_the_room_of_the_device_alone():
    lines = Lines(1000, 300, 8192)
    assert lines.begin("a", 0, 200, 10) == 0
    assert lines.begin("b", 0, 100, 10) is None


def test_a_long_prompt_loses_its_last_chunks_first():
    lines = Lines(300, 300, 50)
    lines.begin("a", 0, 200, 10)
    lines.end("a")
    lines.begin("b", 0, 100, 40)
    lines.end("b")
    assert lines.begin("a", 200, 210, 10) == 150  # the chunks in front are still there


def test_a_new_line_begins_with_what_it_shares():
    assert Lines(1000, 1000, 8192).begin("a", 30, 100, 10) == 30


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 90), st.integers(1, 20), st.integers(0, 90)), max_size=40))
def test_the_books_balance(requests):
    lines, running = Lines(250, 250, 8192), []
    for line, prompt, reply, prefix in requests:
        if line in running:
            running.remove(line)
            lines.end(line)
        if lines.begin(line, min(prefix, prompt - 1), prompt, reply) is not None:
            running.append(line)
        held = sum(each.held for each in lines._lines.values())
        assert lines.used == held <= 250
        assert lines._locked == sum(each.held for each in lines._lines.values() if each.locked)
