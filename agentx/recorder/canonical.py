"""A model call's request in canonical form: its prompt as items, in the order in which servers render it.

Two prompts share an item exactly when its canonical JSON is equal. What varies without changing the prompt does not
count; the rules are `RULES`, and every trace that was made with them lists them. Items are what an agent appends:
a tool, a system text, what one message holds of one layer. Prompts without messages (text, token ids) are cut into
blocks from their start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from agentx.core import Layer
from agentx.recorder.canonical_json import clean, key_of, strings
from agentx.recorder.identity import body_ids
from agentx.recorder.memo import Memo

VERSION = 1
RULES = (
    "requests are parsed: the order of keys and the white space between them do not count",
    "cache_control, signature and encrypted_content do not count; nor do keys that are null or an empty list",
    "a string as content is the same as one text block",
    "the value of cch= in a text that begins with x-anthropic-billing-header: does not count",
    "tools come first, then system texts, then the messages; each tool is an item",
    "what one message holds of one layer is one item; reasoning in a message of the past is no item of its own",
    "arguments of tool calls are compared as they are written in chat and responses, parsed in messages",
    "calls in responses that follow an assistant's message or call are of the same message",
    "images and files are compared by a digest of their data",
    "a prompt of text or ids is cut into blocks of 256 characters or 64 ids, from the end of what it goes on from",
)
TEXT_BLOCK, ID_BLOCK = 256, 64
TEXT, IDS, REPLY, REPLY_IDS = (
    b"text:",
    b"ids:",
    b"reply:",
    b"reply-ids:",
)  # how keys of plain prompts begin
IMAGE_WEIGHT = 6000  # bytes of text that an image or file is taken for when tokens are split by bytes
_BINARY = frozenset({"image", "image_url", "input_image", "input_audio", "file", "input_file", "document"})
_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_BILLING = re.compile(r"(?<=\bcch=)[0-9a-zA-Z]+")
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens")


class NotACall(ValueError):
    """The request cannot be read as a model call; the message says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a prompt. `weight` is its size in bytes, for splitting tokens; `tokens` where it is known exactly.

    `glued`: it goes on from the item before without a boundary. `reasoned`: a message of the past that still holds
    its reasoning. `texts` are the texts in it, `answers` the tool calls that it answers.
    """

    layer: Layer
    key: bytes
    weight: int
    texts: tuple[str, ...] = ()
    tokens: int | None = None
    glued: bool = False
    reasoned: bool = False
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A request: its prompt, and what says which conversation it belongs to (`ids`: name and value)."""

    model: str
    items: tuple[Item, ...]
    ids: tuple[tuple[str, str], ...] = ()
    previous: str | None = None  # the response that the prompt goes on from, kept by the server
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that a reply asks for. `texts` are the strings among its arguments."""

    id: str
    name: str
    texts: tuple[str, ...] = ()


def read_call(wire: str, parts: Sequence[bytes], memo: Memo[tuple[Item, ...]]) -> Call:
    """The request of a wire, its body in parts. Raises NotACall for what is not JSON, or is no prompt."""
    return call_of(wire, _load(parts, memo), memo)


def call_of(wire: str, request: Mapping[str, Any], memo: Memo[tuple[Item, ...]]) -> Call:
    """The request of a wire, parsed. Raises NotACall for what is no prompt, or is nested too deeply to be compared."""
    try:
        return _call(wire, request, memo)
    except RecursionError:
        raise NotACall("it is nested too deeply") from None


def _call(wire: str, request: Mapping[str, Any], memo: Memo[tuple[Item, ...]]) -> Call:
    if wire == "chat":
        items = [*_tools(request, memo), *_messages(request.get("messages"), memo)]
    elif wire == "messages":
        items = [*_tools(request, memo), *_system(request.get("system")), *_messages(request.get("messages"), memo)]
    elif wire == "responses":
        items = [*_tools(request, memo), *_system(request.get("instructions")), *_responses(request.get("input"))]
    else:
        items = list(_plain(_first(request, "prompt", "input_ids", "text")))
    previous = request.get("previous_response_id")
    if not items and not previous:
        raise NotACall("it has no prompt")
    model = request.get("model")
    given = {key: n for key in _SAMPLING if isinstance(n := request.get(key), float) or type(n) is int}
    sampling = {key: n for key, n in given.items() if abs(n) < 1 << 53}  # finite, and exact in every reader
    return Call(
        model if isinstance(model, str) else "",
        tuple(items),
        tuple(body_ids(request)),
        previous if isinstance(previous, str) else None,
        sampling,
    )


def _load(parts: Sequence[bytes], memo: Memo[tuple[Item, ...]]) -> dict[str, Any]:
    try:
        value = memo.load(parts)
    except (ValueError, RecursionError):
        raise NotACall("it is not JSON") from None
    if not isinstance(value, dict):
        raise NotACall("it is not a JSON object")
    return value


def _first(request: Mapping[str, Any], *names: str) -> Any:
    return next((request[name] for name in names if request.get(name) is not None), None)


# --- tools and system --------------------------------------------------------------------------------------------


def _tools(request: Mapping[str, Any], memo: Memo[tuple[Item, ...]]) -> Iterator[Item]:
    tools = request.get("tools")
    for tool in tools if isinstance(tools, list) else []:
        yield from memo.made(tool, _tool) if isinstance(tool, dict) else _tool(tool)


def _tool(tool: Any) -> tuple[Item, ...]:
    key = key_of(clean(tool))
    return (Item("tools", b"tool:" + key, len(key), (key.decode("utf-8", "replace"),)),)


def _system(value: Any) -> Iterator[Item]:
    for block in _blocks(value):
        yield _item("system", "system", [block])


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Content as a list of blocks; a string is one text block, what is neither is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            blocks.append({"type": "text", "text": block})
        elif isinstance(block, dict):
            blocks.append(_block(clean(block)))
    return blocks


def _kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kind = _kind(block)
    if kind in ("text", "input_text", "output_text"):
        return {"type": "text", "text": block.get("text", "")}
    if kind == "tool_use":
        return {"type": kind, **{name: block.get(name) for name in ("id", "name", "input")}}
    if kind in _BINARY:
        return {"type": "binary", "digest": blake2b(key_of(block), digest_size=16).hexdigest()}
    if kind == "tool_result":
        return {**block, "content": _blocks(block.get("content"))}
    return block


def _item(layer: Layer, role: str, blocks: list[dict[str, Any]], *, reasoned: bool = False, **more: Any) -> Item:
    blocks = [_unbilled(block) for block in blocks]
    texts = tuple(text for block in blocks for text in _block_texts(block))
    weight = sum(_weight(block) for block in blocks)
    key = key_of({"role": role, "content": blocks})
    return Item(layer, key, max(weight, 1), texts, reasoned=reasoned, **more)


def _unbilled(block: dict[str, Any]) -> dict[str, Any]:
    text = block.get("text")
    if isinstance(text, str) and text.startswith("x-anthropic-billing-header:"):
        return {**block, "text": _BILLING.sub("", text)}
    return block


def _block_texts(block: Mapping[str, Any]) -> Iterator[str]:
    if block.get("type") == "text":
        yield str(block.get("text", ""))
    elif block.get("type") != "binary":
        yield from (text for key, value in block.items() if key not in ("type", "id") for text in strings(value))


def _weight(block: Mapping[str, Any]) -> int:
    if block.get("type") == "binary":
        return IMAGE_WEIGHT
    if block.get("type") == "tool_result":
        return sum(_weight(inner) for inner in block["content"]) + 1
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in _block_texts(block))


# --- messages ----------------------------------------------------------------------------------------------------


def _messages(value: Any, memo: Memo[tuple[Item, ...]]) -> Iterator[Item]:
    """Items of chat messages or of Anthropic's, whose shapes do not contradict each other."""
    leading = True
    for message in value if isinstance(value, list) else []:
        if not isinstance(message, dict):
            continue
        if message.get("role") in ("system", "developer"):
            for block in _blocks(message.get("content")):
                yield _item("system" if leading else "user", "system", [block])
        else:
            leading = False
            yield from memo.made(message, message_items)


