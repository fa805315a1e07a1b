"""The capacity curve against a cache that is simulated page by page, at every capacity."""

from __future__ import annotations

import random

import making
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.capacity import Capacity, Sums, capacity_curve
from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.reuse import PrefixTree, TurnReuse, Walk, possible, possible_by_turn

Token = tuple[object, ...]
THREE = st.tuples(*[making.sessions(f"s{number}", 4) for number in range(3)])
PAGES = st.sampled_from([1, 2, 5])


class Naive:
    """An LRU list of pages, each numbered by all that leads to it."""

    def __init__(self, steps: list[tuple[list[Token], list[Token], int]], page: int) -> None:
        """Of each step the prompt, the prompt with its reply, and how many tokens of the prompt have no identity."""
        numbers: dict[tuple[object, ...], int] = {}
        self.page = page
        self.steps = []
        for prompt, path, nameless in steps:
            before, pages = 0, []
            for place in range(len(path) // page):
                before = numbers.setdefault((before, *path[place * page : (place + 1) * page]), len(numbers) + 1)
                pages.append(before)
            most = max(0, min(len(prompt), len(prompt) + nameless - 1)) // page
            self.steps.append((pages, most))

    def reused(self, capacity: int) -> int:
        cache: list[int] = []  # the most recent one first
        reused = 0
        for pages, most in self.steps:
            held = set(cache)
            reused += next((place for place in range(most) if pages[place] not in held), most) * self.page
            used = set(pages)
            cache = (pages + [each for each in cache if each not in used])[: capacity // self.page]
        return reused


def tokens_of(session: Session, index: int, number: int) -> tuple[list[Token], list[Token], int]:
    """The prompt's tokens, those of prompt and reply (a nameless token is like no other), and how many are nameless."""
    model = session.turns[index].model
    named = [(model, run.stream, at) for run in session.runs(index) for at in range(run.start, run.stop)]
    reply = [(model, run.stream, at) for run in session.reply_runs(index) for at in range(run.start, run.stop)]
    nameless = max(0, session.turns[index].isl - len(named))
    rest = nameless + session.turns[index].output.tokens - len(reply)
    return list(named), [*named, *reply, *(("none", number, at) for at in range(rest))], nameless


@settings(max_examples=60, deadline=None)
@given(THREE, PAGES, st.randoms(use_true_random=False))
def test_every_capacity_is_that_of_a_simulated_cache(
    sessions: tuple[Session, ...], page: int, random: random.Random
) -> None:
    """Sessions of any shape, their turns interleaved in any order."""
    order = [place for place, session in enumerate(sessions) for _ in session.turns]
    random.shuffle(order)
    tree, capacity = PrefixTree(), Capacity(page)
    walks = [Walk(session, tree, possible=True, page=page) for session in sessions]
    done, steps = [0] * len(sessions), []
    for number, place in enumerate(order):
        capacity.add(walks[place].turn(done[place]))
        steps.append(tokens_of(sessions[place], done[place], number))
        done[place] += 1
    curve = capacity.curve()
    simulated = Naive(steps, page)
    assert list(curve.reused) == [simulated.reused(size) for size in curve.capacities]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12), st.integers(0, 4)), max_size=25), PAGES)
def test_prompts_that_are_prefixes_of_each_other(shapes: list[tuple[int, int, int]], page: int) -> None:
    """Few streams, many lengths: paths shrink, grow and fork all the time."""
    shared = {stream: Segment(stream, "user", 40) for stream in range(4)}
    turns = []
    for index, (stream, length, other) in enumerate(shapes):
        pieces = (Piece(stream, 0, length), *((Piece(other, 0, 6),) if other < 4 else ()))
        turns.append(Turn(index, 0, Prompt(pieces), sum(piece.tokens for piece in pieces), Output(0)))
    session = Session("s", tuple(turns), segments=shared)
    steps = [tokens_of(session, index, index) for index in range(len(turns))]
    curve, simulated = capacity_curve(possible_by_turn_at(session, page), page), Naive(steps, page)
    assert list(curve.reused) == [simulated.reused(size) for size in curve.capacities]


def possible_by_turn_at(session: Session, page: int) -> list[TurnReuse]:
    walk = Walk(session, PrefixTree(), possible=True, page=page)
    return [walk.turn(index) for index in range(len(session.turns))]


@settings(max_examples=40, deadline=None)
@given(THREE)
def test_without_limits_it_is_possible_reuse(sessions: tuple[Session, ...]) -> None:
    curve = capacity_curve(possible_by_turn(sessions))
    table = possible(sessions)
    assert curve.tokens == table.tokens
    assert not table.turns or curve.reused[-1] == table.reused
    assert list(curve.reused) == sorted(curve.reused)


def test_a_linear_session_by_hand() -> None:
    """Prompts of 75, 90 and 105 tokens, each with a reply of 5: the second finds 80 where 80 fit, the third 95."""
    curve = capacity_curve(possible_by_turn([making.linear(3)]))
    assert (curve.tokens, curve.held, curve.longest) == (270, 110, 110)
    assert curve.share(64) == pytest.approx(128 / 270)
    assert curve.needed(175 / 270) == next(size for size in curve.capacities if size >= 95)
    assert curve.possible == pytest.approx(175 / 270)
    assert (curve.share(0), curve.needed(0.9)) == (0.0, None)


def test_nothing_has_no_curve() -> None:
    curve = capacity_curve([])
    assert (curve.possible, curve.share(100), curve.needed(0.5), curve.tokens) == (None, None, None, 0)


def test_a_prompt_that_was_left_out_is_noticed() -> None:
    turns = list(possible_by_turn([making.linear(3)]))
    with pytest.raises(ValueError, match="prompt 3 of the tree comes after 1"):
        capacity_curve([turns[0], turns[2]])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50), st.integers(-9, 9)), max_size=40))
def test_sums(steps: list[tuple[bool, int, int]]) -> None:
    sums, plain = Sums(), list[int]()
    for grow, place, value in steps:
        if grow or not plain:
            sums.append(value)
            plain.append(value)
        else:
            sums.add(1 + place % len(plain), value)
            plain[place % len(plain)] += value
        assert sums.total == sum(plain)
        assert [sums.upto(at) for at in range(len(plain) + 1)] == [sum(plain[:at]) for at in range(len(plain) + 1)]
