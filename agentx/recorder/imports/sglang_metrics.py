"""SGLang's `--export-metrics-to-file`: one JSON line per request, its parameters and the server's own figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import mapping, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching, parsed
from agentx.recorder.imports.sglang_requests import UNKNOWABLE, call_of_request
from agentx.recorder.imports.token_prompts import Prompts


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file."""
    prompts = Prompts()
    for _, row in reading.rows(path):
        told = text(row, "request_parameters")
        obj = mapping(parsed(told)) if told is not None else {}
        if not obj:
            reading.books.rows.drop("line without request parameters")
            continue
        call = call_of_request(obj, {"meta_info": row}, (None, None), reading)
        if isinstance(call, str):
            reading.books.rows.drop(call)
        else:
            yield from prompts.put(call)
    yield from prompts.rest()


def make_format() -> LoggedFormat:
    """What `agentx import sglang-metrics` reads."""
    return LoggedFormat(
        name="sglang-metrics",
        row="request",
        read=read,
        fidelity=Fidelity("exact", "ttft", "inferred", "server", "total"),
        unknowable=("replies: only their lengths", *UNKNOWABLE),
        find=matching("sglang-request-metrics-*.log"),
    )
