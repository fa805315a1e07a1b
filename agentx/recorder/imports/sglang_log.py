"""SGLang's request log (`--log-requests --log-requests-format json`): a line when a request comes, one when it is done.

The lines of one request are joined by its `rid`. The OpenAI body that came before it has no `rid` and says nothing that
the token ids do not. Level 3 has whole prompts; level 2 cuts them in the middle, which shows in their length; below
there are lengths alone. Lines may have a time in brackets before the JSON, and others may lie between.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import mapping, of_iso, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching, parsed
from agentx.recorder.imports.sglang_requests import UNKNOWABLE, call_of_request
from agentx.recorder.imports.source import lines
from agentx.recorder.imports.token_prompts import Asked, Prompts

MAX_OPEN = 100_000  # requests that have come and are not done


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file."""
    prompts = Prompts()
    came: dict[str, dict[str, Any]] = {}
    rows = reading.books.rows
    for line in lines(path):
        rows.read += 1
        brace = line.data.find(b"{")
        row = mapping(parsed(line.data[brace:])) if brace >= 0 else {}
        event, rid = text(row, "event") or "", text(row, "rid")
        if event == "request.received.openai":
            rows.drop("OpenAI body: its request is read from the line that follows")
        elif event == "request.received" and rid is not None:
            if len(came) >= MAX_OPEN:
                came.pop(next(iter(came)))
                rows.drop("request that was never done")
            rows.drop("request that came twice under one id", int(rid in came))
            came[rid] = row
        elif event == "request.finished" and rid is not None:
            before = came.pop(rid, None)
            rows.merged += before is not None
            call = _call(before or {}, row, reading)
            if isinstance(call, str):
                rows.drop(call)
            else:
                yield from prompts.put(call)
        else:
            rows.drop("line that is about no request")
    rows.drop("request that was never done", len(came))
    yield from prompts.rest()


def _call(came: dict[str, Any], row: dict[str, Any], reading: Reading) -> Asked | str:
    obj = {**mapping(row.get("obj")), **mapping(came.get("obj"))}
    headers = {str(name).lower(): value for name, value in mapping(row.get("headers") or came.get("headers")).items()}
    ids = [(name, value) for name, value in sorted(headers.items()) if isinstance(value, str)]
    times = (of_iso(came.get("timestamp")), of_iso(row.get("timestamp")))
    return call_of_request(obj, mapping(row.get("out")), times, reading, ids)


def make_format() -> LoggedFormat:
    """What `agentx import sglang-log` reads."""
    return LoggedFormat(
        name="sglang-log",
        row="line",
        read=read,
        fidelity=Fidelity("exact", "start-end", "inferred", "server", "total"),
        unknowable=(
            "below level 3: whole prompts; their identities are then those of what is left",
            "when the first token came, unless the server kept metrics; clocks are local",
            *UNKNOWABLE,
        ),
        find=matching("*.log", "*.jsonl"),
    )
