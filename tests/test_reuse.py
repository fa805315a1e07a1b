"""Possible and ideal reuse, held to a token-by-token reference over sets of prefixes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import linear, sessions, token_identities

from agentx.core import LAYERS, LEADING_LAYERS, Layer, Output, Piece, Prompt, Segment, Session, Text, Turn
from agentx.reuse import PrefixTree, Template, Walk, ideal, possible, possible_by_turn
from agentx.wire.messages import messages

Token = tuple[object, ...]


def longest(seen: list[list[Token]], prompt: list[Token]) -> int:
    best = 0
    for other in seen:
        count = 0
        for mine, its in zip(prompt, other, strict=False):
            if mine != its:
                break
            count += 1
        best = max(best, count)
    return best


def as_sent(session: Session, index: int, template: Template) -> list[Token]:
    """The prompt token by token, through the same messages as the client's."""
    tokens: list[Token] = []
    for message in messages(session, session.pieces(index)):
        tokens += [("role", message.role, n) for n in range(template.per_message)]
        tokens += token_identities(session, list(message.pieces))
    return tokens + [("role", "assistant", n) for n in range(template.start)]


def many(count: int) -> st.SearchStrategy[tuple[Session, ...]]:
    return st.tuples(*[sessions(f"s{number}", 4) for number in range(count)])


@settings(max_examples=60)
@given(many(2))
def test_possible_is_the_longest_prefix_of_any_earlier_prompt_and_reply(made: tuple[Session, ...]) -> None:
    by_model: dict[str | None, list[list[Token]]] = {}
    expected = []
    for session in made:
        for index, turn in enumerate(session.turns):
            seen = by_model.setdefault(turn.model, [])  # models share no cache
            prompt: list[Token] = list(token_identities(session, session.pieces(index)))
            isl = max(turn.isl, len(prompt))
            expected.append(min(longest(seen, prompt), max(0, isl - 1)))
            reply = []
            if turn.reply is not None:
                tokens = min(turn.output.tokens, session.segment(turn.reply).tokens)
                reply = token_identities(session, [Piece(turn.reply, 0, tokens)]) if tokens else []
            seen.append(prompt + list(reply))
    assert [sum(turn.reused) for turn in possible_by_turn(made)] == expected


@settings(max_examples=60)
@given(many(2), st.sampled_from([1, 3, 16]), st.sampled_from([Template(), Template(1, 1), Template(2, 5)]))
def test_ideal_is_the_page_floor_of_what_was_sent_before(
    made: tuple[Session, ...], page: int, template: Template
) -> None:
    seen: list[list[Token]] = []
    tree = PrefixTree()
    for session in made:
        walk = Walk(session, tree, page=page, template=template)
        for index in range(len(session.turns)):
            prompt = as_sent(session, index, template)
            expected = max(0, min(longest(seen, prompt), len(prompt) - 1)) // page * page  # what is sent, no more
            got = walk.turn(index)
            assert sum(got.reused) == expected
            assert sum(got.tokens) == len(prompt)
            assert all(0 <= reused <= tokens for reused, tokens in zip(got.reused, got.tokens, strict=True))
            seen.append(prompt)


@settings(max_examples=40)
@given(many(2))
def test_reuse_by_layer_is_that_of_the_leading_tokens(made: tuple[Session, ...]) -> None:
    turns = iter(possible_by_turn(made))
    for session in made:
        for index in range(len(session.turns)):
            got = next(turns)
            layers = [run.layer for run in session.runs(index) for _ in range(run.start, run.stop)]
            front = layers[: sum(got.reused)]
            assert [front.count(layer) for layer in LAYERS] == list(got.reused[:-1])


def test_a_linear_session_by_hand() -> None:
    """75 prompt tokens; then 75 + 5 + 10, of which 80 were seen; then 105, of which 95."""
    table = possible([linear(3)])
    assert (table.turns, table.tokens, table.reused) == (3, 75 + 90 + 105, 80 + 95)
    assert table.by_layer() == {
        "tools": (120, 80),
        "system": (75, 50),
        "user": (30, 20),
        "tool_result": (30, 10),
        "assistant": (15, 15),
    }
    assert table.share == pytest.approx(175 / 270)


