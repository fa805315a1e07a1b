"""OpenHands' completion logs (`log_completions`): one JSON file per model call, with messages, tools and response.

A file has when the call was done and, in newer ones, how long it took. Files of calls that failed have an error in
place of a response. Conversations are found by their content: a folder may hold several.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import mapping, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching, parsed, whole
from agentx.recorder.replies import Reply, reply_of

Json = dict[str, Any]
_KEPT = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "tools")


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The call of a file."""
    reading.books.rows.read += 1
    call = _call(mapping(parsed(whole(path))), reading)
    if isinstance(call, str):
        reading.books.rows.drop(call)
    else:
        yield call


def _call(log: Json, reading: Reading) -> ModelCall | str:
    response, asked = mapping(log.get("response")), mapping(log.get("kwargs"))
    wire = "responses" if "input" in log or isinstance(response.get("output"), list) else "chat"
    said = log.get("input", log.get("messages")) if wire == "responses" else log.get("messages")
    if not isinstance(said, list) or not said or ("response" not in log and "error" not in log):
        return "file that is no completion log (openhands-events reads events)"
    model = text(response, "model") or text(log, "model", "llm_path") or text(asked, "model")
    body = {name: log.get(name, asked.get(name)) for name in _KEPT}
    body |= {"model": model, "instructions": log.get("instructions")}
    request = reading.request(wire, {**body, "input" if wire == "responses" else "messages": said})
    if isinstance(request, str):
        return request
    end, took = of_number(log.get("timestamp")), of_number(log.get("latency_sec"))
    start = end - took if end is not None and took is not None and end >= took else end
    reading.books.note("call without its latency: it starts when it ended (inferred)", took is None)
    reply = reply_of(wire, response) if response else Reply(False, error="an error in place of a response")
    return reading.call(start, end, wire, request, reply)


def make_format() -> LoggedFormat:
    """What `agentx import openhands` reads."""
    return LoggedFormat(
        name="openhands",
        row="file",
        read=read,
        fidelity=Fidelity("exact", "start-end", "linked", "server", "total"),
        unknowable=(
            "when the first token came; retries, which the client hides",
            "what stands between two calls: permissions, the user's own time",
        ),
        find=matching("*.json"),
    )
