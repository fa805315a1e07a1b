"""A prefix cache by lines of context, for estimates: what of each thread is still there, and what has to go.

A line is one thread of one play. It holds its last prompt and reply, in nodes that end where its prompts and their
chunks ended; lines of requests that run are locked. When there is no room the line that was used longest ago loses
nodes from its end. This is what a radix tree with `lru` does to contexts that share nothing with each other; what a
line shares with others when it begins is taken as held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Line:
    ends: list[int] = field(default_factory=list)  # of its nodes, ascending: the last is what the line holds
    locked: int = 0

    @property
    def held(self) -> int:
        return self.ends[-1] if self.ends else 0


class Lines:
    """The cache of `capacity` tokens, of which requests that run can have `room`. `used` tokens are in it.

    A prompt is inserted in chunks of `chunk` tokens, and each is a node.
    """

    def __init__(self, capacity: int, room: int, chunk: int) -> None:
        self.capacity, self.room, self.chunk = capacity, room, chunk
        self.used = 0
        self._lines: OrderedDict[Hashable, _Line] = OrderedDict()  # the one that was used longest ago first
        self._locked = 0  # tokens of lines that are locked

    def begin(self, line: Hashable, prefix: int, prompt: int, reply: int) -> int | None:
        """Take a request in and lock its line; of its prompt an unlimited cache would have the first `prefix` tokens.

        Returns the tokens that hit; None: there is no room while others run.
        """
        own = self._lines.get(line)
        hit = prefix if own is None else min(prefix, own.held)
        others = self._locked - (own.held if own is not None and own.locked else 0)
        if others + prompt + reply > self.room:
            return None
        own = self._lines.setdefault(line, _Line())
        self._lines.move_to_end(line)
        if not own.locked:
            self._locked += own.held
        own.locked += 1
        self._set(own, [end for end in own.ends if end < hit] + [hit])
        self._free(prompt + reply - hit)
        self._set(own, [*own.ends, *range(hit + self.chunk, prompt, self.chunk), prompt, prompt + reply])
        return hit

    def end(self, line: Hashable) -> None:
        """A request of the line is over."""
        own = self._lines[line]
        own.locked -= 1
        if not own.locked:
            self._locked -= own.held

    def _set(self, line: _Line, ends: list[int]) -> None:
        before = line.held
        line.ends = ends
        self.used += line.held - before
        if line.locked:
            self._locked += line.held - before

    def _free(self, need: int) -> None:
        for line in self._lines.values():
            while self.used + need > self.capacity and line.ends and not line.locked:
                self._set(line, line.ends[:-1])
            if self.used + need <= self.capacity:
                return
