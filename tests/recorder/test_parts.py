"""Bodies come back byte by byte; a growing session costs what is new in it."""

from __future__ import annotations

import json
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder import parts as parts_module
from agentx.recorder.parts import MAX_PART, WINDOW, Parts, Recent, resolve, split

TOOLS = [{"name": f"tool{n}", "input_schema": {"anyOf": [{"type": "a"}, {"type": "b"}]}} for n in range(5)]


def body(turn: int, **form: object) -> bytes:
    messages = [{"role": "user" if n % 2 else "assistant", "content": f"message {n} " * 9} for n in range(2 * turn + 1)]
    return json.dumps({"model": "m", "messages": messages, "tools": TOOLS, "stream": True}, **form).encode()  # type: ignore[arg-type]


class Store:
    """What a reader does with what `Parts` says."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.recent = Recent()

    def body(self, exchange: int, new: list[tuple[int, bytes]], recipe: dict[str, object]) -> bytes | None:
        self.parts.update(new)
        numbers = resolve(recipe, self.recent.recipes)
        if numbers is None:
            return None
        self.recent.add(exchange, numbers)
        return b"".join(self.parts[number] for number in numbers)


JOINTS = st.lists(st.sampled_from([b"},{", b'}],"', b"}]}", b"}, {", b"a", b"{", b"}\n,\n{"])).map(b"".join)


@given(st.binary(max_size=300) | JOINTS)
def test_parts_join_to_the_body(data: bytes) -> None:
    parts = split(data)
    assert b"".join(parts) == data
    assert all(parts)


def test_long_stretches_are_cut_into_parts_that_fit() -> None:
    data = b"x" * (2 * MAX_PART + 5) + b'},{"a":1}],"b":2}'
    assert b"".join(split(data)) == data
    assert max(map(len, split(data))) == MAX_PART


@pytest.mark.parametrize("form", [{"separators": (",", ":")}, {}, {"indent": 1}])
def test_a_message_is_the_same_part_wherever_it_stands(form: dict[str, object]) -> None:
    """All three ways to write JSON: compact, spaced, indented."""
    before, after = split(body(3, **form)), split(body(4, **form))
    assert len([part for part in after if part not in before]) <= 3  # two messages, perhaps the one they follow


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.booleans()), max_size=40))
def test_recipes_give_every_body_back(turns: list[tuple[int, int, bool]]) -> None:
    """Any interleaving of growing, shrinking and changing sessions, and a disk that failed in between."""
    parts, store = Parts(), Store()
    for exchange, (session, turn, failed) in enumerate(turns):
        if failed:
            parts.forget()
        data = body(turn).replace(b"message", b"message of session %d" % session)
        new, recipe = parts.add(exchange, data)
        assert store.body(exchange, new, recipe.body()) == data


def test_a_recipe_refers_only_to_the_window() -> None:
    parts, store = Parts(), Store()
    for exchange in range(WINDOW + 50):
        data = body(2) if exchange in (0, WINDOW + 49) else b'{"other":%d}' % exchange
        new, recipe = parts.add(exchange, data)
        assert store.body(exchange, new, recipe.body()) == data
        assert recipe.base is None or exchange - recipe.base <= WINDOW


def test_what_it_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """R25: many exchanges that share nothing; large parts and tiny ones, whose tables cost more than they."""
    monkeypatch.setattr(parts_module, "KNOWN_BYTES", 100_000)
    parts = Parts()
    most = 0
    for number in range(3 * WINDOW):
        text = "x" * (number % 3000)
        made = [{"n": number, "m": m, "text": text[: number * m % 700]} for m in range(10)]
        parts.add(number, json.dumps({"messages": made}).encode())
        known = {**parts._old, **parts._young}
        most = max(most, sum(len(part) + parts_module._ENTRY for part in known))
    assert 50_000 < most < 100_000
    assert len(parts._recent.recipes) == WINDOW
    assert len(parts._tips) <= 4 * WINDOW


def test_a_long_session_costs_less_than_a_hundredth_of_its_requests() -> None:
    """1,000 turns that grow to some 400 KB, with a cache marker that moves to the last message in each."""
    parts = Parts()
    raw = written = 0
    messages: list[str] = []
    for turn in range(1000):
        messages.append(json.dumps({"role": "user", "content": [{"type": "text", "text": f"{turn} " + "word " * 40}]}))
        marked = messages[-1].replace('"}]', '", "cache_control": {"type": "ephemeral"}}]')
        data = f'{{"model": "m", "messages": [{", ".join([*messages[:-1], marked])}], "stream": true}}'.encode()
        new, recipe = parts.add(turn, data)
        raw += len(data)
        written += sum(len(part) + 40 for _, part in new) + len(json.dumps(recipe.body()))
        messages.append(json.dumps({"role": "assistant", "content": "answer " * 20 + str(turn)}))
    assert raw > 150_000_000
    assert written < raw / 100


@pytest.mark.parametrize(
    "recipe",
    [
        {},  # nothing
        {"new": [1]},  # a run without its count
        {"new": [0, 1 << 40]},  # a run that would fill memory
        {"new": [-1, 1]},
        {"new": [], "base": 7, "keep": 0, "tail": 0},  # no such recipe
        {"new": [], "base": 1, "keep": 9, "tail": 0},  # more than it has
        {"new": [], "base": 1, "keep": 2, "tail": -1},
    ],
)
def test_damaged_recipes_give_nothing(recipe: dict[str, object]) -> None:
    assert resolve(recipe, {1: array("Q", [1, 2])}) is None or recipe.get("tail") == -1
