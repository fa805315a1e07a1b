"""OpenHands' completion logs: a file per call, conversations by content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs import Json, take, written

from agentx.core import Tool
from agentx.errors import BadInput

CALL = {"id": "c1", "type": "function", "function": {"name": "execute_bash", "arguments": "{}"}}


def log(end: float, messages: list[Json], message: Json, prompt: int, out: int, **more: Any) -> Json:
    usage = {"prompt_tokens": prompt, "completion_tokens": out}
    response = {"id": "x", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    return {
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": "execute_bash"}}],
        "response": response,
        "cost": 0.0,
        "timestamp": 1_796_054_000.0 + end,
        "latency_sec": 2.0,
        **more,
    }


def put(folder: Path) -> Path:
    talk: list[Json] = [{"role": "system", "content": [{"type": "text", "text": "be good"}]},
                        {"role": "user", "content": "fix it"}]  # fmt: skip
    reply = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    later = [*talk, reply, {"role": "tool", "tool_call_id": "c1", "content": "ok"}]
    written(folder / "m-1.json", log(2, talk, reply, 200, 20))
    written(folder / "m-2.json", log(9, later, {"role": "assistant", "content": "done"}, 240, 5))
    failed = log(20, [{"role": "user", "content": "other"}], {}, 0, 0, error={"type": "RateLimitError"})
    del failed["response"]
    written(folder / "m-3-error.json", failed)
    return folder


def test_files_become_turns(tmp_path: Path) -> None:
    taken = take("openhands", put(tmp_path / "logs"), folder=tmp_path)
    (session,) = taken.sessions
    second = session.turns[1]
    assert taken.lengths() == [(200, 20), (240, 5)]
    assert (second.gap.kind, second.gap.seconds, second.tools) == ("tool", 5.0, (Tool("execute_bash"),))
    assert session.extra["known_by"] == "linked"
    assert taken.books.rows.dropped == {"never answered: an error in place of a response": 1}


def test_other_files_are_counted(tmp_path: Path) -> None:
    folder = put(tmp_path / "logs")
    written(folder / "other.json", {"messages": []})
    (folder / "broken.json").write_text("{")
    dropped = take("openhands", folder, folder=tmp_path).books.rows.dropped
    assert dropped["file that is no completion log (openhands-events reads events)"] == 2
    with pytest.raises(BadInput, match="0 model calls"):
        take("openhands", folder / "other.json")