def message_items(message: dict[str, Any]) -> tuple[Item, ...]:
    """The items of one chat message, or of one of Anthropic's, that is no system message."""
    role = message.get("role")
    if role == "assistant":
        return tuple(assistant(message))
    if role in ("tool", "function"):
        return (_answer(message.get("tool_call_id"), message.get("content")),)
    return tuple(_user(message.get("content")))


def _answer(call: Any, content: Any) -> Item:
    """The result of one tool call."""
    answers = (call,) if isinstance(call, str) else ()
    return _item("tool_result", "tool", [{"type": "answer", "id": call}, *_blocks(content)], answers=answers)


def _user(content: Any) -> Iterator[Item]:
    """A user's message: runs of tool results and of everything else."""
    run: list[dict[str, Any]] = []
    layer: Layer = "user"
    for block in _blocks(content):
        now: Layer = "tool_result" if _kind(block).endswith("tool_result") else "user"
        if run and now != layer:
            yield _user_item(layer, run)
            run = []
        layer = now
        run.append(block)
    if run:
        yield _user_item(layer, run)


def _user_item(layer: Layer, run: list[dict[str, Any]]) -> Item:
    answers = tuple(block["tool_use_id"] for block in run if isinstance(block.get("tool_use_id"), str))
    return _item(layer, "user", run, answers=answers)


