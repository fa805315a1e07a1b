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
_SPECIAL = frozenset(MARKERS.values())


def text_ids(text: str) -> bytes:
    """Ids of text alone, without markers."""
    data = text.encode("utf-8", "surrogatepass")  # JSON can say a lone surrogate; it is a token like any other
    return data.ljust(-(-len(data) // WORD) * WORD)


def chat_ids(messages: Iterable[Mapping[str, object]], tools: Sequence[object] = ()) -> bytes:
    """Ids of a conversation and of the marker that asks for a reply.

    `tools`, where given, come first, as a system message of their JSON. Raises ValueError for a message that has no
    known role or whose content is not text.
    """
    parts = []
    if tools:
        parts += [MARKERS["system"], text_ids(_json(tools))]
    for message in messages:
        role = message.get("role")
        marker = MARKERS.get(role) if isinstance(role, str) else None
        if marker is None:
            raise ValueError(f"role must be one of {', '.join(MARKERS)}, got {role!r}")
        parts += [marker, text_ids(message_text(message))]
    parts.append(MARKERS["assistant"])
    return b"".join(parts)


def message_text(message: Mapping[str, object]) -> str:
    """What a message says: its content (null is empty, parts are joined), then its tool calls as JSON.

    Raises ValueError for content of another kind.
    """
    content = message.get("content")
    calls = message.get("tool_calls")
    if content is None:
        text = ""
    elif isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text = "".join(map(_part_text, content))
    else:
        raise ValueError(f"content must be text, a list of parts or null, got {type(content).__name__}")
    return text + _json(calls) if calls else text


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


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
