"""LiteLLM payloads: chat and messages, failures, sessions that are named and trace ids that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs import Json, lines, take, written

from agentx.errors import BadInput

START = 1_796_054_395.25


def payload(begin: float, messages: Any, words: str, prompt: int, out: int, **more: Any) -> Json:
    usage = {"prompt_tokens": prompt, "completion_tokens": out, "prompt_tokens_details": {"cached_tokens": 8}}
    response = {"id": "c", "choices": [{"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
                "usage": usage}  # fmt: skip
    return {
        "litellm_call_id": f"i{begin}",
        "trace_id": f"made up {begin}",
        "session_id": "",
        "call_type": "acompletion",
        "status": "success",
        "stream": True,
        "startTime": START + begin,
        "endTime": START + begin + 2,
        "completionStartTime": START + begin + 0.5,
        "model": "m",
        "messages": messages,
        "response": response,
        "model_parameters": {"tools": [{"type": "function", "function": {"name": "f"}}]},
        "metadata": {},
        **more,
    }


TALK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
MORE = [*TALK, {"role": "assistant", "content": "hi there"}, {"role": "user", "content": "bye"}]


def two(**more: Any) -> list[Json]:
    return [payload(0, TALK, "hi there", 40, 3, **more), payload(5, MORE, "farewell", 60, 4, **more)]


@pytest.mark.parametrize("shape", ["lines", "list"])
def test_payloads_become_turns_that_their_content_links(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "a.json"
    taken = take("litellm", lines(path, *two()) if shape == "lines" else written(path, two()))
    first, second = taken.turns
    assert (len(taken.sessions), taken.lengths()) == (1, [(40, 3), (60, 4)])
    assert (second.prompt.base, second.gap.seconds) == (0, 3.0)
    assert first.observed is not None
    assert (first.observed.ttft, first.observed.cached) == (0.5, 8)
    session = taken.sessions[0]
    assert [session.segment(p.segment).layer for p in session.pieces(0)] == ["tools", "system", "user"]


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"session_id": "s"}, "x-litellm-session-id"),
        ({"trace_id": "given"}, "x-litellm-trace-id"),
        ({"metadata": {"requester_custom_headers": {"X-Session-Id": "s"}}}, "x-session-id"),
    ],
)
def test_sessions_by_name(tmp_path: Path, more: Json, rule: str) -> None:
    taken = take("litellm", lines(tmp_path / "a.jsonl", *two(**more)))
    assert [session.extra["known_by"] for session in taken.sessions] == [rule]


def test_a_reply_that_was_not_streamed_has_no_first_token(tmp_path: Path) -> None:
    taken = take("litellm", lines(tmp_path / "a.jsonl", *two(stream=False)))
    assert [turn.observed and turn.observed.ttft for turn in taken.turns] == [None, None]


def test_usage_beside_a_response_without_one(tmp_path: Path) -> None:
    made = payload(0, TALK, "hi", 40, 3, metadata={"usage_object": {"prompt_tokens": 41, "completion_tokens": 5}})
    del made["response"]["usage"]
    bare = payload(9, [{"role": "user", "content": "x"}], "hi", 0, 0, prompt_tokens=12, completion_tokens=2)
    del bare["response"]["usage"]
    assert sorted(take("litellm", lines(tmp_path / "a.jsonl", made, bare)).lengths()) == [(12, 2), (41, 5)]


def test_anthropics_shape(tmp_path: Path) -> None:
    reply = {"type": "message", "content": [{"type": "text", "text": "hi"}],
             "usage": {"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 3}}  # fmt: skip
    made = payload(0, TALK[1:], "", 0, 0, call_type="anthropic_messages", response=reply)
    assert take("litellm", lines(tmp_path / "a.jsonl", made)).lengths() == [(107, 3)]


def test_what_is_no_call(tmp_path: Path) -> None:
    rows = [
        payload(0, TALK, "x", 9, 1, cache_hit=True),
        payload(1, "redacted-by-litellm", "x", 9, 1),
        payload(2, TALK, "x", 9, 1, status="failure", response={}),
        {"a": 1},
        *two(),
    ]
    dropped = take("litellm", lines(tmp_path / "a.jsonl", *rows)).books.rows.dropped
    assert dropped["answered from the proxy's own cache: no model call"] == 1
    assert dropped["payload whose messages are not logged"] == 1
    assert dropped["object that is no payload"] == 1
    with pytest.raises(BadInput, match="0 model calls"):
        take("litellm", written(tmp_path / "b.json", [3, {"a": 1}]))
