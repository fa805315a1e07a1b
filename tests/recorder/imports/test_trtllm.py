"""TensorRT-LLM scaffolding traces: conversations are threads, branches run side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importing import Json, layers

from agentx.core import Gap, Session, Tool
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.running import import_files
from agentx.recorder.imports.trtllm import make_format
from agentx.trace import read_trace


def say(role: str, tokens: int, path: tuple[int, ...] = (), conversation: str = "c0", **more: object) -> Json:
    body = {"event_type": "message", "branch_path": list(path), "conversation_id": conversation, "role": role}
    return {**body, "tokens": tokens, **more}


def call(out: int, path: tuple[int, ...] = (), conversation: str = "c0", **more: object) -> Json:
    body = {"event_type": "message", "branch_path": list(path), "conversation_id": conversation, "role": "assistant"}
    return {**body, "completion_tokens": out, **more}


def ran(ms: float, path: tuple[int, ...] = (), name: str = "bash") -> Json:
    return {"event_type": "tool_call", "branch_path": list(path), "tool_name": name, "duration_ms": ms}


def fork(path: tuple[int, ...] = ()) -> Json:
    return {"event_type": "parallel_start", "branch_path": list(path), "num_branches": 2}


def join(path: tuple[int, ...] = ()) -> Json:
    return {"event_type": "parallel_end", "branch_path": list(path)}


def imported(tmp_path: Path, *traces: list[Json]) -> tuple[list[Session], Books]:
    (tmp_path / "in").mkdir(exist_ok=True)
    for number, events in enumerate(traces):
        body = {"trace_id": f"t{number}", "events": events}
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps(body))
    books = import_files(make_format(), [tmp_path / "in"], tmp_path / "out.trace")
    return list(read_trace(tmp_path / "out.trace")), books


def test_a_tool_loop_drops_reasoning_and_keeps_what_nothing_accounts_for(tmp_path: Path) -> None:
    (session,), books = imported(
        tmp_path,
        [
            *[say("system", 30), say("user", 10), call(12, reasoning_tokens=8, prompt_tokens=45)],
            *[ran(200), ran(300, name="grep"), say("tool", 5), call(3, prompt_tokens=40)],
            {"event_type": "drop_kv_cache", "branch_path": []},
        ],
    )
    first, second = session.turns
    assert (first.isl, first.output.visible, first.output.reasoning) == (45, 4, 8)
    assert layers(session, 1) == [("system", 30), ("user", 10), ("assistant", 4), ("tool_result", 5)]
    assert second.isl == 49  # the sum: its messages are longer than what was told
    assert second.gap == Gap("tool", 0.5)  # one after another
    assert second.tools == (Tool("bash", 0.2), Tool("grep", 0.3))
    assert books.rows.dropped == {"drop_kv_cache: a server's doing, not an agent's": 1}
    assert (books.rows.read, books.rows.used) == (8, 7)


def test_branches_are_threads_that_run_side_by_side(tmp_path: Path) -> None:
    (session,), _ = imported(
        tmp_path,
        [
            *[say("user", 10), call(1), ran(100), fork()],
            *[say("user", 20, (0,), "a"), call(2, (0,), "a"), ran(50, (0,)), call(2, (0,), "a"), ran(700, (0,))],
            *[say("user", 30, (1,), "b"), call(3, (1,), "b"), ran(900, (1,))],
            *[join(), call(4)],
        ],
    )
    assert [(t.id, t.parent, t.kind) for t in session.threads] == [
        (0, None, "main"),
        (1, 0, "subagent"),
        (2, 0, "subagent"),
    ]
    assert [(turn.thread, turn.after) for turn in session.turns] == [
        (0, ()),
        (1, (0,)),
        (1, (1,)),
        (2, (0,)),
        (0, (2, 3)),
    ]
    assert [turn.gap for turn in session.turns[1:]] == [
        Gap("spawn", 0.1),
        Gap("tool", 0.05),
        Gap("spawn", 0.1),
        Gap("tool", 0.9),  # the longest of 0.7 and 0.9
    ]
    assert [turn.isl for turn in session.turns] == [10, 20, 22, 30, 11]


def test_parallel_tools_are_branches_without_a_call(tmp_path: Path) -> None:
    (session,), _ = imported(
        tmp_path,
        [
            *[
                say("user", 10),
                call(1),
                fork(),
                ran(300, (0,)),
                say("tool", 4, (0,)),
                ran(200, (1,)),
                say("tool", 6, (1,)),
            ],
            *[join(), call(1)],
        ],
    )
    assert [turn.after for turn in session.turns] == [(), (0,)]
    assert session.turns[1].gap == Gap("tool", 0.3)
    assert [tool.seconds for tool in session.turns[1].tools] == [0.3, 0.2]
    assert session.turns[1].isl == 21


def test_a_system_prompt_with_an_id_is_shared_between_traces(tmp_path: Path) -> None:
    events = [say("system", 30, system_prompt_id="p"), say("user", 10), call(1)]
    first, second = imported(tmp_path, events, events)[0]
    runs = [session.runs(0) for session in (first, second)]
    assert runs[0][0].stream == runs[1][0].stream
    assert runs[0][1].stream != runs[1][1].stream


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"event_type": "sleep"}, "event 2: event_type: 'sleep' is not one of"),
        (ran(-1), "event 2: duration_ms: -1.0 is not"),
        (say("robot", 1), "event 2: role: 'robot' is not one of"),
        (call(-1), "event 2: completion_tokens: -1 is not"),
        ({**ran(1), "branch_path": "0"}, "event 2: branch_path: '0' is not a list"),
        (7, "event 2: 7 is not an object"),
        (say("user", 1), "0 model calls: the trace has no assistant message"),
    ],
)
def test_a_bad_event_is_refused_with_its_place(tmp_path: Path, event: object, message: str) -> None:
    with pytest.raises(BadInput, match=r"0\.json: " + message):
        imported(tmp_path, [say("user", 1), event])  # type: ignore[list-item]
