"""TraceLab's rounds: lengths decide what is kept, the pause is the longest of parallel tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from importing import Json, layers, write

from agentx.core import Gap, Observed, Session, Tool, TurnEvent
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.running import import_files
from agentx.recorder.imports.tracelab import make_format
from agentx.trace import read_trace


def moment(seconds: float) -> str:
    return f"2026-06-01T05:{int(seconds) // 60:02}:{seconds % 60:06.3f}Z"


def event(kind: str, seconds: float) -> Json:
    return {"event_type": kind, "timestamp": moment(seconds)}


def tool(name: str, ms: float | None) -> Json:
    return {"tool_name": name, "tool_wall_latency_ms": ms}


def round_(index: int, isl: int, cached: int, out: int, **more: object) -> Json:
    row = {"session_id": "s", "round_index": index, "round_id": f"r{index}", "model": "m", "input_tokens_total": isl}
    return {**row, "prefix_tokens": cached, "newly_append_tokens": isl - cached, "output_tokens": out, **more}


def imported(tmp_path: Path, *rows: Json) -> tuple[Session, Books]:
    books = import_files(make_format(), [write(tmp_path / "in.jsonl", *rows)], tmp_path / "out.trace")
    (session,) = read_trace(tmp_path / "out.trace")
    return session, books


def test_the_gap_is_the_longest_of_parallel_tools(tmp_path: Path) -> None:
    session, books = imported(
        tmp_path,
        round_(0, 100, 60, 20, tools=[tool("Bash", 860), tool("WebSearch", 19291), tool("Read", None)]),
        round_(1, 150, 100, 5),
    )
    assert session.turns[1].tools == (Tool("Bash", 0.86), Tool("WebSearch", 19.291), Tool("Read", None))
    assert session.turns[1].gap == Gap("tool", 19.291)  # and not their sum
    assert layers(session, 1) == [("system", 60), ("user", 40), ("assistant", 20), ("tool_result", 30)]
    assert session.turns[0].reply is not None
    assert (books.rows.read, books.rows.used) == (2, 2)


def test_a_users_message_ends_a_human_pause(tmp_path: Path) -> None:
    session, _ = imported(
        tmp_path,
        round_(0, 100, 0, 10, timing_events=[event("user_message", 0), event("text", 4.5), event("tool_call", 6)]),
        round_(1, 120, 0, 10, timing_events=[event("user_message", 36), event("reasoning", 38), event("text", 39)]),
    )
    assert session.turns[1].gap == Gap("human", 30.0)
    assert session.turns[1].observed == Observed(start=36.0, end=39.0, cached=0)
    assert layers(session, 1)[-1] == ("user", 10)


def test_a_cache_that_gave_less_does_not_cut_the_context(tmp_path: Path) -> None:
    session, books = imported(tmp_path, round_(0, 100, 0, 10), round_(1, 150, 32, 5))
    assert layers(session, 1) == [("user", 100), ("assistant", 10), ("tool_result", 40)]
    assert session.turns[1].observed is not None
    assert session.turns[1].observed.cached == 32
    assert books.notes["provider's cache gave less than the prompt before: the context is kept whole (inferred)"] == 1


def test_a_shorter_prompt_is_a_compaction_that_kept_the_cached_part(tmp_path: Path) -> None:
    session, _ = imported(tmp_path, round_(0, 900, 0, 10), round_(1, 300, 120, 5), round_(2, 80, 0, 5))
    assert [turn.event for turn in session.turns[1:]] == [
        TurnEvent("compaction", before=900, kept=120),
        TurnEvent("reset", before=300, kept=0),
    ]
    assert layers(session, 1) == [("user", 120), ("summary", 180)]


def test_reasoning_that_is_dropped_at_a_users_message_is_no_compaction(tmp_path: Path) -> None:
    session, _ = imported(
        tmp_path,
        round_(0, 900, 0, 60, reasoning_output_tokens=50),
        round_(1, 870, 800, 5, timing_events=[event("user_message", 9)]),
    )
    assert session.turns[1].event == TurnEvent("think_strip")
    assert (session.turns[0].output.visible, session.turns[0].output.reasoning) == (10, 50)


def test_rounds_are_sorted_and_those_of_a_resumed_transcript_dropped(tmp_path: Path) -> None:
    session, books = imported(tmp_path, round_(1, 20, 0, 1), round_(0, 10, 0, 1), round_(2, 20, 0, 1, round_id="r1"))
    assert [turn.isl for turn in session.turns] == [10, 20]
    assert books.rows.dropped == {"round_id that occurs again in its session": 1}
    assert books.notes["round out of order: sorted within its session"] == 1


def test_another_model_is_an_event(tmp_path: Path) -> None:
    session, _ = imported(tmp_path, round_(0, 10, 0, 1), round_(1, 20, 0, 1, model="other"))
    assert session.turns[1].event == TurnEvent("model_switch")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_tokens_total": -1}, "input_tokens_total: -1 is not a whole number"),
        ({"tools": [tool("Bash", -5)]}, "tool_wall_latency_ms: -5.0 is below 0"),
        ({"timing_events": [{"event_type": "text", "timestamp": "noon"}]}, "timestamp: 'noon' is not a time"),
        ({"round_index": None}, "round_index: None is not"),
    ],
)
def test_a_bad_round_is_refused_with_its_place(tmp_path: Path, change: Json, message: str) -> None:
    with pytest.raises(BadInput, match=r"in\.jsonl:2: " + message):
        imported(tmp_path, round_(0, 10, 0, 1), {**round_(1, 20, 0, 1), **change})
