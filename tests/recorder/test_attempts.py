"""Numbers of items, attempts of one turn, and prompts that the server continued."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from agentx.recorder.attempts import Attempt, Items, Turn, resolve_previous, turns_of
from agentx.recorder.canonical import Item
from agentx.recorder.imports.books import Account
from agentx.recorder.keys import CaptureKey
from agentx.recorder.replies import Reply

KEY = CaptureKey(b"k" * 32)


def attempt(
    at: float, numbers: tuple[int, ...] = (1,), *, took: float = 1.0, whole: bool = True, **more: Any
) -> Attempt:
    fields: dict[str, Any] = {
        "wire": "chat", "credential": "c", "ids": {}, "body_ids": (), "kind": None, "retries": 0, "model": "m",
        "reasoned": frozenset(), "previous": None, "sampling": {}, "reply_numbers": array("Q"), "cause": "done",
        "status": 200 if whole else 500,
    }  # fmt: skip
    opened = round(at * 1e9)
    fields |= {"reply": Reply(whole), **more}
    return Attempt((opened, 1, opened), numbers=array("Q", numbers), ended=opened + round(took * 1e9), **fields)


@pytest.mark.parametrize(
    ("calls", "sizes"),
    [
        ([attempt(0, whole=False), attempt(2)], [2]),
        ([attempt(0, whole=False), attempt(2, whole=False), attempt(5)], [3]),
        ([attempt(0), attempt(2)], [1, 1]),  # asked again
        ([attempt(0), attempt(0.1)], [1, 1]),  # two at once that say the same, one of them streamed
        ([attempt(0, whole=False), attempt(0.5)], [1, 1]),  # at the same time: both are wanted
        ([attempt(0, whole=False), attempt(2, credential="d")], [1, 1]),  # somebody else
        ([attempt(0, whole=False), attempt(2, wire="messages")], [1, 1]),
        ([attempt(0, whole=False), attempt(500)], [1, 1]),
        ([attempt(0, whole=False), attempt(500, retries=1)], [2]),
        ([attempt(0, whole=False, ids={"x-client-request-id": "i"}),
          attempt(500, ids={"x-client-request-id": "i"})], [2]),
        ([attempt(0, whole=False), attempt(1.5, (2,)), attempt(2)], [2, 1]),  # another call in between
    ],
)  # fmt: skip
def test_retries(calls: list[Attempt], sizes: list[int]) -> None:
    books = Account()
    turns = turns_of(calls, books)
    assert [len(turn.attempts) for turn in turns] == sizes
    assert books.merged == len(calls) - len(sizes)


def test_items_are_numbered_once_and_forget_their_texts() -> None:
    items = Items(KEY, keep_texts=False)
    one = Item("user", b"a", 1, ("text",))
    assert list(items.numbers([one, Item("tools", b"b", 1), one])) == [0, 1, 0]
    assert items.known[0].texts == ()
    assert items.text_digests[0] == (items.text(" text "),)
    assert Items(KEY, keep_texts=True).number(one) == 0


def test_leading_items() -> None:
    items = Items(KEY, keep_texts=False)
    numbers = items.numbers(
        [Item("tools", b"t", 1), Item("system", b"s", 1), Item("user", b"u", 1), Item("system", b"x", 1)]
    )
    assert items.leading(numbers) == 2


def test_a_chain_of_previous_responses() -> None:
    """Instructions do not come twice; a chain whose beginning is lost stays marked."""
    items = Items(KEY, keep_texts=False)
    system, *others = items.numbers([Item("system", b"s", 1), *(Item("user", bytes([n]), 1) for n in range(6))])
    first = attempt(0, (system, others[0]), reply=Reply(True, id="r1"), reply_numbers=array("Q", [others[1]]))
    second = attempt(2, (system, others[2]), reply=Reply(True, id="r2"), previous="r1")
    lost = attempt(4, (others[3],), reply=Reply(True, id="r3"), previous="gone")
    after = attempt(6, (others[4],), previous="r3")
    turns = [Turn([each], each.numbers) for each in (first, second, lost, after)]
    assert resolve_previous(turns, items) == 2
    assert list(turns[1].numbers) == [system, others[0], others[1], others[2]]
    assert [turn.prefix_unknown for turn in turns] == [False, False, True, True]
