"""Codex's session files: totals that repeat, forks that replay their parent, tools that are timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs import Json, at, lines, take

from agentx.core import GapParts, Tool
from agentx.errors import BadInput


class Rollout:
    """Lines of one file; token counts are cumulative, as Codex writes them."""

    def __init__(self, id: str, **meta: Any) -> None:
        self.lines: list[Json] = []
        self.total: dict[str, int] = {}
        instructions = {"text": "You are a coding agent. " * 10}
        self.put(0, "session_meta", {"id": id, "cli_version": "1", "base_instructions": instructions, **meta})
        self.put(0, "turn_context", {"model": "gpt-x"})

    def put(self, when: float, kind: str, payload: Json) -> None:
        self.lines.append({"timestamp": at(when), "type": kind, "payload": payload})

    def user(self, when: float, words: str) -> None:
        content = [{"type": "input_text", "text": words}]
        self.put(when, "response_item", {"type": "message", "role": "user", "content": content})

    def call(self, when: float, id: str, command: str) -> None:
        payload = {"type": "function_call", "name": "exec_command", "arguments": command, "call_id": id}
        self.put(when, "response_item", payload)

    def output(self, when: float, id: str, words: str) -> None:
        self.put(when, "response_item", {"type": "function_call_output", "call_id": id, "output": words})

    def words(self, when: float, words: str) -> None:
        content = [{"type": "output_text", "text": words}]
        self.put(when, "response_item", {"type": "message", "role": "assistant", "content": content})

    def count(self, when: float, prompt: int, cached: int, out: int, reasoning: int = 0) -> None:
        last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": out,
                "reasoning_output_tokens": reasoning}  # fmt: skip
        self.total = {name: self.total.get(name, 0) + value for name, value in last.items()}
        self.again(when, last)

    def again(self, when: float, last: Json | None = None) -> None:
        known = last if last is not None else self.lines[-1]["payload"]["info"]["last_token_usage"]
        info = {"total_token_usage": dict(self.total), "last_token_usage": known}
        self.put(when, "event_msg", {"type": "token_count", "info": info})


def parent() -> Rollout:
    rollout = Rollout("p")
    rollout.put(0.5, "event_msg", {"type": "task_started"})
    rollout.user(1, "fix the bug")
    rollout.call(3, "c1", '{"cmd": "ls"}')
    rollout.count(3.5, 1000, 800, 40, 10)
    rollout.output(4, "c1", "Chunk ID: 1\nWall time: 0.2500 seconds\nOutput:\na b")
    rollout.words(6, "fixed")
    rollout.count(6.5, 1100, 1000, 20)
    rollout.put(7, "event_msg", {"type": "task_complete", "time_to_first_token_ms": 900})
    return rollout


def test_a_session(tmp_path: Path) -> None:
    taken = take("codex", lines(tmp_path / "rollout-1.jsonl", *parent().lines))
    first, second = taken.turns
    assert taken.lengths() == [(1000, 40), (1100, 20)]
    assert (first.output.reasoning, second.gap.kind, second.gap.seconds) == (10, "tool", 1.0)
    assert second.tools == (Tool("exec_command", 0.25),)
    assert second.gap.parts == GapParts(0.25)
    assert first.observed is not None
    assert second.observed is not None
    assert (first.observed.ttft, second.observed.ttft) == (0.9, None)  # a task tells the first call's alone
    assert second.prompt.base == 0
    assert taken.sessions[0].segment(taken.sessions[0].pieces(0)[0].segment).layer == "system"


def test_totals_that_repeat_are_no_calls(tmp_path: Path) -> None:
    rollout = parent()
    rollout.again(8, {"input_tokens": 1100, "cached_input_tokens": 1000, "output_tokens": 20})
    rollout.put(9, "event_msg", {"type": "token_count", "info": None})
    taken = take("codex", lines(tmp_path / "rollout-1.jsonl", *rollout.lines))
    assert taken.lengths() == [(1000, 40), (1100, 20)]
    assert taken.books.rows.dropped["token count that tells nothing new"] == 2


def restamped(rollout: Rollout, by: float) -> list[Json]:
    """Lines as a fork's file repeats them: the same, at new times."""
    return [{**line, "timestamp": at(100 + by + at_line)} for at_line, line in enumerate(rollout.lines)]


