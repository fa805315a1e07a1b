"""OpenHands' events: of its SDK in a folder, of the time before it in a trajectory, and in rows of histories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import Json, lines, take, written

from agentx.core import Gap, GapParts, Tool
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.detect import detect
from agentx.recorder.imports.logged import Reading
from agentx.recorder.imports.openhands_events import make_reader
from agentx.recorder.keys import CaptureKey


def event(number: int, kind: str, at: float, **more: Any) -> Json:
    """An event of the SDK; times are local and name no zone."""
    return {"id": f"e{number}", "timestamp": f"2026-06-01T05:40:{at:09.6f}", "source": "agent", "kind": kind, **more}


def block(words: str) -> Json:
    return {"type": "text", "text": words}


def action(number: int, at: float, response: str, call: str, command: str, thought: str = "") -> Json:
    called = {"id": call, "name": "terminal", "arguments": json.dumps({"command": command}), "origin": "completion"}
    return event(
        number, "ActionEvent", at, thought=[block(thought)] if thought else [], tool_name="terminal",
        tool_call_id=call, tool_call=called, llm_response_id=response, action={"command": command},
    )  # fmt: skip


def result(number: int, at: float, call: str, words: str) -> Json:
    seen = {"kind": "TerminalObservation", "content": [block(words)]}
    return event(number, "ObservationEvent", at, source="environment", tool_call_id=call, observation=seen)


SDK = [
    event(0, "SystemPromptEvent", 0, system_prompt=block("You are OpenHands. " * 20), tools=[{"name": "terminal"}]),
    event(1, "MessageEvent", 1, source="user", llm_message={"role": "user", "content": [block("fix the test")]}),
    event(2, "ConversationStateUpdateEvent", 1, source="environment", key="execution_status", value="running"),
    action(3, 4.0, "r1", "c1", "ls", "I look."),
    action(4, 4.1, "r1", "c2", "cat a.py"),
    result(5, 4.5, "c1", "a.py"),
    result(6, 6.1, "c2", "def f(): ..."),
    action(7, 9.0, "r2", "c3", "pytest"),
    event(8, "AgentErrorEvent", 9.5, tool_call_id="c3", tool_name="terminal", error="no pytest"),
    event(
        9, "MessageEvent", 12.0, llm_response_id="r3", llm_message={"role": "assistant", "content": [block("Done.")]}
    ),
]


def usage(response: str, prompt: int, completion: int, cached: int, took: float) -> tuple[Json, Json]:
    spent = {"prompt_tokens": prompt, "completion_tokens": completion, "cache_read_tokens": cached}
    return (
        {**spent, "response_id": response, "model": "m", "reasoning_tokens": 0},
        {"response_id": response, "latency": took, "model": "m"},
    )


MEASURED = [usage("r1", 300, 40, 0, 2.5), usage("r2", 400, 10, 340, 2.0), usage("r3", 420, 5, 410, 1.0)]
METRICS = {"token_usages": [spent for spent, _ in MEASURED], "response_latencies": [took for _, took in MEASURED]}


def conversation(folder: Path, events: list[Json], metrics: Json | None = METRICS) -> Path:
    for number, each in enumerate(events):
        written(folder / "events" / f"event-{number:05d}-abcdef01.json", each)
    if metrics is not None:
        written(folder / "base_state.json", {"stats": {"usage_to_metrics": {"agent": metrics}}})
    return folder


def test_a_conversation_of_the_sdk(tmp_path: Path) -> None:
    folder = conversation(tmp_path / "conversations" / "one", SDK)
    assert detect(folder) == "openhands-events"
    taken = take("openhands_events", tmp_path / "conversations", folder=tmp_path)
    (session,) = taken.sessions
    first, second, third = session.turns
    assert taken.lengths() == [(300, 40), (400, 10), (420, 5)]
    assert [turn.observed and turn.observed.cached for turn in session.turns] == [0, 340, 410]
    # The first reply's last event is of second 4.1 and took 2.5 s; the second began at 7.0, 2.9 s after it.
    assert first.observed is not None
    assert (first.observed.start, first.observed.end) == (0.0, 2.5)
    assert (second.gap.kind, second.gap.seconds, second.after) == ("tool", 2.9, (0,))
    assert [tool.seconds for tool in second.tools] == [None, None]
    assert len({tool.name for tool in second.tools}) == 1
    assert len(third.tools) == 1
    assert [turn.prompt.base for turn in session.turns] == [None, 0, 1]
    layers = [session.segment(piece.segment).layer for piece in session.pieces(1)]
    assert layers == ["tools", "system", "user", "assistant", "tool_result", "tool_result"]
    rows = taken.books.rows
    assert (rows.read, rows.used, rows.merged) == (10, 3, 6)
    assert rows.dropped == {"event without model traffic": 1}


def test_without_its_state_lengths_are_estimated(tmp_path: Path) -> None:
    taken = take("openhands_events", conversation(tmp_path / "one", SDK, metrics=None), folder=tmp_path)
    assert all(turn.extra["estimated"] == ["isl", "osl"] for turn in taken.turns)
    assert taken.books.notes["call without its tokens: lengths are estimated"] == 3
    assert taken.header.provenance["fidelity"]["usage"] == "estimated"
    assert taken.turns[1].observed is not None
    # A call starts when the event before it was written: the second tool's result, 2.0 s after the reply.
    assert taken.turns[1].gap.seconds == 2.0


def test_what_was_condensed_is_in_no_later_prompt(tmp_path: Path) -> None:
    condensed = event(
        9, "Condensation", 11, source="environment", forgotten_event_ids=["e3", "e4", "e5", "e6"],
        summary="It looked at a.py.", summary_offset=1, llm_response_id="c",
    )  # fmt: skip
    taken = take("openhands_events", conversation(tmp_path / "one", [*SDK[:9], condensed, SDK[9]]), folder=tmp_path)
    last = taken.turns[2]
    session = taken.sessions[0]
    layers = [session.segment(piece.segment).layer for piece in session.pieces(2)]
    # The task, the summary behind it, and what was not forgotten: the second reply and its result.
    assert layers == ["tools", "system", "user", "user", "assistant", "tool_result"]
    assert last.isl == 420
    assert taken.books.notes["condensation: the call that wrote its summary is not told"] == 1


def old(number: int, at: float, source: str = "agent", **more: Any) -> Json:
    return {"id": number, "timestamp": f"2026-06-01T05:40:{at:09.6f}", "source": source, "message": "", **more}


def response(id: str, content: str, calls: list[tuple[str, str]], prompt: int, completion: int, cached: int) -> Json:
    called = [{"id": call, "type": "function", "function": {"name": name, "arguments": "{}"}} for call, name in calls]
    spent = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    message = {"role": "assistant", "content": content, "tool_calls": called}
    return {"id": id, "model": "m", "choices": [{"message": message}], "usage": spent}


def by_call(call: str, name: str, whole: Json) -> Json:
    return {"function_name": name, "tool_call_id": call, "model_response": whole, "total_calls_in_response": 2}


def total(prompt: int, completion: int) -> Json:
    return {
        "accumulated_token_usage": {"prompt_tokens": prompt, "completion_tokens": completion, "cache_read_tokens": 0}
    }


BOTH = response("r1", "I look.", [("c1", "execute_bash"), ("c2", "str_replace_editor")], 300, 40, 0)
OLD = [
    old(0, 0, action="system", args={"content": "You are OpenHands.", "tools": [{"type": "function"}]}),
    old(1, 1, "user", action="message", args={"content": "fix the test"}),
    old(2, 1, "user", action="recall", args={"query": "fix the test"}),
    old(3, 1, "environment", observation="recall", content="Added workspace context", extras={}, cause=2),
    old(4, 3, action="run", args={"command": "ls"}, tool_call_metadata=by_call("c1", "execute_bash", BOTH),
        llm_metrics=total(300, 40)),
    old(5, 4, observation="run", content="a.py", tool_call_metadata=by_call("c1", "execute_bash", BOTH), cause=4),
    old(6, 4, action="read", args={"path": "a.py"}, tool_call_metadata=by_call("c2", "str_replace_editor", BOTH)),
    old(7, 5, observation="read", content="def f()", tool_call_metadata=by_call("c2", "str_replace_editor", BOTH)),
    old(8, 5, "environment", observation="agent_state_changed", content="", extras={"agent_state": "running"}),
    old(9, 8, action="message", args={"content": "Shall I go on?"}, llm_metrics=total(650, 45)),
    old(10, 20, "user", action="message", args={"content": "yes"}),
    old(11, 22, action="finish", args={"final_thought": "ok", "thought": ""}),
]  # fmt: skip


@pytest.mark.parametrize("form", ["list", "pairs", "lines", "row", "rows"])
def test_a_trajectory_from_before_the_sdk(tmp_path: Path, form: str) -> None:
    path = tmp_path / ("a.jsonl" if form in ("lines", "rows") else "a.json")
    if form == "lines":
        lines(path, *OLD)
    elif form == "rows":
        lines(path, {"instance_id": "x", "history": OLD, "metrics": {}}, {"instance_id": "y", "history": []})
    else:
        pairs = [OLD[at : at + 2] for at in range(0, len(OLD), 2)]
        written(path, {"list": OLD, "pairs": pairs, "row": {"instance_id": "x", "history": OLD}}[form])
    if form != "pairs":
        assert detect(path) == "openhands-events"
    taken = take("openhands_events", path)
    (session,) = taken.sessions
    first, second, third = session.turns
    # Its own usage, then what the totals grew by, then nothing that tells.
    assert taken.lengths()[:2] == [(300, 40), (350, 5)]
    assert third.extra["estimated"] == ["isl", "osl"]
    assert [(turn.gap.kind, turn.gap.seconds) for turn in session.turns[1:]] == [("tool", 2.0), ("human", 12.0)]
    assert [tool.name for tool in second.tools] == [Tool("execute_bash").name, Tool("str_replace_editor").name]
    assert first.observed is not None
    assert (first.observed.start, first.observed.end) == (0.0, 2.0)
    assert taken.books.rows.dropped == {
        "event without model traffic": 2,
        "context that was recalled: what the prompt held of it is not told": 1,
    }
    assert (taken.books.rows.used, taken.books.rows.merged) == (3, 6)


def test_what_stands_before_the_first_message_has_a_length(tmp_path: Path) -> None:
    """Trajectories of old begin with the user: tools and system are what the first call's tokens leave over."""
    (session,) = take("openhands_events", written(tmp_path / "a.json", OLD[1:])).sessions
    pieces = [(session.segment(piece.segment).layer, piece.tokens) for piece in session.pieces(0)]
    assert pieces == [("system", 297), ("user", 3)]


