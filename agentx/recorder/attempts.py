"""Model calls become turns: a retry is an attempt of the turn that it repeats, never a turn.

Two calls are attempts of one turn when they ask for the same prompt one after the other, the earlier one gave no
whole reply, and either the client says that it retries (a retry count, the same call id) or the later one comes
within the time that clients back off for. The model may differ (clients fall back to another one), and so may
streaming (clients ask again without it when a stream broke).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Item, ToolCall
from agentx.recorder.imports.books import Account
from agentx.recorder.keys import CaptureKey
from agentx.recorder.replies import Reply

BACK_OFF = 120.0  # s between a failure and its retry, where the client does not say that it is one
SEEN = 100_000  # items that are recognised by identity
CALL_IDS = ("x-client-request-id", "idempotency-key", "x-codex-inference-call-id")


class Items:
    """The distinct items of a capture, numbered as they are first seen. Their texts are kept only when asked for.

    With an `across` key, `common` holds what a tools or system item is called in every trace that is made with it.
    """

    def __init__(self, key: CaptureKey, keep_texts: bool, across: CaptureKey | None = None) -> None:
        self._key, self._keep, self._across = key, keep_texts, across
        self.common: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] = {}
        self._seen: dict[int, tuple[Item, int]] = {}  # by identity: the parts that occur again give the same objects
        self.known: list[Item] = []
        self.text_digests: list[tuple[bytes, ...]] = []

    def number(self, item: Item) -> int:
        seen = self._seen.get(id(item))
        if seen is None:
            if len(self._seen) > SEEN:
                self._seen.clear()
            seen = self._seen[id(item)] = (item, self._number(item))  # kept with it, so that no other can be meant
        return seen[1]

    def _number(self, item: Item) -> int:
        digest = self._key.digest("item", item.key)
        number = self._numbers.get(digest)
        if number is None:
            number = self._numbers[digest] = len(self.known)
            if self._across is not None and item.layer in ("tools", "system"):
                self.common[number] = self._across.digest("scope", item.key)
            texts = item.texts if self._keep else ()
            self.known.append(replace(item, key=b"", texts=texts))
            self.text_digests.append(tuple(self.text(text) for text in item.texts if item.layer == "user"))
        return number

    def numbers(self, items: Iterable[Item]) -> array[int]:
        return array("Q", [self.number(item) for item in items])

    def leading(self, numbers: array[int]) -> int:
        """How many items at a prompt's start are tools and system texts."""
        count = 0
        while count < len(numbers) and self.known[numbers[count]].layer in ("tools", "system"):
            count += 1
        return count

    def text(self, text: str) -> bytes:
        """A digest of a text, to find the same one elsewhere."""
        return self._key.digest("item", text.strip().encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One model call in the numbers of `Items`. Times are nanoseconds since the epoch."""

    order: tuple[int, int, int]  # arrival, run, number: the order of everything
    wire: str
    credential: str | None
    ids: Mapping[str, str]  # identity headers' pseudonyms
    body_ids: tuple[tuple[str, str], ...]  # (name, pseudonym)
    kind: str | None  # a subagent's role
    retries: int
    model: str
    numbers: array[int]
    reasoned: frozenset[int]  # positions of messages of the past that hold their reasoning
    previous: str | None
    sampling: Mapping[str, Any]
    reply: Reply
    reply_numbers: array[int]
    ended: int
    cause: str
    status: int | None
    timed: bool = True

    @property
    def opened(self) -> int:
        return self.order[0]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.calls


@dataclass(slots=True)
class Turn:
    """One model call with all its attempts; the last one counts. `prefix_unknown`: the server kept what is before."""

    attempts: list[Attempt]
    numbers: array[int] = field(default_factory=lambda: array("Q"))
    prefix_unknown: bool = False

    @property
    def last(self) -> Attempt:
        return self.attempts[-1]

    @property
    def opened(self) -> int:
        return self.attempts[0].opened

    @property
    def ended(self) -> int:
        return self.last.ended


def attempt_of(call: ModelCall, items: Items, key: CaptureKey) -> Attempt:
    """A model call with its items numbered and its texts as digests."""
    light = replace(
        call.reply,
        items=(),
        ids=(),
        calls=tuple(ToolCall(c.id, c.name, tuple(items.text(t).hex() for t in c.texts)) for c in call.reply.calls),
    )
    request = call.request
    return Attempt(
        order=call.order,
        wire=call.wire,
        credential=call.credential,
        ids=dict(reversed(call.ids)),  # of a repeated header the first counts
        body_ids=tuple((name, key.pseudonym("id", value)) for name, value in request.ids),
        kind=call.kind,
        retries=call.retries,
        model=request.model,
        numbers=items.numbers(request.items),
        reasoned=frozenset(at for at, item in enumerate(request.items) if item.reasoned),
        previous=request.previous,
        sampling=request.sampling,
        reply=light,
        reply_numbers=items.numbers(call.reply.items),
        ended=call.ended,
        cause=call.cause,
        status=call.status,
        timed=call.timed,
    )


def turns_of(attempts: Iterable[Attempt], books: Account) -> list[Turn]:
    """Attempts, in their order, as turns. `books` counts those that were merged into another one."""
    turns: list[Turn] = []
    recent: dict[tuple[str | None, bytes], Turn] = {}
    for attempt in attempts:
        asked = (attempt.credential, attempt.wire.encode() + attempt.numbers.tobytes())
        before = recent.get(asked)
        if before is not None and _repeats(before.last, attempt):
            before.attempts.append(attempt)
            books.merged += 1
            continue
        turn = Turn([attempt], attempt.numbers)
        recent[asked] = turn
        turns.append(turn)
    return turns


def _repeats(before: Attempt, attempt: Attempt) -> bool:
    if before.reply.whole or attempt.opened < before.ended:
        return False
    if any(before.ids.get(name) == attempt.ids.get(name) for name in CALL_IDS if name in attempt.ids):
        return True
    return attempt.retries > before.retries or (attempt.opened - before.ended) / 1e9 <= BACK_OFF


def resolve_previous(turns: list[Turn], items: Items) -> int:
    """Prompts that the server continued (`previous_response_id`) in full; returns how many stay unknown."""
    replies = {turn.last.reply.id: turn for turn in turns if turn.last.reply.id is not None}
    done: set[int] = set()
    unknown = 0
    for turn in turns:  # in order of arrival: what a turn goes on from is resolved before it
        previous = replies.get(turn.last.previous) if turn.last.previous is not None else None
        if turn.last.previous is None:
            done.add(id(turn))
        elif previous is None or id(previous) not in done:
            turn.prefix_unknown = True
            unknown += 1
        else:
            own, theirs = items.leading(turn.last.numbers), items.leading(previous.numbers)
            history = previous.numbers[theirs:] + previous.last.reply_numbers
            turn.numbers = turn.last.numbers[:own] + history + turn.last.numbers[own:]
            turn.prefix_unknown = previous.prefix_unknown
            done.add(id(turn))
    return unknown
