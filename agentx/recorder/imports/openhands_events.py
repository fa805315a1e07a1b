"""OpenHands' conversations as events: those that its SDK keeps (`base_state.json` and `events/`, a file for each), or
trajectories and histories, lists of events in a JSON file or in the rows of one.

A reply of the model is one event, or one for each of its calls; its prompt is everything before it that was not
forgotten. Tokens and times are the model's own where the state or the metrics of a row tell them for each response;
else what the totals grew by, else lengths are estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item, message_items
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import count, listing, mapping, of_iso, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reader, Reading, parsed, whole
from agentx.recorder.imports.openhands_dialects import Forgot, Made, told
from agentx.recorder.imports.source import lines
from agentx.recorder.imports.transcripts import Heads, shallow
from agentx.recorder.pauses import ToolTime
from agentx.recorder.replies import Usage, reply_of, usage_of

Json = dict[str, Any]
STATE, EVENTS = "base_state.json", "events"


class Measured(NamedTuple):
    """What is told of one response: tokens, nanoseconds that it took, the model."""

    usage: Usage
    took: int | None
    model: str


@dataclass(slots=True)
class Coming:
    """A reply in the making: its first event's id, its parts, and when the last of them was written."""

    made: Made
    id: str
    calls: list[Json]
    at: int | None


@dataclass(slots=True)
class Talk:
    """One conversation as it is read."""

    name: str
    heads: Heads
    measured: Mapping[str, Measured]
    model: str = ""
    front: list[Item] = field(default_factory=list)
    entries: list[tuple[str, tuple[Item, ...]]] = field(default_factory=list)  # (event, its part of later prompts)
    coming: Coming | None = None
    over: set[str] = field(default_factory=set)  # responses that have been read
    asked: int | None = None  # when the last event before the reply was written
    total: Json = field(default_factory=dict)  # tokens of all calls, at the last one
    emitted: dict[str, int] = field(default_factory=dict)  # a tool call -> when its event was written


def make_reader() -> Reader:
    """A reader that knows the heads of the conversations before: some trajectories begin behind tools and system."""
    heads = Heads("openhands")

    def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
        if path.is_dir():
            state = mapping(parsed(whole(path / STATE))) if (path / STATE).is_file() else {}
            model = text(mapping(mapping(state.get("agent")).get("llm")), "model") or ""
            talk = Talk(str(path.resolve()), heads, _measured(mapping(state.get("stats"))), model)
            yield from _conversation(talk, map(parsed, map(whole, _event_files(path))), reading)
            return
        for number, value in enumerate(_values(path)):
            row = mapping(value)
            named = (row[key] for key in ("history", "trajectory", "events") if isinstance(row.get(key), list))
            events = value if isinstance(value, list) else next(named, None)
            if events is None:
                reading.books.rows.read += 1
                reading.books.rows.drop("document without events")
                continue
            talk = Talk(f"{path.resolve()} {number}", heads, _measured(mapping(row.get("metrics"))))
            yield from _conversation(talk, events, reading)

    return read


def _event_files(folder: Path) -> list[Path]:
    """In the order of the numbers in their names: event-00012-ID.json."""

    def place(file: Path) -> tuple[int, str]:
        found = re.match(r"event-(\d{1,9})", file.name)
        return int(found[1]) if found else 0, file.name

    return sorted((folder / EVENTS).glob("*.json"), key=place)


def _values(path: Path) -> Iterator[Any]:
    """The conversations of a file: one document, or one a line; lines that are events are one conversation."""
    document = parsed(whole(path))
    found = [document] if document is not None else [parsed(line.data) for line in lines(path)]
    if any(map(_is_event, found)):
        yield found
    else:
        yield from found


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and ("kind" in value or "action" in value or "observation" in value)


def _flat(events: Any) -> Iterator[Any]:
    """Events, also where they are kept in pairs."""
    for event in events:
        if isinstance(event, list):
            yield from event
        else:
            yield event


def _conversation(talk: Talk, events: Any, reading: Reading) -> Iterator[ModelCall]:
    rows = reading.books.rows
    for event in _flat(events):
        rows.read += 1
        what = told(event) if isinstance(event, dict) else "entry that is no event"
        if isinstance(what, str):
            rows.drop(what)
            continue
        at, id = of_iso(event.get("timestamp")), str(event.get("id"))
        if isinstance(what, Made):
            _emitted(talk, what, at)
            if _goes_on(talk, what, at):
                rows.merged += 1
                continue
            yield from _ended(talk, reading)
            talk.coming = Coming(what, id, list(listing(what.message.get("tool_calls"))), at)
            continue
        yield from _ended(talk, reading)
        rows.merged += 1
        talk.asked = at if at is not None else talk.asked
        if isinstance(what, Forgot):
            _forget(talk, what, id, reading)
        elif what.front:
            talk.front += what.items
        else:
            _ran(talk, what.items, at, reading)
            talk.entries.append((id, what.items))
    yield from _ended(talk, reading)


def _emitted(talk: Talk, made: Made, at: int | None) -> None:
    """Note when a reply's tool calls were written."""
    for call in map(mapping, listing(made.message.get("tool_calls"))):
        if at is not None and isinstance(call.get("id"), str):
            talk.emitted.setdefault(call["id"], at)


