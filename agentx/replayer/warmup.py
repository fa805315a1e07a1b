"""Warming up: which turns each lane sends, with replies of one token and without pauses, before anything counts.

A lane first sends the last turn of every thread that is live where it begins, so that the cache holds what it would
hold; then so many turns, one after the other, in the order in which they were recorded. It goes on with its next
session when one ends. A lane that has sent its last turn is warm, whether the reply has come or not.
"""

from __future__ import annotations

from collections import Counter

from agentx.replayer.moves import StartRule
from agentx.replayer.plays import LivePlay
from agentx.replayer.starts import BEGINNING, Position, last_of_live_threads, start_of


class Warmup:
    """What is left to do in each lane. With `turns` 0 there is nothing to warm."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self._sent: Counter[int] = Counter()  # by lane
        self._primes: dict[int, list[int]] = {}  # by play: turns to prime with

    def enter(self, play: LivePlay, rule: StartRule | None) -> None:
        """A play begins, in the middle if there is a rule: the first of its lane."""
        position = BEGINNING if rule is None else start_of(play.session, play.lane, rule)
        primes = last_of_live_threads(play.session, position) if self.turns else []
        play.hold(Position(position.before.difference(primes), position.at))
        self._primes[play.serial] = primes

    def next_turn(self, play: LivePlay) -> int | None:
        """The turn that the play sends next; None when its lane is warm, or waits for a reply."""
        if play.in_flight:
            return None
        if primes := self._primes[play.serial]:
            return primes.pop(0)
        if self._sent[play.lane] >= self.turns:
            return None
        return play.earliest()

    def count(self, play: LivePlay, turn: int) -> None:
        """A turn is sent. What primes is not counted: it lies before the start."""
        if play.begun[turn] >= play.origin:
            self._sent[play.lane] += 1

    def is_warm(self, play: LivePlay) -> bool:
        return not self._primes[play.serial] and self._sent[play.lane] >= self.turns
