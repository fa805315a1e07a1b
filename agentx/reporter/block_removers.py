"""For which request room was made when a block was removed: no event says it, so it is inferred.

The request whose prompt was stored in the same message, nearest to the removal; else the next one to be stored that had
been sent by then; else one that was under way, or had just ended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentx.core import Attempt
from agentx.reporter.losses_graves import Grave
from agentx.reporter.stored_blocks import Blocks, Places

SLACK = 0.1  # s after a first token within which the store of its prompt is told
NEAR = 2.0  # s within which a request that had ended is taken for the one that was made room for
BACK = 16  # prompts stored before and after an event that are looked at
MANY = 1000  # requests under way at a time, at most, that are looked at


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request with the places of its prompt's blocks on its server."""

    attempt: Attempt
    where: Places
    blocks: Blocks


class Removers:
    """The requests of one server, `prompts` being those of all servers of the run."""

    def __init__(self, blocks: Blocks, prompts: Sequence[Prompt]) -> None:
        self._blocks = blocks
        self._own = {number: one.attempt for number, one in enumerate(prompts) if one.blocks is blocks}
        self._stores = sorted(self._first_stores(prompts))
        self._begins = [number for number, _ in self._stores]
        self._sent = sorted((attempt.sent, number) for number, attempt in self._own.items())

    def _first_stores(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, int]]:
        """(event that stored the end of a prompt around its first token, the request)."""
        for number, attempt in self._own.items():
            prompt = prompts[number]
            if attempt.first is None or not len(prompt.where):
                continue
            begin, end = self._blocks.number_at(attempt.sent), self._blocks.number_at(attempt.first + SLACK)
            state = self._blocks.device.at(prompt.where[-1:], begin)
            told = int(state.next[0])
            if state.comes[0] and begin <= told < end:
                yield told, number

    def of(self, event: int, but: int | None = None) -> int | None:
        """Never request `but`. None: nobody was near."""
        at, message = float(self._blocks.times[event]), self._blocks.messages[event]
        begin = bisect_left(self._begins, event)
        beside = [one for one in self._stores[max(0, begin - BACK) : begin + BACK] if one[1] != but]
        together = [one for one in beside if self._blocks.messages[one[0]] == message]
        if together:
            return min(together, key=lambda one: abs(one[0] - event))[1]
        following = (request for told, request in beside if told >= event and self._own[request].sent <= at)
        found = next(following, None)
        return self._under_way(at, but) if found is None else found

    def _under_way(self, at: float, but: int | None) -> int | None:
        """The request that ends next; else the one that ended last, not long ago."""
        place = bisect_left(self._sent, (at, len(self._own)))
        ends = [
            (self._own[number].end or sent, number)
            for sent, number in self._sent[max(0, place - MANY) : place]
            if number != but
        ]
        ends = [one for one in ends if one[0] >= at - NEAR]
        return min(ends, key=lambda one: (one[0] < at, abs(one[0] - at)), default=(0.0, None))[1]

    def grave(self, cause: str, tokens: int, event: int, own: int) -> Grave:
        """What request `own` lost at an event."""
        return Grave(cause, tokens, float(self._blocks.times[event]), self.of(event, own))