@pytest.mark.parametrize("source", [{"forked_from_id": "p"}, {"parent_thread_id": "p"},
                                    {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}])  # fmt: skip
def test_a_child_that_replays_its_parent_adds_only_its_own(tmp_path: Path, source: Json) -> None:
    """R28: parent of two calls; the child's file is the parent's, stamped anew, and one call more."""
    child = Rollout("k", **source)
    child.lines += restamped(parent(), 0)
    child.total = dict(parent().total)
    child.user(130, "and the tests")
    child.words(133, "they pass")
    child.count(134, 1300, 1100, 30)
    lines(tmp_path / "rollout-1.jsonl", *parent().lines)
    lines(tmp_path / "rollout-2.jsonl", *child.lines)
    taken = take("codex", tmp_path, folder=tmp_path)
    assert sorted(taken.lengths()) == [(1000, 40), (1100, 20), (1300, 30)]
    assert taken.books.rows.dropped["call of the parent that a fork's or subagent's file repeats"] == 2


def test_a_child_with_an_equal_sized_but_distinct_call_keeps_it(tmp_path: Path) -> None:
    """R28: equal token counts are no sign of a replay; the content is."""
    child = Rollout("k", parent_thread_id="p")
    child.user(101, "another task")
    child.call(103, "c9", '{"cmd": "pwd"}')
    child.count(103.5, 1000, 800, 40, 10)
    child.output(104, "c9", "/tmp")
    child.words(106, "there")
    child.count(106.5, 1100, 1000, 20)
    taken = take("codex", lines(tmp_path / "1.jsonl", *parent().lines), lines(tmp_path / "2.jsonl", *child.lines))
    assert sorted(taken.lengths()) == [(1000, 40), (1000, 40), (1100, 20), (1100, 20)]
    (session,) = taken.sessions
    assert [(thread.kind, thread.parent) for thread in session.threads] == [("main", None), ("subagent", 0)]


def test_a_child_that_says_the_same_to_another_task_keeps_its_call(tmp_path: Path) -> None:
    """R28: nor is an equal reply of equal size; what was asked is part of the call."""
    child = Rollout("k", parent_thread_id="p")
    child.user(101, "another bug")
    child.call(103, "c1", '{"cmd": "ls"}')
    child.count(103.5, 1000, 800, 40, 10)
    taken = take("codex", lines(tmp_path / "1.jsonl", *parent().lines), lines(tmp_path / "2.jsonl", *child.lines))
    assert sorted(taken.lengths()) == [(1000, 40), (1000, 40), (1100, 20)]


def test_a_call_of_the_parents_that_a_child_makes_later_stays(tmp_path: Path) -> None:
    """Only the beginning of a child's file is its parent's history."""
    child = Rollout("k", parent_thread_id="p")
    child.user(101, "first something else")
    child.words(102, "well")
    child.count(103, 900, 0, 4)
    child.put(104, "compacted", {"message": "", "replacement_history": []})
    child.lines += restamped(parent(), 10)[2:]
    taken = take("codex", lines(tmp_path / "1.jsonl", *parent().lines), lines(tmp_path / "2.jsonl", *child.lines))
    assert sum(isl == 1000 for isl, _ in taken.lengths()) == 2


def test_compaction_replaces_the_history(tmp_path: Path) -> None:
    rollout = parent()
    summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "summary"}]}
    rollout.put(8, "compacted", {"replacement_history": [summary]})
    rollout.user(9, "go on")
    rollout.words(10, "yes")
    rollout.count(11, 1060, 600, 5)
    taken = take("codex", lines(tmp_path / "1.jsonl", *rollout.lines))
    event = taken.turns[2].event
    assert event is not None
    assert (event.kind, event.before) == ("compaction", 1100)


def test_nothing_but_chatter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"0 model calls"):
        take("codex", lines(tmp_path / "1.jsonl", *Rollout("p").lines, {"type": "response_item", "payload": 3}))