def test_a_result_is_what_the_model_saw_of_it(tmp_path: Path) -> None:
    """No content, and a remark behind it; where there is no content at all, what the observation tells."""
    about = {"hostname": "h" * 4000, "suffix": "[The command completed with exit code 0.]"}
    quiet = {"content": [block("")], "metadata": about}
    events = [*SDK[:4], {**result(5, 4.5, "c1", ""), "observation": quiet}, *SDK[7:8]]
    metrics = {"token_usages": [usage("r1", 300, 40, 0, 1)[0], usage("r2", 350, 10, 0, 1)[0]]}
    taken = take("openhands_events", conversation(tmp_path / "one", events, metrics), folder=tmp_path, level="text")
    assert b"completed with exit code 0" in taken.data
    assert b"hhhh" not in taken.data


def test_a_folder_of_several(tmp_path: Path) -> None:
    """Conversations and files beside each other, and a file that is none of them."""
    home = tmp_path / "home"
    conversation(home / "one", SDK)
    conversation(home / "two", SDK[:4])
    written(home / "three.json", OLD)
    written(home / "one" / "TASKS.json", {"tasks": []})
    taken = take("openhands_events", home, folder=tmp_path)
    assert sorted(len(session.turns) for session in taken.sessions) == [1, 3, 3]
    assert taken.books.rows.dropped["document without events"] == 1


