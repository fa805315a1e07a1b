"""From linked turns to sessions: tools with their own times, sources without clocks, reasoning that was left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentx.core import Gap, Session, Tool
from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Item, call_of
from agentx.recorder.compiling import Making, compile_calls
from agentx.recorder.imports.books import Books
from agentx.recorder.keys import CaptureKey
from agentx.recorder.memo import Memo
from agentx.recorder.pauses import Told, ToolTime
from agentx.recorder.replies import reply_of
from agentx.trace import read_trace

SYSTEM = {"role": "system", "content": "You are an agent. " * 5}
USER = {"role": "user", "content": "list it"}
USE = {"role": "assistant", "content": None,
       "tool_calls": [{"id": "c1", "function": {"name": "Bash", "arguments": "{}"}},
                      {"id": "c2", "function": {"name": "Read", "arguments": "{}"}}]}  # fmt: skip
RESULTS = [
    {"role": "tool", "tool_call_id": "c1", "content": "a"},
    {"role": "tool", "tool_call_id": "c2", "content": "b"},
]
DONE = {"role": "assistant", "content": "done"}


def call(
    number: int, at: float, messages: list[Any], reply: Any, prompt: int, reasoning: int = 0, **more: Any
) -> ModelCall:
    usage = {"prompt_tokens": prompt, "completion_tokens": 20 + reasoning,
             "completion_tokens_details": {"reasoning_tokens": reasoning}}  # fmt: skip
    memo: Memo[tuple[Item, ...]] = Memo()
    answer = reply_of("chat", {"id": str(number), "choices": [{"message": reply}], "usage": usage})
    opened = round(at * 1e9)
    return ModelCall((opened, 0, number), opened + 10**9, "chat", call_of("chat", {"messages": messages}, memo), answer,
                     (("x-session-id", "s"),), **more)  # fmt: skip


@pytest.fixture
def compose(tmp_path: Path) -> Any:
    def made(*calls: ModelCall, **more: Any) -> Session:
        books = Books(row="call")
        books.rows.read = len(calls)
        making = Making(CaptureKey(b"k" * 32), "x", "test", "source", tmp_path, **more)

        def given() -> Iterator[ModelCall]:
            yield from calls

        compile_calls(given(), making, books, tmp_path / "a.trace")
        (session,) = read_trace(tmp_path / "a.trace")
        return session

    return made


FIRST = call(1, 0, [SYSTEM, USER], USE, 100)
SECOND = call(2, 5, [SYSTEM, USER, USE, *RESULTS], DONE, 140)


def test_tools_with_the_times_that_their_source_tells(compose: Any) -> None:
    session = compose(FIRST, SECOND, told=Told({"c1": ToolTime(1.5, 2.0), "c9": ToolTime(9.0)}))
    assert session.turns[1].tools == (Tool("Bash", 1.5, {"waited_for_user": 2.0}), Tool("Read"))
    assert session.turns[1].gap == Gap("tool", 4.0, "recorded")


def test_a_source_without_clocks_gives_no_times(compose: Any) -> None:
    session = compose(call(1, 0, [SYSTEM, USER], USE, 100, timed=False),
                      call(2, 1, [SYSTEM, USER, USE, *RESULTS], DONE, 140, timed=False))  # fmt: skip
    assert session.arrival is None
    assert session.turns[1].gap == Gap("tool", 0.0, "inferred")
    assert [turn.observed for turn in session.turns] == [None, None]
    assert session.turns[1].after == (0,)


def test_one_call_without_a_time_among_others(compose: Any) -> None:
    session = compose(call(1, 50, [SYSTEM, USER], USE, 100), call(2, 50.000000001, [SYSTEM, USER, USE, *RESULTS], DONE,
                      140, timed=False))  # fmt: skip
    assert session.arrival == 0.0
    assert session.turns[0].observed is not None
    assert session.turns[1].observed is None


def test_reasoning_that_was_left_out_at_a_users_message(compose: Any) -> None:
    """All items of the prompt before are there, and it is shorter: what went were no items."""
    third = call(3, 20, [SYSTEM, USER, USE, *RESULTS, DONE, {"role": "user", "content": "ok"}], DONE, 120)
    session = compose(FIRST, call(2, 5, [SYSTEM, USER, USE, *RESULTS], DONE, 140, reasoning=50), third)
    event = session.turns[2].event
    assert event is not None
    assert (event.kind, event.before) == ("think_strip", 140)