def assistant(message: Mapping[str, Any]) -> Iterator[Item]:
    """An assistant's message, from a prompt or from a reply: visible text and tool calls in one item."""
    blocks = _blocks(message.get("content"))
    visible = [block for block in blocks if _kind(block) not in _REASONING]
    reasoned = len(visible) < len(blocks) or any(message.get(name) for name in ("reasoning_content", "reasoning"))
    visible = [block for block in visible if block.get("type") != "text" or block.get("text")]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            named = {"id": call.get("id"), "name": function.get("name"), "arguments": function.get("arguments")}
            visible.append({"type": "call", **named})
    if visible or reasoned:
        yield _item("assistant", "assistant", visible, reasoned=reasoned)


def tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """The tool calls in an assistant's message of either shape."""
    found = []
    content, calls = message.get("content"), message.get("tool_calls")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and _kind(block) in ("tool_use", "server_tool_use"):
            found.append(ToolCall(str(block.get("id")), str(block.get("name")), tuple(strings(block.get("input")))))
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            texts = argument_texts(function.get("arguments"))
            found.append(ToolCall(str(call.get("id")), str(function.get("name")), texts))
    return found


def argument_texts(arguments: Any) -> tuple[str, ...]:
    """The strings in a tool call's arguments, which are JSON in a string."""
    try:
        return tuple(strings(json.loads(arguments))) if isinstance(arguments, str) else ()
    except (ValueError, RecursionError):
        return ()


# --- responses ---------------------------------------------------------------------------------------------------


def _responses(value: Any) -> Iterator[Item]:
    if isinstance(value, str):
        yield from _user(value)
    elif isinstance(value, list):
        yield from response_items(entry for entry in value if isinstance(entry, dict))


def response_items(entries: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    """The items of a prompt's or a reply's entries. A call behind what the assistant said or called is of the same
    message (`glued`); a second message, or reasoning, begins another."""
    leading, speaking = True, False
    for entry in entries:
        kind = str(entry.get("type", "message"))
        if entry.get("role") in ("system", "developer"):
            layer: Layer = "system" if leading else "user"
            made = [_item(layer, "system", [block]) for block in _blocks(entry.get("content"))]
        else:
            leading, made = False, list(response_item(entry, kind))
        if speaking and kind != "message" and made and made[0].layer == "assistant":
            made[0] = replace(made[0], glued=True)
        speaking = bool(made) and made[-1].layer == "assistant"
        yield from made


def response_item(item: Mapping[str, Any], kind: str) -> Iterator[Item]:
    """The items of one entry of a Responses conversation; reasoning is none, an unknown kind is compared whole."""
    if kind == "message":
        if item.get("role") == "assistant":
            yield from assistant({"content": item.get("content")})
        else:
            yield from _user(item.get("content"))
    elif kind.endswith("call_output"):
        yield _answer(item.get("call_id"), item.get("output"))
    elif kind not in _REASONING:
        kept = {key: value for key, value in clean(item).items() if key not in ("id", "status", "type")}
        yield _item("assistant", "assistant", [{"type": kind, **kept}])


# --- prompts without messages ------------------------------------------------------------------------------------


def _plain(value: Any) -> Iterator[Item]:
    """A text or a list of token ids (or a list with one of them) in blocks."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | list):
        value = value[0]
    if isinstance(value, str):
        yield from text_items(value)
    elif isinstance(value, list) and all(type(id) is int for id in value):
        yield from id_items(value)
    elif isinstance(value, list):
        raise NotACall("several prompts in one request are not read")


def text_items(text: str, glued: bool = False) -> Iterator[Item]:
    """A text in blocks; `glued`: the first one goes on from what is before it."""
    for at in range(0, len(text), TEXT_BLOCK):
        data = text[at : at + TEXT_BLOCK].encode("utf-8", "surrogatepass")
        yield Item("user", TEXT + data, len(data), glued=glued or at > 0)


def reply_item(text: str) -> Item:
    """What was answered to a prompt of text, as a later one holds it."""
    data = text.encode("utf-8", "surrogatepass")
    return Item("assistant", REPLY + data, max(len(data), 1), glued=True)


def id_items(ids: Sequence[int], glued: bool = False, layer: Layer = "user") -> Iterator[Item]:
    """Token ids in blocks; `glued`: the first one goes on from what is before it."""
    for at in range(0, len(ids), ID_BLOCK):
        block = list(ids[at : at + ID_BLOCK])
        yield Item(layer, IDS + key_of(block), 4 * len(block), tokens=len(block), glued=glued or at > 0)