@pytest.mark.parametrize(
    "value",
    [
        [],
        [{"kind": "PauseEvent", "id": "x", "timestamp": "t", "source": "user"}],
        {"history": []},
        {"x": 1},
        OLD[:2],
        [1, None],
        [OLD[9]],
    ],
    ids=["no event", "no traffic", "an empty history", "something else", "no reply", "no events", "no prompt"],
)
def test_no_model_call_is_an_error(tmp_path: Path, value: Any) -> None:
    with pytest.raises(BadInput, match="0 model calls that can be used"):
        take("openhands_events", written(tmp_path / "a.json", value))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds no events/"):
        take("openhands_events", tmp_path / "empty")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["text", "content", "id", "arguments", "function", "name", "choices", "message", "usage", "tool_calls"]
    ), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
EVENT = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from([each["kind"] for each in SDK] + ["Condensation", "UserRejectObservation"]) | ANY,
        "action": st.sampled_from(["system", "message", "run", "condensation"]) | ANY,
        "observation": st.sampled_from(["run", "recall"]) | ANY,
        "source": st.sampled_from(["user", "agent"]),
        "args": ANY, "content": ANY, "thought": ANY, "tool_call": ANY, "llm_message": ANY, "tools": ANY,
        "system_prompt": ANY, "llm_response_id": ANY, "forgotten_event_ids": ANY, "summary": ANY, "timestamp": ANY,
        "tool_call_metadata": st.fixed_dictionaries({"model_response": ANY, "tool_call_id": ANY}), "llm_metrics": ANY,
    },
)  # fmt: skip


@given(st.lists(EVENT, max_size=8))
def test_no_events_break_it_and_each_is_counted(tmp_path_factory: pytest.TempPathFactory, events: list[Json]) -> None:
    path = written(tmp_path_factory.mktemp("events") / "a.json", events)
    reading = Reading(Books("event"), CaptureKey(b"k" * 32))
    calls = list(make_reader()(path, reading))
    rows = reading.books.rows
    assert rows.read == len(events) == len(calls) + rows.merged + rows.dropped.total()


def test_tools_ran_from_their_calls_to_their_results(tmp_path: Path) -> None:
    """c1 until 4.5 s and c2 until 6.1 s, side by side; the reply was whole at 4.1 s, the next prompt left at 7 s."""
    taken = take("openhands_events", conversation(tmp_path / "talk", SDK), folder=tmp_path)
    assert taken.turns[1].gap == Gap("tool", 2.9, "recorded", GapParts(2.0, None, "inferred"))
