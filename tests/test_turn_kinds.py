"""Turns are named by their event, by being the first of their thread, else by their gap."""

from __future__ import annotations

from dataclasses import replace

from making import linear

from agentx.core import Gap, Thread, TurnEvent
from agentx.turn_kinds import TURN_KINDS, turn_kinds


def test_kinds() -> None:
    session = linear(6)
    kinds = ["unknown", "tool", "human", "tool", "spawn", "tool"]
    turns = [replace(turn, gap=Gap(kind)) for turn, kind in zip(session.turns, kinds, strict=True)]
    turns[3] = replace(turns[3], event=TurnEvent("compaction"))
    turns[4] = replace(turns[4], thread=1)  # the first of another thread
    turns[5] = replace(turns[5], event=TurnEvent("abort"))  # changes no prompt
    threads = (*session.threads, Thread(1, 0, "subagent"))
    found = turn_kinds(replace(session, turns=tuple(turns), threads=threads))
    assert found == ["first", "tool", "human", "compaction", "first", "tool"]
    assert set(found) <= set(TURN_KINDS)