def _ran(talk: Talk, items: tuple[Item, ...], at: int | None, reading: Reading) -> None:
    """When the tools ran whose results come: from their calls to these, a wait for leave inside."""
    for call in (call for item in items for call in item.answers):
        begun = talk.emitted.get(call)
        if begun is not None and at is not None and begun <= at:
            reading.tool_times[call] = ToolTime(runs=((begun, at),), exact=False)


def _goes_on(talk: Talk, made: Made, at: int | None) -> bool:
    """Whether an event is another call of a reply that has begun."""
    if made.response is None:
        return False
    if talk.coming is not None and talk.coming.made.response == made.response:
        if not made.whole:
            talk.coming.calls += listing(made.message.get("tool_calls"))
        talk.coming.at = at if at is not None else talk.coming.at
        return True
    return made.response in talk.over


def _ended(talk: Talk, reading: Reading) -> Iterator[ModelCall]:
    """The call whose reply is complete."""
    coming, talk.coming = talk.coming, None
    if coming is None:
        return
    made = coming.made
    message = {**made.message, "role": "assistant", "tool_calls": coming.calls}
    if made.response is not None:
        talk.over.add(made.response)
    known = talk.measured.get(made.response or "")
    usage = known.usage if known is not None else _usage(talk, made)
    if usage.prompt is None:
        reading.books.note("call without its tokens: lengths are estimated")
        reading.known(usage="estimated")
    prompt = (*talk.front, *(item for _, items in talk.entries for item in items))
    if prompt:
        if not talk.front:
            prompt = (*talk.heads.of(talk.name, made.model, prompt, usage), *prompt)
        reply = replace(reply_of("chat", {"choices": [{"message": message}]}), usage=usage, id=made.response)
        start = talk.asked
        if known is not None and known.took is not None and coming.at is not None:
            start = coming.at - known.took
        begin = min(start, coming.at) if start is not None and coming.at is not None else coming.at
        model = (known.model if known is not None else "") or made.model or talk.model
        names = (("x-session-id", talk.name),)
        yield reading.call(begin, coming.at, "chat", Call(model, prompt), reply, names)
    else:
        reading.books.rows.drop("reply without a prompt before it")
    talk.entries.append((coming.id, shallow(message_items, message)))
    talk.asked = coming.at if coming.at is not None else talk.asked


def _usage(talk: Talk, made: Made) -> Usage:
    """The response's own tokens, or what the totals grew by since the call before."""
    before, talk.total = talk.total, made.total or talk.total
    if made.usage.prompt is not None or not made.total:
        return made.usage
    grown = {
        name: now - (count(before.get(name)) or 0)
        for name in ("prompt_tokens", "completion_tokens", "cache_read_tokens")
        if (now := count(made.total.get(name))) is not None
    }
    return usage_of("chat", {**grown, "cached_tokens": grown.get("cache_read_tokens")})


def _forget(talk: Talk, what: Forgot, id: str, reading: Reading) -> None:
    """Events leave later prompts; a summary may stand for them. The call that made it is not among the events."""
    talk.entries = [entry for entry in talk.entries if entry[0] not in what.ids]
    if what.summary:
        talk.entries.insert(min(what.offset, len(talk.entries)), (id, what.summary))
    reading.books.note("condensation: the call that wrote its summary is not told")


def _measured(told: Json) -> dict[str, Measured]:
    """By response: the tokens and times in metrics, of one model or of several by what they are used for."""
    found: dict[str, Measured] = {}
    groups = mapping(told.get("usage_to_metrics")).values() if "usage_to_metrics" in told else [told]
    for metrics in map(mapping, groups):
        took = {
            each.get("response_id"): of_number(each.get("latency"))
            for each in map(mapping, listing(metrics.get("response_latencies")))
        }
        for usage in map(mapping, listing(metrics.get("token_usages"))):
            response = text(usage, "response_id")
            if response is not None:
                named = {
                    "cached_tokens": usage.get("cache_read_tokens"),
                    "reasoning_tokens": usage.get("reasoning_tokens"),
                }
                found[response] = Measured(
                    usage_of("chat", {**usage, **named}), took.get(response), text(usage, "model") or ""
                )
    return found


def _find(folder: Path) -> list[Path]:
    """The conversations below a folder: those with `events/`, and files of events."""
    folders = {path.parent for path in folder.rglob(EVENTS) if path.is_dir() and any(path.glob("*.json"))}
    inside = {each / part for each in folders for part in (STATE, EVENTS)}
    files = {
        path
        for pattern in ("*.json", "*.jsonl")
        for path in folder.rglob(pattern)
        if path.is_file() and path not in inside and path.parent not in inside
    }
    if not folders and not files:
        raise BadInput("the folder holds no events/ with files, and no *.json or *.jsonl", file=folder)
    return sorted({*folders, *files})


def make_format() -> LoggedFormat:
    """What `agentx import openhands-events` reads."""
    return LoggedFormat(
        name="openhands-events",
        row="event",
        read=make_reader(),
        fidelity=Fidelity("reconstructed", "start-end", "header", "server", "total"),
        unknowable=(
            "when the first token came; retries, which the client hides",
            "when a request left, where no latency is told: a call starts when the event before it was written",
            "tools and system text where no event has them: one stretch of known length; parameters of tools",
            "calls that condense the history; subagents are sessions of their own",
            "what stands between two calls: permissions, the user's own time",
        ),
        find=_find,
    )
