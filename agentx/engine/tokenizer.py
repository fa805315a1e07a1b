"""The embedded engine's tokenizer: a token is four bytes of text, and its id is those bytes as a little-endian number.

Ids are kept as bytes, four per token, so a prompt's ids *are* its text and no vocabulary is needed. Each message is
padded with spaces to whole words and stands behind one marker for its role; one more assistant marker at the end asks
for the reply. A prompt is thus sum(ceil(bytes / 4)) + messages + 1 tokens long.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence

WORD = 4  # bytes per token
MARKERS: Mapping[str, bytes] = {
    role: number.to_bytes(WORD, "little")
    for role, number in (("system", 1), ("developer", 1), ("user", 2), ("assistant", 3), ("tool", 4))
}
THINK, THINK_END = "<think>", "</think>"
_SPECIAL = frozenset(MARKERS.values())


def text_ids(text: str) -> bytes:
    """Ids of text alone, without markers."""
    data = text.encode("utf-8", "surrogatepass")  # JSON can say a lone surrogate; it is a token like any other
    return data.ljust(-(-len(data) // WORD) * WORD)


def chat_ids(messages: Iterable[Mapping[str, object]], tools: Sequence[object] = ()) -> bytes:
    """Ids of a conversation and of the marker that asks for a reply.

    `tools`, where given, come first, as a system message of their JSON: name, description and parameters of each.
    Raises ValueError for a message that has no known role or whose content is not text.
    """
    parts = []
    if tools:
        parts += [MARKERS["system"], text_ids(compact([_tool(tool) for tool in tools]))]
    for message in messages:
        role = message.get("role")
        marker = MARKERS.get(role) if isinstance(role, str) else None
        if marker is None:
            raise ValueError(f"role must be one of {', '.join(MARKERS)}, got {role!r}")
        parts += [marker, text_ids(message_text(message))]
    parts.append(MARKERS["assistant"])
    return b"".join(parts)


def message_text(message: Mapping[str, object]) -> str:
    """What a message says: its reasoning, its content (null is empty, parts are joined), its tool calls.

    Raises ValueError for content of another kind.
    """
    content = message.get("content")
    if content is None:
        text = ""
    elif isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text = "".join(map(_part_text, content))
    else:
        raise ValueError(f"content must be text, a list of parts or null, got {type(content).__name__}")
    reasoning, calls = message.get("reasoning_content"), message.get("tool_calls")
    if isinstance(reasoning, str) and reasoning:
        text = f"{THINK}{reasoning}{THINK_END}{text}"
    return text + calls_text(calls) if isinstance(calls, list) and calls else text


def calls_text(calls: Sequence[object]) -> str:
    """Tool calls as OpenAI's chat has them, as the text that a model would write to make them."""
    return compact([_call(call) for call in calls])


def compact(value: object) -> str:
    """JSON without spaces, keys in the order they have. Raises ValueError for what is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("tools and tool calls must not be nested that deeply") from None


def ids_from_list(ids: Sequence[int]) -> bytes:
    """Numbers to ids. Raises ValueError for one that is not a whole number from 0 to 4294967295."""
    try:
        numbers = array("I", ids)
    except (TypeError, OverflowError) as error:
        raise ValueError("token ids must be whole numbers from 0 to 4294967295") from error
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def ids_to_list(ids: bytes) -> list[int]:
    """Ids to numbers."""
    numbers = array("I", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def ids_to_text(ids: bytes) -> str:
    """The text that ids stand for; role markers have none."""
    if b"\0\0\0" not in ids:  # what text never holds, and every marker does
        return ids.decode("utf-8", "replace")
    words = (ids[at : at + WORD] for at in range(0, len(ids), WORD))
    return b"".join(word for word in words if word not in _SPECIAL).decode("utf-8", "replace")


def _part_text(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or kind != "text" or not isinstance(part.get("text"), str):
        raise ValueError(f"content parts must be text, got one of type {kind!r}")
    return str(part["text"])


def _call(call: object) -> object:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    return {"name": function.get("name"), "arguments": _arguments(function.get("arguments"))}


def _arguments(text: object) -> object:
    """Arguments as the value that their JSON stands for; as they are when they are none."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _tool(tool: object) -> object:
    """What the APIs call a function, without what only one of them has; another kind of tool as it is."""
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return tool
    return {key: function[key] for key in ("name", "description", "parameters") if function.get(key)}
