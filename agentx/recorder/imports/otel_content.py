"""The messages of a model call as OpenTelemetry attributes hold them, as a chat body and a chat message.

Three shapes: a whole request or reply as JSON (`input.value`), OpenInference's flat names
(`llm.input_messages.0.message.role`), and the GenAI conventions' JSON (`gen_ai.input.messages`, parts with a type).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentx.recorder.imports.instants import listing, mapping, text
from agentx.recorder.imports.logged import parsed

Json = dict[str, Any]
MAX_MESSAGES = 100_000
HIDDEN = "__REDACTED__"  # what OpenInference writes in place of what it was told to hide


def request_body(told: Mapping[str, Any]) -> Json | None:
    """A chat body with messages and tools; None where the span does not hold them."""
    value = mapping(_json(told.get("input.value")))
    if listing(value.get("messages")):
        return value
    messages = _flat(told, "llm.input_messages") or _parts(told, "gen_ai.input.messages", "gen_ai.prompt")
    if not messages:
        return None
    system = _system(told.get("gen_ai.system_instructions"))
    body: Json = {"messages": [*system, *messages], "tools": _tools(told)}
    for name in ("temperature", "top_p", "top_k", "max_tokens"):
        body[name] = told.get(f"gen_ai.request.{name}")
    return body


def reply_message(told: Mapping[str, Any]) -> Json | None:
    """A chat message of the assistant; None where the span does not hold it."""
    value = mapping(_json(told.get("output.value")))
    for choice in listing(value.get("choices")):
        message = mapping(mapping(choice).get("message"))
        if message:
            return message
    messages = _flat(told, "llm.output_messages") or _parts(told, "gen_ai.output.messages", "gen_ai.completion")
    if messages:
        return messages[0]
    plain = text(told, "gen_ai.output.text")
    return {"role": "assistant", "content": plain} if plain is not None else None


def _json(value: Any) -> Any:
    return parsed(value) if isinstance(value, str) and value != HIDDEN else value


def _flat(told: Mapping[str, Any], prefix: str) -> list[Json]:
    """OpenInference's messages: a name per field, with numbers for the places of lists."""
    tree: Json = {}
    for name, value in told.items():
        if not name.startswith(prefix + ".") or value == HIDDEN:
            continue
        node, *rest = name[len(prefix) + 1 :].split(".")[:12]
        at = tree.setdefault(node, {})
        for part in rest[:-1]:
            at = at.setdefault(part, {}) if isinstance(at, dict) else {}
        if rest and isinstance(at, dict):
            at[rest[-1]] = value
    ordered = sorted((int(place), node) for place, node in tree.items() if place.isdecimal() and len(place) < 7)
    return [found for _, node in ordered if (found := _flat_message(mapping(mapping(node).get("message"))))]


def _flat_message(node: Json) -> Json | None:
    if not node:
        return None
    content = node.get("content")
    if content is None:
        blocks = _ordered(node.get("contents"))
        content = [{"type": "text", "text": mapping(block.get("message_content")).get("text", "")} for block in blocks]
    message: Json = {"role": node.get("role"), "content": content, "tool_call_id": node.get("tool_call_id")}
    calls = []
    for entry in _ordered(node.get("tool_calls")):
        call = mapping(entry.get("tool_call"))
        calls.append({"id": call.get("id"), "type": "function", "function": mapping(call.get("function"))})
    return {**message, **({"tool_calls": calls} if calls else {})}


def _ordered(node: Any) -> list[Json]:
    places = [(int(place), each) for place, each in mapping(node).items() if place.isdecimal() and len(place) < 7]
    return [mapping(each) for _, each in sorted(places, key=lambda pair: pair[0])]


def _parts(told: Mapping[str, Any], *names: str) -> list[Json]:
    """The conventions' messages; those of a plain chat pass as they are."""
    value = next((found for name in names if (found := listing(_json(told.get(name))))), [])
    messages: list[Json] = []
    for entry in map(mapping, value[:MAX_MESSAGES]):
        if isinstance(entry.get("parts"), list):
            messages += _of_parts(text(entry, "role") or "user", [mapping(part) for part in entry["parts"]])
        elif entry:
            messages.append(entry)
    return messages


def _of_parts(role: str, parts: list[Json]) -> list[Json]:
    """A message in parts as chat messages: results of tools are messages of their own there."""
    content: list[Json] = []
    calls: list[Json] = []
    messages: list[Json] = []
    for part in parts:
        kind = part.get("type")
        if kind == "tool_call":
            arguments = part.get("arguments")
            plain = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
            calls.append({"id": part.get("id"), "function": {"name": part.get("name"), "arguments": plain}})
        elif kind == "tool_call_response":
            answer = part.get("response", part.get("result"))
            plain = answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)
            messages.append({"role": "tool", "tool_call_id": part.get("id"), "content": plain})
        elif kind in ("reasoning", "thinking"):
            content.append({"type": "thinking", "thinking": part.get("content")})
        elif kind == "text":
            content.append({"type": "text", "text": str(part.get("content", ""))})
        else:
            content.append(part)
    if content or calls:
        messages.append({"role": role, "content": content, **({"tool_calls": calls} if calls else {})})
    return messages


def _system(value: Any) -> list[Json]:
    parts = [mapping(part) for part in listing(_json(value))]
    texts = [{"type": "text", "text": str(part.get("content", part.get("text", "")))} for part in parts]
    return [{"role": "system", "content": texts}] if texts else []


def _tools(told: Mapping[str, Any]) -> list[Any]:
    tools = listing(_json(told.get("gen_ai.tool.definitions")))
    if tools:
        return tools
    found = []
    for place in range(10_000):
        schema = told.get(f"llm.tools.{place}.tool.json_schema")
        if schema is None:
            break
        found.append(_json(schema) or {"schema": schema})
    return found
