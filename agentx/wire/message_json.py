"""The JSON around the pieces of a prompt, on the wires that send messages: one run of bytes for each piece.

A body is `{"model":…,` then, by the shape and the API, `"tools":[…],` and `"system":"…",`, and `"messages":[…`. What
stands around a piece depends on where it and the one before it are placed, and on whether the next one joins it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agentx.wire.messages import Placed, Shape
from agentx.wire.tooltext import bare_definition, calls_text, definition_closes, definition_opens

MESSAGES = b'"messages":['
_TOOLS = b'"tools":['
_OPEN = {role: b'{"role":"%b","content":"' % role.encode() for role in ("system", "user", "assistant")}


class MessageJson:
    """`chat` is OpenAI's API, `messages` Anthropic's, where the system message stands apart."""

    def __init__(self, api: Literal["chat", "messages"], shape: Shape) -> None:
        self._api, self._shape = api, shape

    def head(self, head: bytes) -> bytes:
        """What stands before all pieces; `head` ends where the messages of the wire begin."""
        return head.removesuffix(MESSAGES) if self._shape == "tools" else head

    @property
    def empty(self) -> bytes:
        """A prompt without pieces."""
        return MESSAGES if self._api == "messages" or self._shape == "tools" else b""

    def definitions(self, before: Placed | None, number: int, texts: Sequence[bytes]) -> bytes:
        """A piece of definitions; `number` stand before them."""
        opens = _TOOLS if before is None else b","
        made = (self._definition(number + place, text) for place, text in enumerate(texts))
        return opens + b",".join(made)

    def piece(self, before: Placed | None, here: Placed, text: bytes, *, joined: bool) -> bytes:
        """Any other piece; `joined`: the next one goes into its message."""
        front = self._ends_tools(before, here)
        first = before is None or before.definition
        if here.leading and self._api == "messages":
            opens = b'"system":"' if here.role else b""
            return b"%b%b%b%b" % (front, opens, text, b"" if joined else b'",' + MESSAGES)
        begins = first or (before is not None and before.leading and self._api == "messages")
        if self._api == "messages" or self._shape == "tools":
            front += MESSAGES if first else b""
        comma = b"," if here.role and not begins else b""
        return b"%b%b%b%b%b" % (front, comma, self._opens(here), text, b"" if joined else self._closes(here))

    def _ends_tools(self, before: Placed | None, here: Placed) -> bytes:
        if here.bare:
            return _TOOLS + bare_definition(self._api) + b"],"
        return b"]," if before is not None and before.definition else b""

    def _definition(self, number: int, text: bytes) -> bytes:
        return definition_opens(number, self._api) + text + definition_closes(number, self._api)

    def _opens(self, here: Placed) -> bytes:
        if here.role is None:
            return b""
        if here.answers is not None:
            id = here.answers.id.encode()
            if self._api == "chat":
                return b'{"role":"tool","tool_call_id":"%b","content":"' % id
            return b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"%b","content":"' % id
        if here.calls and self._api == "messages":
            return b'{"role":"assistant","content":[{"type":"text","text":"'
        return _OPEN[here.role]

    def _closes(self, here: Placed) -> bytes:
        if here.calls:
            calls = calls_text(here.calls, self._api)
            return b'","tool_calls":[%b]}' % calls if self._api == "chat" else b'"},%b]}' % calls
        return b'"}]}' if here.answers is not None and self._api == "messages" else b'"}'
