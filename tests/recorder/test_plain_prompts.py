"""Prompts without messages: what goes on from an earlier prompt shares all of it, and its reply."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item, id_items, reply_item, text_items
from agentx.recorder.plain_prompts import ALIKE, PlainPrompts
from agentx.recorder.replies import Reply

FIRST = "You are an agent. " * 40  # 720 characters: two blocks of 256 and a part of one


def call(prompt: str | list[int], reply: str = "", *, wire: str = "completions", model: str = "m") -> ModelCall:
    items = tuple(text_items(prompt) if isinstance(prompt, str) else id_items(prompt))
    answered = (reply_item(reply),) if reply else ()
    return ModelCall((0, 0, 0), 1, wire, Call(model, items), Reply(True, items=answered))


def shown(items: tuple[Item, ...]) -> list[tuple[str, int, bool]]:
    """(layer, bytes, whether it goes on from the item before) of each."""
    return [(item.layer, item.weight, item.glued) for item in items]


def cut(*calls: ModelCall, prompts: PlainPrompts | None = None) -> list[list[tuple[str, int, bool]]]:
    known = prompts if prompts is not None else PlainPrompts()
    return [shown(known.cut(each).request.items) for each in calls]


BLOCKS = [("user", 256, False), ("user", 256, True), ("user", 208, True)]


def test_a_prompt_its_reply_and_more() -> None:
    second = FIRST + "I look." + "a.py " * 100
    found = cut(call(FIRST, "I look."), call(second, "Done."), call(second + "Done. more"))
    behind = [("assistant", 7, True), ("user", 256, True), ("user", 244, True)]
    assert found == [
        BLOCKS,
        BLOCKS + behind,
        [*BLOCKS, *behind, ("assistant", 5, True), ("user", 5, True)],
    ]


def test_a_reply_that_was_changed_is_no_item_of_its_own() -> None:
    """As where a client strips the reply before it sends it back."""
    assert cut(call(FIRST, " I look."), call(FIRST + "I look. more"))[1] == [*BLOCKS, ("user", 12, True)]


def test_the_same_prompt_again_has_the_same_items() -> None:
    assert cut(call(FIRST), call(FIRST + "more", "x"), call(FIRST + "more", "x"))[1:] == [
        [*BLOCKS, ("user", 4, True)],
        [*BLOCKS, ("user", 4, True)],
    ]


def test_the_longest_of_several_is_gone_on_from() -> None:
    """Two conversations at a time, with one beginning."""
    one, two = FIRST + "one " * 10, FIRST + "two " * 10
    found = cut(call(FIRST), call(one), call(two), call(one + "more"), call(two + "more"))
    assert found[3] == found[4] == [*BLOCKS, ("user", 40, True), ("user", 4, True)]


def test_other_models_and_messages_are_left_alone() -> None:
    known = PlainPrompts()
    known.cut(call(FIRST, model="other"))
    assert cut(call(FIRST + "more"), prompts=known) == [[*BLOCKS[:2], ("user", 212, True)]]
    chat = call(FIRST, wire="chat")
    assert known.cut(chat) is chat
    empty = ModelCall((0, 0, 0), 1, "generate", Call("m", ()), Reply(True))
    assert known.cut(empty) is empty


def test_token_ids_share_the_whole_prompt() -> None:
    first = list(range(100))
    known = PlainPrompts()
    cut_first = known.cut(call(first, wire="generate")).request.items
    second = known.cut(call([*first, *range(500, 600)], wire="generate")).request.items
    assert [item.tokens for item in second] == [64, 36, 64, 36]
    assert second[:2] == cut_first


def test_token_ids_of_a_reply_are_one_item() -> None:
    first, answer = list(range(100)), tuple(range(900, 930))
    known, asked = PlainPrompts(), call(first, "as text", wire="generate")
    told = known.cut(replace(asked, reply=replace(asked.reply, ids=answer)))
    second = known.cut(call([*first, *answer, *range(500, 510)], wire="generate")).request.items
    assert [(item.layer, item.tokens) for item in second] == [
        ("user", 64), ("user", 36), ("assistant", 30), ("user", 10),
    ]  # fmt: skip
    assert told.reply.items == second[2:3]  # what the next prompt holds of it, and not its text
    assert known.cut(asked).reply.items == ()
    far = call([1 << 70], wire="generate")
    assert known.cut(far) is far


def test_what_is_too_much_is_forgotten_the_oldest_first() -> None:
    known = PlainPrompts(limit=len(FIRST) + 400)
    known.cut(call(FIRST))
    known.cut(call("another" * 100))  # 700 characters
    assert cut(call(FIRST + "more"), prompts=known) == [[*BLOCKS[:2], ("user", 212, True)]]
    first = [call(FIRST), *(call(f"{number} other") for number in range(ALIKE)), call(FIRST + "more")]
    assert cut(*first)[-1] == [*BLOCKS[:2], ("user", 212, True)]
    assert cut(*first[1:2], first[0], *first[2:])[-1] == [*BLOCKS, ("user", 4, True)]


@given(st.text(max_size=600), st.text(max_size=20), st.text(max_size=600))
def test_nothing_is_lost_and_beginnings_stay_the_same(one: str, reply: str, more: str) -> None:
    known = PlainPrompts()
    first = known.cut(call(one, reply)).request.items
    second = known.cut(call(one + reply + more)).request.items
    whole = b"".join(item.key.split(b":", 1)[1] for item in second)
    assert whole.decode("utf-8", "surrogatepass") == one + reply + more
    assert second[: len(first)] == first
    assert [item.glued for item in second[1:]] == [True] * (len(second) - 1) if second else True
