"""What is shown of a scripted reply does not depend on where its tokens are cut, and comes back as the same ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.engine.http_parts import Part, Parts, Shown, scripted, shown
from agentx.engine.tokenizer import message_text, text_ids

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUE = st.none() | st.booleans() | st.integers(-99, 99) | TEXT | st.lists(TEXT, max_size=2)
ARGUMENTS = st.dictionaries(TEXT, VALUE, max_size=3)
CALLS = st.lists(st.tuples(TEXT.filter(bool), ARGUMENTS), max_size=3)


def joined(parts: list[Part]) -> list[Part]:
    """One part where several follow each other that belong together."""
    out: list[Part] = []
    for part in parts:
        if out and part.kind != "call" and (out[-1].kind, out[-1].call) == (part.kind, part.call):
            part = part._replace(text=out.pop().text + part.text)
        out.append(part)
    return out


@given(text=TEXT, reasoning=TEXT, calls=CALLS, cuts=st.lists(st.integers(1, 5), max_size=40))
def test_any_cut_shows_the_same(text: str, reasoning: str, calls: Any, cuts: list[int]) -> None:
    reply = scripted(text, reasoning=reasoning, calls=calls)
    whole = shown(reply, reply.ids)
    assert (whole.reasoning, whole.text) == (reasoning, text)
    assert [(name, json.loads(arguments)) for name, arguments in whole.calls] == list(calls)
    stream, parts, at = Parts(reply), [], 0
    for cut in [*cuts, len(reply.ids)]:
        parts += stream.feed(reply.ids[at : at + 4 * cut])
        at += 4 * cut
    assert joined(parts) == joined(Parts(reply).feed(reply.ids))
    assert all(part.text for part in parts)


@given(text=TEXT, reasoning=TEXT, calls=CALLS, spaced=st.booleans())
def test_what_a_client_sends_back_has_the_generated_ids(text: str, reasoning: str, calls: Any, spaced: bool) -> None:
    reply = scripted(text, reasoning=reasoning, calls=calls)
    spacing = (", ", ": ") if spaced else (",", ":")
    sent = {
        "role": "assistant",
        "content": text,
        "reasoning_content": reasoning,
        "tool_calls": [
            {"id": f"call_{name}", "function": {"name": name, "arguments": json.dumps(arguments, separators=spacing)}}
            for name, arguments in calls
        ],
    }
    assert text_ids(message_text(sent)) == reply.ids


def test_parts_that_are_not_shown_as_such_are_text() -> None:
    calls = [("f", {"a": 1})]
    for show_reasoning in (False, True):
        for show_calls in (False, True):
            reply = scripted(
                "x", reasoning="hm", calls=calls, show_reasoning=show_reasoning, show_calls=show_calls
            )  # the ids are the same
            assert reply.ids == scripted("x", reasoning="hm", calls=calls).ids
            assert shown(reply, reply.ids) == Shown(
                "hm" if show_reasoning else "",
                ("" if show_reasoning else "<think>hm</think>")
                + "x"
                + ("" if show_calls else '[{"name":"f","arguments":{"a":1}}]'),
                (("f", '{"a":1}'),) if show_calls else (),
            )
            assert bool(reply.names) == show_calls
            assert (reply.reasoning_tokens > 0) == show_reasoning


def test_what_the_engine_adds_is_text() -> None:
    reply = scripted(calls=[("f", {})])
    whole = shown(reply, reply.ids + b" Abc")
    assert (whole.text, whole.calls) == (" Abc", (("f", "{}"),))


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (1, Shown("", "", ())),  # <thi: tags are not shown
        (2, Shown("h", "", ())),  # nk>h
        (4, Shown("hm", "", ())),  # m</t hink
        (5, Shown("hm", "ab", ())),  # >ab and half of é, which is not shown before it is whole
        (6, Shown("hm", "abé", ())),
        (11, Shown("hm", "abé", ())),  # …"argument: a call begins when its arguments do
        (12, Shown("hm", "abé", (("get", ""),))),
        (13, Shown("hm", "abé", (("get", '{"a"'),))),
        (14, Shown("hm", "abé", (("get", '{"a":1}'),))),
    ],
)
def test_a_limit_cuts_anywhere(tokens: int, expected: Shown) -> None:
    reply = scripted("abé", reasoning="hm", calls=[("get", {"a": 1})])
    assert shown(reply, reply.ids[: 4 * tokens]) == expected


def test_own_words_are_text() -> None:
    assert Parts(None).feed(b" Abc Def") == [Part("text", " Abc Def")]
    assert Parts(None).feed(b"") == []
