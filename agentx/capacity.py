"""The capacity curve: how much of the prompts a cache of each size would not have to compute, in one pass.

The cache is LRU over pages. A prompt and its reply are one path of pages; when it is used its first page becomes the
most recent, its last one the least recent of them, so the deepest page of a path leaves first and what is cached is
always a prefix. A smaller cache then holds a part of what a larger one holds (a stack algorithm: Mattson, Gecsei, Slutz
and Traiger 1970), so one list in order of use answers for all capacities: a page is found in every cache that is larger
than the number of pages more recent than it.

No page is ever looked at. Of the pages that prompt `n` was the last to use some are left: always those from one page on
to its end, because whoever uses a page uses all before it. So a prompt is one number (the first page that is its own),
a path is cut into few such stretches (as in link-cut trees, a logarithm of them on average), and the pages more recent
than a stretch are a sum over later prompts. It costs some tens of bytes a prompt, whatever its length.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from agentx.reuse import TurnReuse

STEPS = 64  # capacities of the curve for each doubling: they are 1.1 % apart
GRID = tuple(sorted({round(2 ** (step / STEPS)) for step in range(44 * STEPS)}))  # pages


@dataclass(frozen=True, slots=True)
class Curve:
    """Reused tokens at each capacity, both ascending, of `tokens` prompt tokens; exact at these capacities (tokens).

    `held` is the capacity at which nothing ever leaves: all distinct pages. `longest` is the longest prompt with its
    reply: a server's pool must hold it anyway.
    """

    capacities: tuple[int, ...]
    reused: tuple[int, ...]
    tokens: int
    held: int
    longest: int
    page: int

    @property
    def possible(self) -> float | None:
        """The share that a cache without limits reuses, 0 ... 1; None without prompts."""
        return self.reused[-1] / self.tokens if self.tokens else None

    def share(self, capacity: int) -> float | None:
        """Reused tokens over prompt tokens at a capacity in tokens; between two of the curve's, that of the lower."""
        if not self.tokens:
            return None
        place = bisect_right(self.capacities, capacity)
        return self.reused[place - 1] / self.tokens if place else 0.0

    def needed(self, share: float) -> int | None:
        """The least capacity of the curve, in tokens, that reuses so much; None when none does."""
        place = bisect_left(self.reused, share * self.tokens - 1e-6)
        return self.capacities[place] if place < len(self.reused) and self.tokens else None


class Capacity:
    """Watches prompts in the order in which they are sent, of one tree (`agentx.reuse`), from its first one on."""

    def __init__(self, page: int = 1) -> None:
        self.page = page
        self.tokens = self.longest = 0
        self._top = array("q", [0])  # by prompt: its first page that no later prompt has used
        self._above = array("q", [0])  # by prompt: another one that has the pages before that
        self._alive = Sums()  # by prompt: how many pages are left to it
        self._slopes = [0] * (len(GRID) + 1)  # differences along GRID: capacity x slope + level is what is reused
        self._levels = [0] * (len(GRID) + 1)

    def add(self, turn: TurnReuse) -> None:
        """One prompt. Raises ValueError when it is not the next one of its tree."""
        trail = turn.trail
        new, page = len(self._top), trail.shared // self.page
        if trail.number != new:
            raise ValueError(f"prompt {trail.number} of the tree comes after {new - 1}")
        usable = sum(turn.reused) // self.page
        taken: list[tuple[int, int]] = []
        owner = trail.owner
        while page:
            owner = self._owner(owner, page)
            top, after = self._top[owner], self._above[owner]
            if top < usable:
                self._note(self._alive.total - self._alive.upto(owner), min(page, usable) - top)
            taken.append((owner, page - top))
            self._top[owner], self._above[owner] = page, new
            owner, page = after, top
        for owner, pages in taken:
            self._alive.add(owner, -pages)
        self._alive.append(trail.length // self.page)
        self._top.append(0)
        self._above.append(0)
        self.tokens += sum(turn.tokens) + turn.unattributed
        self.longest = max(self.longest, trail.length)

    def _owner(self, prompt: int, page: int) -> int:
        """Which prompt has page `page - 1` of the path of `prompt`; shortens the way there for the next time."""
        passed = []
        while self._top[prompt] >= page:
            passed.append(prompt)
            prompt = self._above[prompt]
        found = prompt
        for each in reversed(passed):
            while self._top[prompt] >= self._top[each]:
                prompt = self._above[prompt]
            self._above[each] = prompt
            prompt = each
        return found

    def _note(self, newer: int, pages: int) -> None:
        """`pages` were found, the first of them behind `newer` more recent ones, the others in order."""
        first, last = bisect_right(GRID, newer), bisect_left(GRID, newer + pages)
        self._slopes[first] += 1
        self._levels[first] -= newer
        self._slopes[last] -= 1
        self._levels[last] += newer + pages

    def curve(self) -> Curve:
        held = self._alive.total
        reused: list[int] = []
        slope = level = 0
        for place, pages in enumerate(GRID):
            slope, level = slope + self._slopes[place], level + self._levels[place]
            reused.append((pages * slope + level) * self.page)
            if pages >= held:
                break
        capacities = tuple(pages * self.page for pages in GRID[: len(reused)])
        return Curve(capacities, tuple(reused), self.tokens, held * self.page, self.longest, self.page)


def capacity_curve(turns: Iterable[TurnReuse], page: int = 1) -> Curve:
    """The curve of prompts in send order, such as `agentx.reuse.possible_by_turn` gives them."""
    capacity = Capacity(page)
    for turn in turns:
        capacity.add(turn)
    return capacity.curve()


class Sums:
    """Numbers that change, and sums from the first of them on (Fenwick 1994). The first stands for no prompt: 0."""

    def __init__(self) -> None:
        self.total = 0
        self._parts = array("q", [0])  # part i: the sum of the i & -i numbers up to i

    def append(self, value: int) -> None:
        at = len(self._parts)
        part, step, low = value, at - 1, at - (at & -at)
        while step > low:
            part += self._parts[step]
            step &= step - 1
        self._parts.append(part)
        self.total += value

    def add(self, at: int, value: int) -> None:
        self.total += value
        while at < len(self._parts):
            self._parts[at] += value
            at += at & -at

    def upto(self, at: int) -> int:
        """The sum of numbers 1 ... at."""
        result = 0
        while at:
            result += self._parts[at]
            at &= at - 1
        return result
