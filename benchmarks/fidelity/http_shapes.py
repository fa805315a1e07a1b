"""The shapes of a real SGLang's HTTP: each request of a list, and what the server answers, without the values.

    python benchmarks/fidelity/http_shapes.py http://127.0.0.1:18002 -o tests/data/http-shapes-v1.jsonl

Writes one line per request: path, body, status, and the shape of the reply (of each event of a stream, those alike
that follow each other told once). A shape keeps keys and types, and the values of the few fields that are words of the
protocol. The plain tests hold the embedded engine to the file; nothing but this program writes it.
Lists of `long` tokens are made longer than the server's context here and in the tests, to keep the file small.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

WORDS = {"type", "finish_reason", "stop_reason", "status", "object", "role", "phase", "code"}
CONTEXT = 4096  # tokens that the server must have: start it with MAXLEN=4096
LONG = "LONG"  # stands for a text of more tokens than that

CHAT, COMPLETIONS, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
USER = [{"role": "user", "content": "hello there you"}]
COUNTED = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
TIERS = {"return_cached_tokens_details": True}
TALK = [
    *USER,
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "I look"}, {"type": "tool_use", "id": "t1", "name": "get", "input": {}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
]
ITEMS = [
    {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "function_call", "call_id": "c1", "name": "get", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "fine"},
]

CASES: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"messages": USER, "max_tokens": 3}),
    (CHAT, {"messages": USER, "max_tokens": 3, "stream": True}),
    (CHAT, {"messages": USER, "max_tokens": 3, **COUNTED, **TIERS}),
    (CHAT, {"messages": USER, "max_tokens": 3, **TIERS}),
    (CHAT, {"messages": USER, "max_tokens": 70000}),
    (CHAT, {"messages": USER, "max_tokens": CONTEXT - 1}),
    (CHAT, {"messages": USER, "max_tokens": CONTEXT - 1, "stream": True}),
    (CHAT, {"messages": [{"role": "user", "content": LONG}], "max_tokens": 3}),
    (CHAT, {"messages": []}),
    (CHAT, {}),
    (COMPLETIONS, {"prompt": "hello world foo", "max_tokens": 3}),
    (COMPLETIONS, {"prompt": "hello world foo"}),
    (COMPLETIONS, {"prompt": [5, 6, 7, 8], "max_tokens": 3}),
    (COMPLETIONS, {"prompt": "hello world foo", "max_tokens": 3, "stream": True}),
    (COMPLETIONS, {"prompt": "hello world foo", "max_tokens": 3, **COUNTED, **TIERS}),
    (COMPLETIONS, {"prompt": "hello world foo", "max_tokens": 3, **TIERS}),
    (COMPLETIONS, {"prompt": ""}),
    (COMPLETIONS, {"prompt": "a b", "max_tokens": 0}),
    (COMPLETIONS, {"prompt": LONG, "stream": True}),
    (COMPLETIONS, {}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": USER}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": USER, "stream": True}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": TALK, "system": [{"type": "text", "text": "be brief"}]}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": LONG}]}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": LONG}], "stream": True}),
    (MESSAGES, {"model": "m", "max_tokens": 70000, "messages": USER, "stream": True}),
    (MESSAGES, {"model": "m", "max_tokens": 0, "messages": USER}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": []}),
    (MESSAGES, {"model": "m", "messages": USER}),
    (MESSAGES, {"model": "m", "max_tokens": 4, "messages": USER, "tool_choice": {"type": "any"}}),
    (MESSAGES + "/count_tokens", {"model": "m", "messages": TALK}),
    (MESSAGES + "/count_tokens", {"model": "m"}),
    (RESPONSES, {"input": "hello there you", "max_output_tokens": 7}),
    (RESPONSES, {"input": "hello there you", "max_output_tokens": 7, "stream": True}),
    (RESPONSES, {"input": ITEMS, "instructions": "be brief", "max_output_tokens": 7}),
    (RESPONSES, {"input": LONG}),
    (RESPONSES, {"input": LONG, "stream": True}),
    (RESPONSES, {"input": "a", "max_output_tokens": 70000, "stream": True}),
    (RESPONSES, {"input": "a", "max_output_tokens": 1}),
    (RESPONSES, {"input": "a", "previous_response_id": "resp_1"}),
    (RESPONSES, {"input": "a", "background": True}),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}),
    (RESPONSES, {"input": []}),
    (RESPONSES, {}),
    ("/abort_request", {"rid": "nobody"}),
    ("/abort_request", {}),
]


def shape(value: object, key: str = "") -> object:
    """Keys and types; lists by their first item."""
    if isinstance(value, dict):
        return {name: shape(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if value is None or (key in WORDS and isinstance(value, str | int)):
        return value
    return type(value).__name__


def reply_shape(body: bytes, *, stream: bool) -> object:
    """The shape of a body; of a stream a list of [event name or null, shape]."""
    if not stream:
        return shape(json.loads(body)) if body else ""
    events: list[object] = []
    for block in body.decode().split("\n\n"):
        name, data = re.search(r"^event: (.*)$", block, re.MULTILINE), re.search(r"^data: (.*)$", block, re.MULTILINE)
        if data is None:
            continue
        inner = data[1] if data[1] == "[DONE]" else shape(json.loads(data[1]))
        event = [name[1] if name else None, inner]
        if not events or events[-1] != event:
            events.append(event)
    return events


def ask(url: str, path: str, body: dict[str, Any]) -> tuple[int, object]:
    """Status and shape of what a server answers."""
    long = json.dumps("a b " * CONTEXT)
    data = json.dumps(body).replace(json.dumps(LONG), long).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        stream = "event-stream" in (response.headers.get("Content-Type") or "")
        return response.status, reply_shape(response.read(), stream=stream)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("-o", type=Path, required=True)
    args = parser.parse_args()
    lines = []
    for path, body in CASES:
        # Every model is "tiny" there; a second time, so that the cache has the prompt.
        named = {"model": "tiny", **body} if path != "/abort_request" else body
        ask(args.url, path, named)
        status, found = ask(args.url, path, named)
        lines.append(json.dumps({"path": path, "body": named, "status": status, "shape": found}))
    args.o.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} requests", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
