"""mini-swe-agent's trajectories (`*.traj.json`): the messages of one run, as an object or, of old, a bare list.

Each message of the assistant is a call; its prompt is all messages before it. Newer files have the raw response with
its usage and a time on each message; the bare list has neither, so that lengths are estimated and there are no times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item, message_items
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import mapping, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, document, matching
from agentx.recorder.imports.transcripts import shallow
from agentx.recorder.pauses import Run, ToolTime
from agentx.recorder.replies import reply_of, usage_of

Json = dict[str, Any]


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file. Raises BadInput for what is no trajectory."""
    value = document(path)
    messages = value if isinstance(value, list) else mapping(value).get("messages")
    if not isinstance(messages, list):
        raise BadInput("not a trajectory: neither a list of messages nor an object with one", file=path)
    if isinstance(value, list):
        reading.known(timing="ordinal", usage="estimated", gaps="none")
    config = mapping(mapping(mapping(mapping(value).get("info")).get("config")).get("model"))
    model = text(config, "model_name") or ""
    history: list[Item] = []
    answered = False  # from then on a user's message is what a command printed
    asked: str | None = None  # the id of the reply whose commands run
    before: int | None = None  # when the message before was there
    for message in messages:
        reading.books.rows.read += 1
        if not isinstance(message, dict):
            reading.books.rows.drop("entry that is no message")
            continue
        at = of_number(mapping(message.get("extra")).get("timestamp"))
        if message.get("role") == "assistant" and history:
            yield _call(path, message, model, tuple(history), (before, at), reading)
        else:
            reading.books.rows.merged += 1
        _ran(message, asked, before, at, reading)
        history += _items(message, answered)
        asked = _asked(message, asked)
        answered = answered or message.get("role") == "assistant"
        before = at if at is not None else before


def _asked(message: Json, asked: str | None) -> str | None:
    """The id of the last reply, where it is told."""
    if message.get("role") != "assistant":
        return asked
    return text(mapping(mapping(message.get("extra")).get("response")), "id")


def _ran(message: Json, asked: str | None, before: int | None, at: int | None, reading: Reading) -> None:
    """When the command ran whose output a message is: from the message before, as commands run one by one.

    What asks the user for leave asks in this time, too.
    """
    role, call = message.get("role"), text(message, "tool_call_id")
    if before is None or at is None or at < before or "returncode" not in mapping(message.get("extra")):
        return
    time = ToolTime(runs=((before, at),), exact=False)
    if call is not None:
        reading.tool_times[call] = time
    elif role == "user":
        reading.runs.append((asked, Run("bash", time)))


def _items(message: Json, answered: bool) -> tuple[Item, ...]:
    items = shallow(message_items, {key: value for key, value in message.items() if key != "extra"})
    if message.get("role") in ("system", "developer"):
        return tuple(replace(item, layer="system") for item in items)
    if answered and message.get("role") == "user":
        return tuple(replace(item, layer="tool_result") for item in items)
    return items


def _call(
    path: Path, message: Json, model: str, prompt: tuple[Item, ...], times: tuple[int | None, int | None],
    reading: Reading,
) -> ModelCall:  # fmt: skip
    response = mapping(mapping(message.get("extra")).get("response"))
    value = {"choices": [{"message": {key: part for key, part in message.items() if key != "extra"}}]}
    reply = replace(reply_of("chat", value), usage=usage_of("chat", response.get("usage")), id=text(response, "id"))
    start, end = times if times[1] is not None else (None, None)
    request = Call(text(response, "model") or model, prompt)
    return reading.call(start, end, "chat", request, reply, (("x-session-id", str(path.resolve())),))


def make_format() -> LoggedFormat:
    """What `agentx import mini-swe-agent` reads."""
    return LoggedFormat(
        name="mini-swe-agent",
        row="message",
        read=read,
        fidelity=Fidelity("reconstructed", "start-end", "linked", "server", "total"),
        unknowable=(
            "when the first token came; retries, which the agent hides; tools of the request",
            "in a bare list: times, usage, model",
        ),
        find=matching("*.traj.json", "*.traj"),
    )
