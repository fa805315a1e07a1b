"""What a target's chat template puts around the pieces of a prompt, as tokens with identities of their own.

Of another server's template only lengths are known, fitted to what it reported: so many tokens before each message,
before each call, before each definition, in front of all, and at the end to ask for the reply. The embedded engine's
is known to the byte: its role markers, and the JSON of definitions and calls in tokens of four bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from agentx.core import Piece, Session, Stream
from agentx.wire.messages import Call, Counts, Placed
from agentx.wire.tooltext import (
    WORD,
    bare_definition,
    calls_text,
    definition_closes,
    definition_opens,
    definitions,
    whole_words,
)

SaltedStream = tuple[Stream, str]  # a stream and the salt that its content is made with


class Span(NamedTuple):
    """Tokens `start ... stop - 1` of a salted stream."""

    key: SaltedStream
    start: int
    stop: int


class Template(NamedTuple):
    """Tokens that the target's chat template adds: `per_message` before each message, `start` for the reply.

    The `start` tokens stand at the end of a prompt; the next prompt shares them exactly when its next message is the
    assistant's, which is why they are taken to be the assistant's marker. With tool-shaped messages `front` stand
    around all definitions (how much before and how much behind is not known: half), `per_definition` before each one
    and `per_call` behind the text of what makes each call; with `words` these three are the embedded engine's own
    rendering instead, to the byte.
    """

    start: int = 0
    per_message: int = 0
    front: int = 0
    per_definition: int = 0
    per_call: int = 0
    words: bool = False


PLAIN = Template()


class Framed(NamedTuple):
    """A piece with what stands around it: its spans, and how many of their tokens are the template's before and behind
    the piece's own. What stands between the definitions of one piece counts as before."""

    spans: list[Span]
    ahead: int
    behind: int = 0


Cut = Callable[[Piece], list[Span]]  # the tokens of a piece by the trace


class Frames:
    """Frames the pieces of one session, one after the other."""

    def __init__(self, template: Template, session: Session, cut: Cut) -> None:
        self.template, self.session, self.cut = template, session, cut

    def around(
        self, here: Placed, before: Placed | None, piece: Piece, number: int, sent: list[Span] | None = None
    ) -> Framed:
        """`piece`, which stands behind one that was placed as `before`, with `number` definitions before it.

        `sent`: what was sent for it, where that is not what the trace has.
        """
        if here.definition:
            return self._definitions(before, piece, number)
        own = self.cut(piece) if sent is None else sent
        marker = 0 if here.role is None else self.template.per_message
        ahead = self._ends_definitions(here, before, number)
        if not (marker or ahead or here.calls):
            return Framed(own, 0)
        closes: list[Span] = []
        if marker and here.role is not None:
            # Behind a reply stands what ends a message; before it, what the server had put there to ask for it.
            opens = marker if sent is None else min(marker, self.template.start)
            ahead.append(marker_span(here.role, opens))
            closes = [Span(marker_span(here.role, marker).key, opens, marker)] if opens < marker else []
        calls = self._calls(here.calls) if here.calls else []
        behind = size(closes) + size(calls)
        return Framed([*ahead, *own, *calls, *closes], size(ahead), behind)

    def _ends_definitions(self, here: Placed, before: Placed | None, number: int) -> list[Span]:
        """What stands between the definitions of a prompt and its first message."""
        template = self.template
        if here.bare:
            if template.words:
                return [marker_span("system", template.per_message), *words(b"[" + bare_definition("words") + b"]")]
            return _some([marker_span("front", template.front), marker_span("definition", template.per_definition)])
        if before is None or not before.definition:
            return []
        if template.words:
            return words(definition_closes(number - 1, "words") + b"]")
        return _some([marker_span("behind definitions", template.front - template.front // 2)])

    def _definitions(self, before: Placed | None, piece: Piece, number: int) -> Framed:
        template, spans, ahead = self.template, list[Span](), 0
        for one in definitions(self.session, piece, number):
            if template.words:
                first = [marker_span("system", template.per_message)] if before is None and not one.number else []
                text = definition_closes(one.number - 1, "words") + b"," if one.number else b"["
                frame = [*first, *words(text + definition_opens(one.number, "words"))]
            else:
                half = template.front // 2
                first = [marker_span("front", half)] if before is None and not one.number else []
                frame = _some([*first, marker_span("definition", template.per_definition)])
            spans += [*frame, *self.cut(one.part)]
            ahead += size(frame)
        return Framed(spans, ahead)

    def _calls(self, calls: Sequence[Call]) -> list[Span]:
        if self.template.words:
            return words(b"[" + calls_text(calls, "words") + b"]")
        return _some([marker_span(f"call:{call.name}", self.template.per_call) for call in calls])


def definition_count(session: Session, pieces: Iterable[Piece]) -> int:
    return sum(len(definitions(session, piece, 0)) for piece in pieces)


def template_tokens(template: Template, session: Session, counts: Counts) -> int:
    """All that a template adds to a prompt."""
    total = template.start + template.per_message * counts.messages
    if not (counts.bare or counts.definitions):
        return total  # plain messages
    if not template.words:
        count = 1 if counts.bare else definition_count(session, counts.definitions)
        calls = sum(map(len, counts.calls))
        return total + template.front + template.per_definition * count + template.per_call * calls
    total += sum(len(whole_words(b"[" + calls_text(calls, "words") + b"]")) // WORD for calls in counts.calls)
    total += template.per_message  # of the system message that the definitions are
    if counts.bare:
        return total + len(whole_words(b"[" + bare_definition("words") + b"]")) // WORD
    count = definition_count(session, counts.definitions)
    opens = sum(len(definition_opens(number, "words")) for number in range(count))
    closes = sum(len(definition_closes(number, "words")) for number in range(count))
    return total + (opens + closes + count - 1 + 2 + WORD - 1) // WORD


@cache
def marker_span(role: str, tokens: int) -> Span:
    return Span((Stream(f"role:{role}", "segment", 0), ""), 0, tokens)


def words(text: bytes) -> list[Span]:
    """Text as the embedded engine's tokens, each known by its bytes."""
    filled = whole_words(text)
    tokens = (int.from_bytes(filled[at : at + WORD], "little") for at in range(0, len(filled), WORD))
    return [Span((Stream("word", "literal", token), ""), 0, 1) for token in tokens]


def size(spans: Iterable[Span]) -> int:
    return sum(span.stop - span.start for span in spans)


def _some(spans: Iterable[Span]) -> list[Span]:
    return [span for span in spans if span.stop > span.start]
