"""Reading a source file: JSON documents and JSON Lines, with every mistake named by file and line.

`hash_ids` lists become arrays of 64-bit numbers as soon as their object is parsed, so that a big document costs 8
bytes a block id and not 40. What is no such list is left as it is, for the validation to name its place.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agentx.errors import BadInput
from agentx.frames import MAGIC, open_for_reading
from agentx.trace_bodies import Body, Invalid
from agentx.trace_lines import lines_of

# Formats by the keys that give them away; the first whose keys are all there is named.
_SIGNATURES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"frame"}), "an agentx trace in its JSON Lines form"),
    (frozenset({"requests", "block_size"}), "a Weka session (agentx import weka)"),
    (frozenset({"input_length", "output_length", "chat_id"}), "a Bailian trace (agentx import bailian)"),
    (frozenset({"input_length", "output_length"}), "a Mooncake trace (agentx import mooncake)"),
    (frozenset({"num_turns", "input_prompt_length"}), "a trie workload (agentx import trie)"),
    (frozenset({"trace_id", "events"}), "a TensorRT-LLM scaffolding trace (agentx import trtllm)"),
    (frozenset({"log"}), "a HAR file"),
    (frozenset({"resourceSpans"}), "an OpenTelemetry export"),
    (frozenset({"session_id", "input_tokens_total"}), "a TraceLab round (agentx import tracelab)"),
    (frozenset({"conversation_id", "role"}), "an MLPerf agentic row (agentx import mlperf)"),
    (frozenset({"messages"}), "a file of chat messages (agentx import chats)"),
)


def looks_like(value: Any) -> str:
    """What a parsed value seems to be, for an error message."""
    if isinstance(value, dict):
        for keys, name in _SIGNATURES:
            if keys <= value.keys():
                return name
        return f"an object with the keys {', '.join(sorted(map(str, value))[:6]) or '(none)'}"
    return "a JSON list" if isinstance(value, list) else f"the JSON value {value!r:.40}"


def _hash_ids(value: dict[str, Any]) -> dict[str, Any]:
    ids = value.get("hash_ids")
    if type(ids) is list and set(map(type, ids)) <= {int}:
        try:
            value["hash_ids"] = array("Q", ids)
        except OverflowError:
            return value  # below 0 or above 64 bits: block_ids() says so with its place
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def parse(data: bytes, path: Path, line: int | None = None) -> Any:
    """One JSON value. Raises BadInput, with the line, for what is not JSON or ends in the middle."""
    if data.startswith(MAGIC):
        raise BadInput("this is an agentx trace already", file=path, hint="agentx inspect reads it")
    try:
        return json.loads(data, object_hook=_hash_ids, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        at = line if line is not None else error.lineno
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            whole = line is not None and data.endswith(b"\n")
            message = (
                "this line is no whole JSON value; one a line is needed" if whole else "the JSON is cut in the middle"
            )
            raise BadInput(message, file=path, line=at) from None
        raise BadInput(f"not JSON: {error.msg} at column {error.colno}{_text(data)}", file=path, line=at) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {str(error).split(':')[0]}", file=path, line=line) from None


def _text(data: bytes) -> str:
    first = data.lstrip()[:200].split(b"\n")[0]
    return "; it looks like CSV" if first.count(b",") >= 2 and first[:1] not in b'{["' else ""


def parse_file(path: Path, digest: Any) -> Any:
    """A whole file as one JSON value; its bytes go through `digest`, a hashlib object."""
    with open_for_reading(path) as file:
        data = file.read()
    digest.update(data)
    return parse(data, path)


class Line(NamedTuple):
    """A line that is not blank: its number from 1, its first byte in the file, its bytes."""

    number: int
    offset: int
    data: bytes


def lines(path: Path, digest: Any = None) -> Iterator[Line]:
    """The lines of a JSON Lines file that are not blank; all bytes go through `digest`, a hashlib object."""
    with open_for_reading(path) as file:
        offset = 0
        for number, data in enumerate(lines_of(file, path), start=1):
            if digest is not None:
                digest.update(data)
            if data.strip():
                yield Line(number, offset, data)
            offset += len(data)


def block_ids(body: Body, key: str = "hash_ids") -> array[int]:
    """The block ids of a row. Raises Invalid for what is not a list of whole numbers from 0 to 2^64 - 1."""
    value = body.get(key)
    if isinstance(value, array):
        return value
    if key not in body:
        raise Invalid(f"the field {key!r} is missing")
    if not isinstance(value, list):
        raise Invalid(f"{key}: {value!r:.60} is not a list of block ids")
    for id in value:
        if type(id) is not int or not 0 <= id < 1 << 64:
            raise Invalid(f"{key}: {id!r:.40} is not a block id (a whole number from 0 to 2^64 - 1)")
    return array("Q", value)


def texts(body: Body, key: str) -> tuple[str, ...]:
    """An optional list of texts."""
    value = body.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Invalid(f"{key}: {value!r:.60} is not a list of texts")
    return tuple(value)
