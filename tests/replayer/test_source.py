"""The order in which sessions are played."""

from __future__ import annotations

import dataclasses
from itertools import islice

import pytest

from agentx.core import Output, Prompt, Session, Turn
from agentx.errors import BadInput
from agentx.replayer.source import Source


def trace(*ids: str) -> list[Session]:
    return [Session(id, (Turn(0, 0, Prompt(()), 10, Output(1)),)) for id in ids]


def ids(source: Source, most: int = 100) -> str:
    return "".join(session.id for session in islice(source, most))


def test_file_order_once():
    assert ids(Source(trace(*"abc"))) == "abc"


def test_again_and_again():
    assert ids(Source(trace(*"abc"), recycle=True), 8) == "abcabcab"


def test_shuffled_by_the_seed_and_anew_in_each_pass():
    names = "abcdefgh"
    one = ids(Source(trace(*names), shuffle=True, seed=1, recycle=True), 16)
    assert one == ids(Source(trace(*names), shuffle=True, seed=1, recycle=True), 16)
    assert one != ids(Source(trace(*names), shuffle=True, seed=2, recycle=True), 16)
    assert sorted(one[:8]) == sorted(one[8:]) == list(names)
    assert one[:8] != one[8:]


def test_some_are_played_first_and_not_again_in_that_pass():
    assert ids(Source(trace(*"abcd"), first=(2, 0), recycle=True), 8) == "cabdabcd"
    assert ids(Source(trace(*"abcd"), first=(3, 3))) == "ddabc"  # one may be found in two lanes
    assert ids(Source(trace(*"ab"), first=(0, 1), recycle=True), 5) == "ababa"  # all of them: the next pass follows
    shuffled = ids(Source(trace(*"abcdef"), first=(4,), shuffle=True))
    assert shuffled[0] == "e"
    assert sorted(shuffled) == list("abcdef")


def test_what_sends_nothing_is_dropped_and_counted_once():
    source = Source(trace(*"abc"), recycle=True, keep=lambda session: session.id != "b")
    assert ids(source, 5) == "acaca"
    assert source.found.dropped == ["b"]


@pytest.mark.parametrize("first", [(), (1, 1)])
def test_what_is_skipped_is_weighed_once(first):
    source = Source(trace(*"abc"), recycle=True, first=first, skip=lambda session: session.id == "b")
    assert ids(source, 5) == "acaca"
    assert source.found.skipped == ["b"]
    assert source.found.share == "1 of 3 sessions, 1 of 3 turns, 33% of the prompt tokens"
    assert source.found.facts() == {
        "skipped": {"sessions": 1, "turns": 1, "tokens": 10},
        "read": {"sessions": 3, "turns": 3, "tokens": 30},
    }


def test_a_pass_that_keeps_nothing_is_the_last():
    assert ids(Source(trace(*"abc"), recycle=True, keep=lambda session: False)) == ""


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_session_whose_end_is_lost_is_played_and_named(shuffle):
    whole, torn = trace("a", "b")
    source = Source([whole, dataclasses.replace(torn, complete=False)], shuffle=shuffle)
    assert sorted(ids(source)) == ["a", "b"]
    assert source.found.torn == ["b"]


def test_a_long_trace_is_not_shuffled_in_memory(monkeypatch):
    monkeypatch.setattr("agentx.replayer.source.MAX_SHUFFLED", 2)
    with pytest.raises(BadInput, match="order: file"):
        ids(Source(trace(*"abc"), shuffle=True))