def test_recorded_history_gives_the_replies_away() -> None:
    """Ideal: the second prompt shares 75 tokens with the first, the reply is not the server's own."""
    assert ideal([linear(3)]).reused == 75 + 90


def test_pages_round_each_prompt_down() -> None:
    assert ideal([linear(3)], page=16).reused == 64 + 80


def test_sessions_share_only_file_scoped_content() -> None:
    assert ideal([linear(1, id="a"), linear(1, id="b")]).reused == 65


def test_the_last_token_is_always_computed() -> None:
    """The same prompt twice, by another session that has nothing of its own in it."""
    turn = linear(1).turns[0]
    shared = dict(linear(1).shared) | dict(linear(1).segments)
    twice = [Session(name, (turn,), segments={}, shared=shared, scope="f") for name in "ab"]
    assert possible(twice).reused == 74


def test_unattributed_tokens_are_counted_and_never_reused() -> None:
    session = linear(2)
    turns = tuple(turn.__class__(**{**_fields(turn), "isl": turn.isl + 7}) for turn in session.turns)
    table = possible([Session("s", turns, segments=session.segments, shared=session.shared, scope="f")])
    assert (table.unattributed, table.tokens, table.reused) == (14, 75 + 90 + 14, 80)


def _fields(turn: object) -> dict[str, object]:
    return {name: getattr(turn, name) for name in turn.__class__.__dataclass_fields__}  # type: ignore[attr-defined]


def test_ideal_knows_nothing_of_tokens_that_are_not_sent() -> None:
    session = linear(2)
    turns = tuple(turn.__class__(**{**_fields(turn), "isl": turn.isl + 7}) for turn in session.turns)
    table = ideal([Session("s", turns, segments=session.segments, shared=session.shared, scope="f")])
    assert (table.unattributed, table.tokens, table.reused) == (0, 75 + 90, 75)


def test_equal_literal_text_is_the_same_content_in_every_session_and_play() -> None:
    """It cannot be salted: whoever sends it sends the same bytes."""
    text = {1: Segment(1, "user", 25, Text("a" * 100))}
    turn = Turn(0, 0, Prompt((Piece(1, 0, 25),)), 25, Output(1))
    tree = PrefixTree()
    walks = [Walk(Session(name, (turn,), segments=text), tree, salting=lambda _, name=name: name) for name in "ab"]
    assert [sum(walk.turn(0).reused) for walk in walks] == [0, 24]


def test_models_share_nothing_that_is_possible() -> None:
    session = linear(1)
    (turn,) = session.turns
    turns = (turn, turn.__class__(**{**_fields(turn), "index": 1, "model": "other"}))
    both = Session("s", turns, segments=session.segments, shared=session.shared, scope="f")
    assert (possible([both]).reused, ideal([both]).reused) == (0, 74)


def test_no_turns_is_no_share() -> None:
    assert possible([]).share is None


def test_a_finished_session_is_forgotten() -> None:
    tree = PrefixTree()
    for name in "abc":
        walk = Walk(linear(3, id=name), tree, possible=True)
        for index in range(3):
            walk.turn(index)
        walk.forget()
    left, stack = 0, [tree.root()]
    while stack:
        node = stack.pop()
        left += len(node.children)
        stack += [child for _, child in node.children.values()]
    assert left == 2  # tools, then system


def test_salts_decide_what_is_shared() -> None:
    def salted(name: str) -> Walk:
        def salt(layer: Layer) -> str:
            return "" if layer in LEADING_LAYERS else name

        return Walk(linear(1, id="s"), tree, salting=salt)

    tree = PrefixTree()
    assert sum(salted("1").turn(0).reused) == 0
    assert sum(salted("2").turn(0).reused) == 65
    assert sum(salted("2").turn(0).reused) == 74
