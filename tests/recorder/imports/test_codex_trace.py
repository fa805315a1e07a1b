"""Codex rollout-trace bundles: input modes, tools, agents, attempts, hostile references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs import Json, lines, take, written

from agentx.core import GapParts, Tool
from agentx.errors import BadInput

TOOLS = [{"type": "function", "name": "exec_command", "parameters": {}}]
CALL = {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c1"}


def user(words: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def words(said: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}


class Bundle:
    """Writes a bundle: events in order, payloads beside."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.events = folder, list[Json]()
        self.event(0, "rollout_started", trace_id="t", root_thread_id="root")
        self.event(0, "thread_started", thread_id="root", agent_path="/root")

    def event(self, when: float, kind: str, **payload: Any) -> None:
        self.events.append({"schema_version": 1, "seq": len(self.events), "rollout_id": "r",
                            "wall_time_unix_ms": 1_796_054_000_000 + round(when * 1000),
                            "payload": {"type": kind, **payload}})  # fmt: skip

    def payload(self, name: str, value: Any) -> Json:
        written(self.folder / "payloads" / f"{name}.json", value)
        return {"raw_payload_id": name, "path": f"payloads/{name}.json"}

    def call(
        self,
        id: str,
        begin: float,
        end: float,
        items: list[Json],
        output: list[Json],
        usage: tuple[int, int, int, int],
        *,
        mode: Json | None = None,
        thread: str = "root",
        how: str = "completed",
        response: str | None = None,
    ) -> None:
        body = {"model": "gpt-x", "instructions": "You code.", "tools": TOOLS, "input": items}
        self.event(
            begin,
            "inference_started",
            inference_call_id=id,
            thread_id=thread,
            model="gpt-x",
            request_input_mode=mode or {"type": "full_snapshot"},
            request_payload=self.payload(f"q{id}", body),
        )
        names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
        told = {"response_id": response, "output_items": output,
                "token_usage": dict(zip(names, usage, strict=True)) if how == "completed" else None}  # fmt: skip
        key = "response_payload" if how == "completed" else "partial_response_payload"
        self.event(end, f"inference_{how}", inference_call_id=id, response_id=response,
                   **{key: self.payload(f"a{id}", told)})  # fmt: skip

    def write(self) -> Path:
        lines(self.folder / "trace.jsonl", *self.events)
        return self.folder


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    made = Bundle(tmp_path / "b")
    made.call("1", 1, 3, [user("fix it")], [CALL], (500, 300, 40, 10), response="resp_1")
    made.event(3, "tool_call_started", tool_call_id="x", model_visible_call_id="c1")
    made.event(5, "tool_call_runtime_started", tool_call_id="x")
    made.event(6.5, "tool_call_runtime_ended", tool_call_id="x")
    made.event(6.6, "tool_call_ended", tool_call_id="x")
    return made


OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a b"}


@pytest.mark.parametrize(
    ("items", "mode"),
    [
        ([user("fix it"), CALL, OUTPUT], {"type": "full_snapshot"}),
        ([OUTPUT], {"type": "incremental", "previous_response_id": "resp_1"}),
    ],
)
def test_both_input_modes_give_the_same_prompt(bundle: Bundle, items: list[Json], mode: Json) -> None:
    bundle.call("2", 7, 9, items, [words("done")], (560, 540, 9, 0), mode=mode)
    taken = take("codex_trace", bundle.write(), folder=bundle.folder.parent)
    first, second = taken.turns
    assert taken.lengths() == [(500, 40), (560, 9)]
    assert (second.prompt.base, second.prompt.keep, second.gap.kind, second.gap.seconds) == (0, 3, "tool", 4.0)
    assert second.tools == (Tool("exec_command", 1.5, {"waited_for_user": 2.0}),)
    assert second.gap.parts == GapParts(1.5, 2.0)
    assert (first.output.reasoning, second.after) == (10, (0,))
    assert taken.header.provenance["fidelity"]["gaps"] == "split"


