"""Prompts without messages, cut where the one that they go on from ends, and behind its reply.

By themselves texts and token ids are cut into blocks from their start: two prompts share whole blocks, and no reply. An
agent that renders its prompts itself mostly sends the last one again, the reply, and something more. So a prompt that
begins with an earlier one of the same client and model has that one's items, then its reply as one item where the words
are the same, then blocks from there. Earlier prompts are remembered up to a number of them and of bytes.
"""

from __future__ import annotations

import json
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import IDS, REPLY, REPLY_IDS, TEXT, Item, id_items, reply_item, text_items
from agentx.recorder.canonical_json import key_of

WIRES = ("completions", "generate")
ALIKE = 512  # earlier prompts of a client and model that are looked at
REMEMBERED = 64 << 20  # bytes of prompts
P = TypeVar("P", str, bytes)  # a text, or ids of 8 bytes each
Group = tuple[str, str | None, str]  # wire and form, credential, model


class Span(NamedTuple):
    """A stretch of a prompt, in characters or bytes: blocks, or a reply as one item."""

    start: int
    stop: int
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Seen(Generic[P]):
    """An earlier prompt, how it was cut, and what was answered ("" where that is not known)."""

    prompt: P
    spans: tuple[Span, ...]
    reply: P


@dataclass(slots=True)
class PlainPrompts:
    """The prompts that were seen, by client and model."""

    limit: int = REMEMBERED
    _groups: dict[Group, deque[Seen[Any]]] = field(default_factory=dict)
    _order: deque[tuple[Group, Seen[Any]]] = field(default_factory=deque)
    _held: int = 0

    def cut(self, call: ModelCall) -> ModelCall:
        """The call, its prompt cut by those before it; as it was where it is none of plain text or ids."""
        items = call.request.items
        if call.wire not in WIRES or not items:
            return call
        if all(item.key.startswith(TEXT) for item in items):
            whole = b"".join(item.key[len(TEXT) :] for item in items).decode("utf-8", "surrogatepass")
            reply = "".join(_reply_text(item) for item in call.reply.items)
            spans = self._spans((f"{call.wire} text", call.credential, call.request.model), whole, reply)
            made = [item for span in spans for item in _text_items(whole, span)]
        elif all(item.key.startswith(IDS) for item in items):
            ids = [id for item in items for id in json.loads(item.key[len(IDS) :])]
            if not all(abs(id) < 1 << 62 for id in ids):
                return call
            made_ids = call.reply.ids
            group = f"{call.wire} ids", call.credential, call.request.model
            spans = self._spans(group, array("q", ids).tobytes(), array("q", made_ids).tobytes())
            made = [item for span in spans for item in _id_items(ids, span)]
            call = replace(call, reply=replace(call.reply, items=(_reply_ids(made_ids),) if made_ids else ()))
        else:
            return call
        return replace(call, request=replace(call.request, items=tuple(made)))

    def _spans(self, group: Group, prompt: P, reply: P) -> tuple[Span, ...]:
        alike: deque[Seen[Any]] = self._groups.setdefault(group, deque())
        fitting = (seen for seen in alike if prompt.startswith(seen.prompt))
        earlier = max(fitting, key=lambda seen: len(seen.prompt), default=None)
        spans: tuple[Span, ...] = ()
        at = 0
        if earlier is not None:
            spans, at = earlier.spans, len(earlier.prompt)
            if earlier.reply and prompt.startswith(earlier.reply, at):
                spans, at = (*spans, Span(at, at + len(earlier.reply), True)), at + len(earlier.reply)
        if at < len(prompt):
            spans = (*spans, Span(at, len(prompt)))
        self._remember(group, alike, Seen(prompt, spans, reply))
        return spans

    def _remember(self, group: Group, alike: deque[Seen[Any]], seen: Seen[Any]) -> None:
        if len(alike) == ALIKE:
            alike.popleft()
        alike.append(seen)
        self._order.append((group, seen))
        self._held += len(seen.prompt)
        while self._held > self.limit and len(self._order) > 1:
            oldest, gone = self._order.popleft()
            self._held -= len(gone.prompt)
            left = self._groups.get(oldest)
            if left and left[0] is gone:
                left.popleft()
            if not left:
                self._groups.pop(oldest, None)


def _reply_text(item: Item) -> str:
    return item.key.removeprefix(REPLY).decode("utf-8", "surrogatepass")


def _text_items(whole: str, span: Span) -> Iterator[Item]:
    text = whole[span.start : span.stop]
    if span.reply:
        yield reply_item(text)
    else:
        yield from text_items(text, span.start > 0)


def _id_items(whole: list[int], span: Span) -> Iterator[Item]:
    ids = whole[span.start // 8 : span.stop // 8]
    if span.reply:
        yield _reply_ids(ids)
    else:
        yield from id_items(ids, span.start > 0)


def _reply_ids(ids: Sequence[int]) -> Item:
    return Item("assistant", REPLY_IDS + key_of(list(ids)), 4 * len(ids), tokens=len(ids), glued=True)
