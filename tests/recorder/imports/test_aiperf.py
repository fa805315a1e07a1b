"""AIPerf's raw export: events with times, a benchmark's sessions, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from logs import Json, lines, take

from agentx.errors import BadInput

NS = 1_796_054_005_189_292_615
PERF = 1_919_615_435_796


def row(begin: float, messages: list[Json], words: list[str], prompt: int, **more: Any) -> Json:
    """A streamed request: a role, a word every quarter of a second, then usage, all from 0.5 s on."""
    deltas: list[Json] = [{"role": "assistant"}, *[{"content": word} for word in words]]
    events: list[Any] = [{"choices": [{"delta": delta}]} for delta in deltas]
    usage = {"prompt_tokens": prompt, "completion_tokens": len(words), "prompt_tokens_details": {"cached_tokens": 4}}
    events += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
    start = PERF + round(begin * 1e9)
    responses = [
        {"perf_ns": start + 500_000_000 + 250_000_000 * n, "packets": [{"name": "data", "value": json.dumps(event)}]}
        for n, event in enumerate(events)
    ]
    responses.append({"perf_ns": start + 3_000_000_000, "packets": [{"name": "data", "value": "[DONE]"}]})
    told = {"x_correlation_id": "c", "root_correlation_id": "c", "x_request_id": f"r{begin}", "was_cancelled": False,
            "request_start_ns": NS + round(begin * 1e9), "request_end_ns": NS + round((begin + 3) * 1e9),
            "benchmark_phase": "profiling", **more.pop("metadata", {})}  # fmt: skip
    return {
        "metadata": told,
        "start_perf_ns": start,
        "status": 200,
        "responses": responses,
        "payload": {"model": "m", "messages": messages, "stream": True},
        **more,
    }


TALK = [{"role": "user", "content": "hello there"}]
MORE = [*TALK, {"role": "assistant", "content": "a b"}, {"role": "user", "content": "more"}]


def test_times_are_those_of_the_events(tmp_path: Path) -> None:
    taken = take("aiperf", lines(tmp_path / "raw.jsonl", row(0, TALK, ["a", " b"], 20), row(10, MORE, ["c"], 30)))
    first, second = taken.turns
    assert taken.lengths() == [(20, 2), (30, 1)]
    assert first.observed is not None
    # the role came at 0.5 s, the first word at 0.75 s
    assert (first.observed.start, first.observed.ttft, first.observed.end) == (0.0, 0.75, 3.0)
    assert (second.prompt.base, second.gap.seconds) == (0, 7.0)
    assert taken.header.provenance["fidelity"]["timing"] == "chunk"


def test_subagents_by_correlation(tmp_path: Path) -> None:
    child = row(5, [{"role": "user", "content": "explore"}], ["x"], 9, metadata={"x_correlation_id": "k"})
    (session,) = take("aiperf", lines(tmp_path / "raw.jsonl", row(0, TALK, ["a", " b"], 20), child)).sessions
    assert [(thread.kind, thread.parent) for thread in session.threads] == [("main", None), ("subagent", 0)]


def test_errors_cancels_and_warm_up(tmp_path: Path) -> None:
    rows = [
        row(0, TALK, ["a"], 20, metadata={"benchmark_phase": "warmup"}),
        row(10, TALK, [], 0, status=503, responses=[], metadata={"x_correlation_id": "d", "root_correlation_id": "d"}),
        row(20, [{"role": "user", "content": "stop"}], ["half"], 9, metadata={"was_cancelled": True}),
    ]
    rows[2]["responses"] = rows[2]["responses"][:2]
    taken = take("aiperf", lines(tmp_path / "raw.jsonl", *rows))
    assert taken.books.notes["request of a benchmark's warm-up"] == 1
    assert taken.books.rows.dropped.total() == 1
    event = taken.turns[1].event
    assert event is not None
    assert event.kind == "abort"


def test_clocks_that_do_not_fit_give_no_first_token(tmp_path: Path) -> None:
    odd = row(0, TALK, ["a"], 20)
    odd["responses"][0]["perf_ns"] = 5
    taken = take("aiperf", lines(tmp_path / "raw.jsonl", odd))
    assert [turn.observed and turn.observed.ttft for turn in taken.turns] == [None]


def test_the_record_export_is_something_else(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the record export has neither bodies nor replies"):
        take("aiperf", lines(tmp_path / "raw.jsonl", {"metadata": {"a": 1}, "metrics": {}}))
