from __future__ import annotations

from functools import partial

import pytest
from making import linear

from agentx.reporter.losses_shadow import Pool, Shadow, StandIns
from agentx.reuse import PLAIN, PrefixTree, Template, Walk, unsalted

NUMBERS = StandIns(PLAIN)


def ids(*parts):
    """Prompts out of (name, tokens) parts."""
    return b"".join(NUMBERS.stretch(name, 0, tokens) for name, tokens in parts)


def play(attempt, prompts, pool=None, page=1):
    """(sent, first, parts) of each; every reply has two tokens and ends a second after its first."""
    requests = []
    for number, (sent, first, parts) in enumerate(prompts):
        times = [(first - sent, 1), (first - sent + 1, 1)]
        requests.append((attempt("a", number, sent=sent, chunks=times), partial(ids, *parts), b""))
    found = Shadow(page, None if pool is None else Pool(pool, page)).play(requests, NUMBERS)
    return [(one.computed, one.held) for one in found]


def test_what_is_computed_can_be_found_from_the_first_token_on(attempt):
    prompts = [
        (0.0, 2.0, [("x", 10)]),
        (1.0, 3.0, [("x", 10), ("y", 5)]),  # sent before the first one was computed
        (2.0, 4.0, [("x", 10), ("z", 5)]),  # at that very moment
        (9.0, 9.5, [("x", 10), ("y", 5)]),  # the last token of a prompt is always computed
    ]
    assert [computed for computed, _ in play(attempt, prompts)] == [0, 0, 10, 14]


def test_a_small_pool_forgets_what_was_used_longest_ago(attempt):
    prompts = [
        (0.0, 1.0, [("x", 10)]),
        (3.0, 4.0, [("y", 10)]),
        (6.0, 7.0, [("z", 10)]),  # 33 tokens with the replies: x must leave
        (9.0, 10.0, [("z", 10), ("w", 2)]),
        (12.0, 13.0, [("x", 10), ("w", 2)]),
    ]
    assert play(attempt, prompts, pool=30)[3:] == [(10, 10), (10, 0)]
    assert play(attempt, prompts, pool=300)[3:] == [(10, 10), (10, 10)]
    assert play(attempt, prompts)[3:] == [(10, None), (10, None)]


def test_running_requests_that_fill_the_pool_make_others_wait(attempt):
    # the second finds no room when it is admitted, and gets it at its first token, after the first has ended
    prompts = [(0.0, 1.0, [("x", 18)]), (0.5, 5.0, [("y", 18)]), (9.0, 10.0, [("y", 18)])]
    assert play(attempt, prompts, pool=20)[2] == (17, 17)


def test_pages(attempt):
    prompts = [(0.0, 1.0, [("x", 10)]), (3.0, 4.0, [("x", 10), ("y", 9)])]
    assert play(attempt, prompts, pool=400, page=4)[1] == (8, 8)


SHAPES = [
    (PLAIN, "plain"),
    (Template(1, 1), "plain"),
    (Template(3, 4), "plain"),
    (Template(1, 1, words=True), "tools"),
    (Template(3, 4, 20, 6, 7), "tools"),
]


@pytest.mark.parametrize(("template", "shape"), SHAPES)
@pytest.mark.parametrize("page", [1, 16])
def test_stand_ins_share_what_the_ideal_says(attempt, template, shape, page):
    """One after another, an unlimited cache of stand-ins finds exactly the ideal of the reuse accounting."""
    numbers, tree = StandIns(template, shape), PrefixTree()
    requests, want, at = [], [], 0.0
    for session in (linear(6, id="a", fresh=30), linear(6, id="b", fresh=30)):
        walk = Walk(session, tree, page=page, template=template, shape=shape)
        for turn in range(6):
            requests.append((attempt(session.id, turn, sent=at), partial(numbers.prompt, session, turn, unsalted), b""))
            want.append(sum(walk.turn(turn).reused))
            at += 10.0
    found = Shadow(page, None).play(requests, numbers)
    assert [one.computed for one in found] == want
    assert max(want) > 100


def test_namespaces_share_nothing(attempt):
    same = ids(("x", 10), ("y", 2))
    requests = [(attempt("a", n, sent=9.0 * n), lambda: same, name) for n, name in enumerate((b"one", b"two", b"one"))]
    assert [one.computed for one in Shadow(1, None).play(requests, NUMBERS)] == [0, 0, 11]


def test_salts_change_the_stand_ins():
    numbers, session = StandIns(PLAIN), linear(1)
    first, second = (numbers.prompt(session, 0, lambda layer, salt=salt: salt) for salt in ("p", "q"))
    assert len(first) == len(second) == 75 * 4
    assert first[:4] != second[:4]
