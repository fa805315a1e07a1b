"""What a client is shown of a reply: reasoning, text and tool calls, cut from the stream of its tokens.

A scripted reply is the text that a model would write, think tags and JSON of its calls included; where each part lies
in its bytes is known beforehand, so nothing has to be parsed, and a token may end anywhere in a part.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agentx.engine.tokenizer import THINK, THINK_END, WORD, compact, ids_to_text

Kind = Literal["reasoning", "text", "call", "arguments"]

_ENDLESS = 1 << 62


class Part(NamedTuple):
    """A piece of what is shown. `call` begins tool call number `call`, its text is the function's name; `arguments`
    is a piece of that call's JSON."""

    kind: Kind
    text: str
    call: int = 0


class Span(NamedTuple):
    """Bytes `start` to `stop` of a reply are part `kind`; what lies in no span is markup, and not shown."""

    kind: Kind
    start: int
    stop: int
    call: int = 0


@dataclass(frozen=True, slots=True)
class Scripted:
    """A reply that is known beforehand: its ids, where its parts are, the names of the calls that it shows, how many
    tokens its reasoning takes."""

    ids: bytes
    spans: tuple[Span, ...]
    names: tuple[str, ...]
    reasoning_tokens: int


Calls = Sequence[tuple[str, Mapping[str, object]]]
"""Tool calls: name and arguments of each."""


class _Bytes:
    """A reply's text as it grows, and where its parts are."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.spans: list[Span] = []

    def add(self, text: str, kind: Kind | None = None, call: int = 0) -> None:
        start = len(self.data)
        self.data += text.encode("utf-8", "surrogatepass")
        if kind is not None and text:
            self.spans.append(Span(kind, start, len(self.data), call))

    @property
    def tokens(self) -> int:
        return -(-len(self.data) // WORD)


def scripted(
    text: str = "",
    *,
    reasoning: str = "",
    calls: Calls = (),
    show_reasoning: bool = True,
    show_calls: bool = True,
) -> Scripted:
    """A reply of these parts. One that is not shown as such is part of the text, markup and all: so does a server that
    was told of no tools, or that parses nothing. What the engine adds to a reply that has to be longer is text too."""
    if reasoning and not show_reasoning:
        text, reasoning = THINK + reasoning + THINK_END + text, ""
    if calls and not show_calls:
        text, calls = text + compact([{"name": name, "arguments": arguments} for name, arguments in calls]), ()
    out = _Bytes()
    if reasoning:
        out.add(THINK)
        out.add(reasoning, "reasoning")
        out.add(THINK_END)
    thinking = out.tokens
    out.add(text, "text")
    for number, (name, arguments) in enumerate(calls):
        out.add(("," if number else "[") + '{"name":')
        out.add(compact(name) + ',"arguments":', "call", number)
        out.add(compact(arguments), "arguments", number)
        out.add("}")
    if calls:
        out.add("]")
    length = out.tokens * WORD
    spans = (*out.spans, Span("text", length, _ENDLESS))
    return Scripted(bytes(out.data.ljust(length)), spans, tuple(name for name, _ in calls), thinking)


class Parts:
    """Tokens in, what is shown of them out, for one reply. Without a script all of it is text."""

    def __init__(self, script: Scripted | None) -> None:
        self._spans = script.spans if script is not None else ()
        self._names = script.names if script is not None else ()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._next = 0  # the first span that has not ended
        self._seen = 0  # bytes

    def feed(self, ids: bytes) -> list[Part]:
        """The parts that these ids add, in order; none when they are markup."""
        if not self._spans:
            return [Part("text", ids_to_text(ids))] if ids else []
        start, self._seen = self._seen, self._seen + len(ids)
        parts: list[Part] = []
        while self._next < len(self._spans) and self._spans[self._next].start < self._seen:
            span = self._spans[self._next]
            ended = span.stop <= self._seen
            if span.kind == "call":
                text = self._names[span.call] if ended else ""
            else:
                text = self._decoder.decode(ids[max(0, span.start - start) : span.stop - start], final=ended)
            if text:
                parts.append(Part(span.kind, text, span.call))
            if not ended:
                break
            self._next += 1
        return parts


class Shown(NamedTuple):
    """A whole reply: calls are (name, JSON of the arguments, perhaps cut short)."""

    reasoning: str
    text: str
    calls: tuple[tuple[str, str], ...]


def shown(script: Scripted | None, ids: bytes) -> Shown:
    """What is shown of a whole reply."""
    texts = {"reasoning": "", "text": ""}
    calls: list[tuple[str, str]] = []
    for part in Parts(script).feed(ids):
        if part.kind == "call":
            calls.append((part.text, ""))
        elif part.kind == "arguments":
            calls[-1] = (calls[-1][0], calls[-1][1] + part.text)
        else:
            texts[part.kind] += part.text
    return Shown(texts["reasoning"], texts["text"], tuple(calls))