def test_an_untraced_prefix_is_beside(bundle: Bundle, tmp_path: Path) -> None:
    made = Bundle(tmp_path / "c")
    prefix = made.payload("prefix", {"input": [user("before"), words("yes")]})
    mode = {"type": "incremental_with_untraced_prefix", "previous_response_id": "resp_9", "prefix_payload": prefix}
    made.call("1", 1, 3, [user("go on")], [words("ok")], (300, 0, 4, 0), mode=mode)
    taken = take("codex_trace", made.write(), folder=tmp_path)
    session = taken.sessions[0]
    layers = [session.segment(piece.segment).layer for piece in session.pieces(0)]
    assert layers == ["tools", "system", "user", "assistant", "user"]
    assert not taken.books.notes


def test_a_response_that_is_not_in_the_bundle_leaves_the_prefix_unknown(bundle: Bundle) -> None:
    mode = {"type": "incremental", "previous_response_id": "resp_9"}
    bundle.call("2", 7, 9, [user("x")], [words("done")], (560, 540, 9, 0), mode=mode)
    taken = take("codex_trace", bundle.write(), folder=bundle.folder.parent)
    assert [turn.extra.get("prefix_unknown") for turn in taken.turns] == [None, True]


def test_attempts_are_not_turns(bundle: Bundle) -> None:
    items = [user("fix it"), CALL, OUTPUT]
    bundle.call("2", 7, 8, items, [], (0, 0, 0, 0), how="failed")
    bundle.call("3", 8.5, 9, items, [words("done")], (560, 540, 9, 0))
    taken = take("codex_trace", bundle.write(), folder=bundle.folder.parent)
    assert taken.lengths() == [(500, 40), (560, 9)]
    assert taken.turns[1].extra["attempts"]["count"] == 2


def test_a_cancelled_call_keeps_what_came(bundle: Bundle) -> None:
    bundle.call("2", 7, 8, [user("fix it"), CALL, OUTPUT], [words("half of it")], (0, 0, 0, 0), how="cancelled")
    taken = take("codex_trace", bundle.write(), folder=bundle.folder.parent)
    event = taken.turns[1].event
    assert event is not None
    assert event.kind == "abort"


def test_subagents_by_thread_and_path(bundle: Bundle) -> None:
    bundle.event(6, "thread_started", thread_id="kid", agent_path="/root/review")
    bundle.event(6, "thread_started", thread_id="grandkid", agent_path="/root/review/deep")
    bundle.call("2", 7, 9, [user("review")], [words("good")], (90, 0, 5, 0), thread="kid")
    bundle.call("3", 9, 10, [user("deeper")], [words("fine")], (80, 0, 5, 0), thread="grandkid")
    taken = take("codex_trace", bundle.write(), folder=bundle.folder.parent)
    (session,) = taken.sessions
    assert [(t.kind, t.parent, t.type) for t in session.threads] == [
        ("main", None, None), ("subagent", 0, "review"), ("subagent", 1, "role-1")]  # fmt: skip


def test_references_that_lead_outside_are_not_followed(bundle: Bundle) -> None:
    written(bundle.folder.parent / "outside.json", {"model": "m", "input": [user("secret")]})
    for payload in (event["payload"] for event in bundle.events):
        if "request_payload" in payload:
            payload["request_payload"] = {"path": "../outside.json"}
    with pytest.raises(BadInput, match=r"0 model calls.*1 request whose payload is not in the bundle"):
        take("codex_trace", bundle.write(), folder=bundle.folder.parent)


def test_ends_without_starts_and_events_without_times(bundle: Bundle) -> None:
    bundle.event(9, "inference_completed", inference_call_id="lost", response_payload={})
    bundle.event(9, "inference_failed", inference_call_id="1")  # a second end of a call
    bundle.events.append({"schema_version": 1, "payload": {"type": "other"}})
    taken = take("codex_trace", bundle.write(), folder=bundle.folder.parent)
    dropped = taken.books.rows.dropped
    assert dropped["end of a request whose start is not there"] == 1
    assert dropped["event without a time"] == 1
    assert len(taken.turns) == 1
