"""SGLang's request dumps and crash dumps: pickles of (request, answer, created, finished).

They are read without being run (`pickles.py`): no class of SGLang is needed, none is imported, nothing is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import listing, mapping, of_number
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching, whole
from agentx.recorder.imports.pickles import Record, Refused, unpickled
from agentx.recorder.imports.sglang_requests import UNKNOWABLE, call_of_request
from agentx.recorder.imports.token_prompts import Asked, Prompts


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a dump. Raises BadInput for what is no pickle of data."""
    prompts = Prompts()
    try:
        value = unpickled(whole(path))
    except Refused as error:
        raise BadInput(f"the dump is refused: {error}", file=path) from None
    requests = value.get("requests") if isinstance(value, dict) else value
    for entry in listing(requests):
        reading.books.rows.read += 1
        call = _call(entry, reading)
        if isinstance(call, str):
            reading.books.rows.drop(call)
        else:
            yield from prompts.put(call)
    yield from prompts.rest()


def _call(entry: Any, reading: Reading) -> Asked | str:
    if not isinstance(entry, tuple | list) or len(entry) < 3:
        return "entry that is no request"
    request, out = entry[0], entry[1]
    obj = {key: _plain(value) for key, value in request.state.items()} if isinstance(request, Record) else request
    if not isinstance(obj, dict):
        return "entry that is no request"
    ended = of_number(entry[3]) if len(entry) > 3 else None
    return call_of_request(obj, mapping(out), (of_number(entry[2]), ended), reading)


def _plain(value: Any) -> Any:
    """A field of a request; sampling parameters are a record in some versions."""
    return value.state if isinstance(value, Record) else value


def make_format() -> LoggedFormat:
    """What `agentx import sglang-dump` reads."""
    return LoggedFormat(
        name="sglang-dump",
        row="request",
        read=read,
        fidelity=Fidelity("exact", "ttft", "inferred", "server", "total"),
        unknowable=("requests that a crash or a shut-down kept from being dumped", *UNKNOWABLE),
        find=matching("*.pkl"),
    )
