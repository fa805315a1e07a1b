"""Prompts of ids share all that they have in common, wherever their session's next one leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item
from agentx.recorder.imports import token_prompts
from agentx.recorder.imports.token_prompts import Asked, Prompts
from agentx.recorder.replies import Reply


def asked(number: int, ids: Sequence[int], made: Sequence[int] = (), session: str | None = "s") -> Asked:
    return Asked(ModelCall((number, 0, number), number, "generate", Call("m", ()), Reply(True)), session, ids, made)


def cut(*all_of: Asked) -> list[ModelCall]:
    prompts = Prompts()
    given_out = [call for each in all_of for call in prompts.put(each)]
    return sorted([*given_out, *prompts.rest()], key=lambda call: call.order)


def shared(left: Sequence[Item], right: Sequence[Item]) -> int:
    """Tokens of the leading items that are equal."""
    total = 0
    for a, b in zip(left, right, strict=False):
        if a.key != b.key:
            break
        total += a.tokens or 0
    return total


LONG = list(range(1000, 1303))


def test_a_prompt_that_leaves_the_one_before_at_its_last_token() -> None:
    """The end of a generation prompt and the reply's first letters become another token when rendered again."""
    first, second = cut(asked(1, LONG), asked(2, [*LONG[:302], *range(500)]))
    assert shared(first.request.items, second.request.items) == 302
    assert sum(item.tokens or 0 for item in first.request.items) == 303


def test_a_reply_that_follows_is_known_by_its_place() -> None:
    made = list(range(70))
    first, second = cut(asked(1, LONG, made), asked(2, [*LONG, *made[:69], 7, 8, 9]))
    numbers = (*first.request.items, *first.reply.items)
    assert shared(numbers, second.request.items) == 303 + 69
    assert [item.layer for item in first.reply.items] == ["assistant"] * 3  # 64, 5, and the one that is not in it


def test_sessions_do_not_wait_for_each_other() -> None:
    one, other, alone = cut(asked(1, LONG), asked(2, LONG[:100], session="t"), asked(3, LONG, session=None))
    assert shared(one.request.items, other.request.items) == 64  # whole blocks
    assert alone.request.items == ()  # as it came
    prompts = Prompts()
    done = [call for n in range(token_prompts.SESSIONS + 2) for call in prompts.put(asked(n, [1], session=str(n)))]
    assert [call.order[0] for call in done] == [0, 1]


IDS = st.lists(st.integers(0, 2), min_size=1, max_size=200)


@given(st.lists(st.tuples(IDS, st.lists(st.integers(0, 2), max_size=80)), min_size=1, max_size=6))
def test_nothing_is_lost_and_all_that_is_common_is_shared(prompts: list[tuple[list[int], list[int]]]) -> None:
    calls = cut(*[asked(n, ids, made) for n, (ids, made) in enumerate(prompts)])
    assert [call.order[0] for call in calls] == list(range(len(prompts)))
    for call, (ids, made) in zip(calls, prompts, strict=True):
        assert sum(item.tokens or 0 for item in call.request.items) == len(ids)
        assert sum(item.tokens or 0 for item in call.reply.items) == len(made)
    fixed = 0
    for (left, right), (a, b) in zip(pairwise(calls), pairwise(prompts), strict=True):
        whole = [*a[0], *a[1]]
        pairs = enumerate(zip(whole, b[0], strict=False))
        common = next((n for n, (x, y) in pairs if x != y), min(len(whole), len(b[0])))
        found = shared((*left.request.items, *left.reply.items), right.request.items)
        # less than all only where a cut would part what earlier prompts share
        assert found == common or (common < fixed and found <= common)
        fixed = common
