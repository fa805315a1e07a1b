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


class Signature(NamedTuple):
    """The keys that give an object of a format away, the format (as `agentx import` calls it), and what it is."""

    keys: frozenset[str]
    format: str | None
    what: str


def _sign(keys: str, format: str | None, what: str) -> Signature:
    return Signature(frozenset(keys.split()), format, what)


# The first whose keys are all there is named.
SIGNATURES = (
    _sign("frame", None, "an agentx trace in its JSON Lines form"),
    _sign("requests block_size", "weka", "a Weka session"),
    _sign("input_length output_length chat_id", "bailian", "a Bailian trace"),
    _sign("input_length output_length", "mooncake", "a Mooncake trace"),
    _sign("num_turns input_prompt_length", "trie", "a trie workload"),
    _sign("trace_id events", "trtllm", "a TensorRT-LLM scaffolding trace"),
    _sign("log", "har", "a HAR file"),
    _sign("resourceSpans", "otel", "an OpenTelemetry export"),
    _sign("trace_id spans", "otel", "a list of OpenTelemetry spans"),
    _sign("context start_time attributes", "otel", "an OpenTelemetry span"),
    _sign("spanId startTimeUnixNano", "otel", "an OpenTelemetry span"),
    _sign("session_id input_tokens_total", "tracelab", "a TraceLab round"),
    _sign("request_file response_file", "claude-bodies", "an index of Claude Code's raw bodies"),
    _sign("schema_version seq wall_time_unix_ms payload", "codex-trace", "an event of a Codex rollout trace"),
    _sign("timestamp type payload", "codex", "a line of a Codex session"),
    _sign("sessionId type", "claude-code", "a line of a Claude Code session"),
    _sign("request_parameters", "sglang-metrics", "a line of SGLang's exported metrics"),
    _sign("timestamp event obj", "sglang-log", "a line of SGLang's request log"),
    _sign("timestamp event rid", "sglang-log", "a line of SGLang's request log"),
    _sign("litellm_call_id", "litellm", "a logging payload of LiteLLM"),
    _sign("call_type model_parameters", "litellm", "a logging payload of LiteLLM"),
    _sign("metadata responses payload", "aiperf", "a row of AIPerf's raw export"),
    _sign("event agent_context", "dynamo", "an event of a Dynamo trace"),
    _sign("timestamp event", "dynamo", "an event of a Dynamo trace"),
    _sign("messages trajectory_format", "mini-swe-agent", "a trajectory of mini-swe-agent"),
    _sign("messages info", "mini-swe-agent", "a trajectory of mini-swe-agent"),
    _sign("messages response", "openhands", "a completion log of OpenHands"),
    _sign("messages latency_sec", "openhands", "a completion log of OpenHands"),
    _sign("input response latency_sec", "openhands", "a completion log of OpenHands"),
    _sign("id timestamp source kind", "openhands-events", "an event of OpenHands"),
    _sign("timestamp source action", "openhands-events", "an event of OpenHands"),
    _sign("timestamp source observation", "openhands-events", "an event of OpenHands"),
    _sign("instance_id history", "openhands-events", "a row of histories of OpenHands"),
    _sign("conversation_id role", "mlperf", "an MLPerf agentic row"),
    _sign("messages", "chats", "a file of chat messages"),
    _sign("metadata conversations", None, "SGLang's agentic-trace dataset"),
    _sign("conversations", "chats", "a file of conversations"),
)


def signed(value: Any) -> Signature | None:
    """The signature that a parsed value has."""
    return next((each for each in SIGNATURES if each.keys <= value.keys()), None) if isinstance(value, dict) else None


def looks_like(value: Any) -> str:
    """What a parsed value seems to be, for an error message."""
    found = signed(value)
    if found is not None:
        return f"{found.what} (agentx import {found.format})" if found.format is not None else found.what
    if isinstance(value, dict):
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


def parse(data: bytes, path: Path, line: int | None = None, *, blocks: bool = True) -> Any:
    """One JSON value, its lists of block ids packed unless it has none that are wanted (`blocks` False).

    Raises BadInput, with the line, for what is not JSON or ends in the middle.
    """
    if data.startswith(MAGIC):
        raise BadInput("this is an agentx trace already", file=path, hint="agentx inspect reads it")
    try:
        return json.loads(data, object_hook=_hash_ids if blocks else None, parse_constant=_refuse)
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
