"""Request bodies as parts that occur again: cut where messages and tools meet, named once, recipes as differences.

An agent sends its whole context with every turn. A body is cut, as bytes and without parsing, before each `,{` and
before a `]` that follow a `}`, so that a message is one part wherever it stands and joining the parts gives the body
back. A body's recipe is the list of its parts' numbers, written as the difference to a recent recipe.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_PART = 1 << 20  # bytes; a longer stretch is cut again, so that a part fits a frame
WINDOW = 256  # recipes back that a recipe may refer to: what a reader has to remember
KNOWN_BYTES = 64 << 20  # of memory for the parts by which it recognises them
_ENTRY = 160  # bytes that a part takes in memory beside its own: objects and their place in a table
_TIPS = 4  # parts at a recipe's end by which its continuation finds it
_LOOSE = re.compile(rb"\}\s*,\s*\{")  # between two objects of pretty-printed JSON
_ARRAY_ENDS = (b'}],"', b'}], "')  # quotes inside strings are escaped: text cannot look like it
_LOOSE_END = re.compile(rb'\}(?=\s*\]\s*,\s*")')
_BODY_END = re.compile(rb"\}(?=\s*\]\s*\}\s*\Z)")


def split(body: bytes) -> list[bytes]:
    """The parts of a body; joined they are the body."""
    tight, spaced = body.find(b"},{"), body.find(b"}, {")
    loose = tight < 0 and spaced < 0
    between = b"},{" if spaced < 0 or 0 <= tight < spaced else b"}, {"
    cuts = [match.end() for match in _LOOSE_END.finditer(body)] if loose else _array_ends(body)
    cuts += [match.end() for match in _BODY_END.finditer(body, max(len(body) - 100, 0))]
    parts: list[bytes] = []
    at = 0
    for cut in sorted({*cuts, len(body)}):
        section = body[at:cut]
        parts += _indented(section) if loose else _objects(section, between)
        at = cut
    if all(0 < len(part) <= MAX_PART for part in parts):
        return parts
    return [part[i : i + MAX_PART] for part in parts for i in range(0, len(part), MAX_PART)]


def _array_ends(body: bytes) -> list[int]:
    cuts = []
    for end in _ARRAY_ENDS:
        at = body.find(end)
        while at >= 0:
            cuts.append(at + 1)
            at = body.find(end, at + 1)
    return cuts


def _objects(section: bytes, between: bytes) -> list[bytes]:
    """A section cut before each comma between two objects."""
    first, *rest = section.split(between)
    opened = between[1:]
    if not rest:
        return [first]
    return [first + b"}", *[b"%b%b}" % (opened, piece) for piece in rest[:-1]], opened + rest[-1]]


def _indented(section: bytes) -> list[bytes]:
    cuts = [match.start() + 1 for match in _LOOSE.finditer(section)]
    return [section[a:b] for a, b in zip([0, *cuts], [*cuts, len(section)], strict=True)]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Part numbers: `keep` leading ones of the recipe `base`, then `new`, then the last `tail` ones of `base`."""

    new: tuple[int, ...]
    base: int | None = None
    keep: int = 0
    tail: int = 0

    def body(self) -> dict[str, object]:
        runs = _runs(self.new)
        if self.base is None:
            return {"new": runs}
        return {"base": self.base, "keep": self.keep, "new": runs, "tail": self.tail}


def _runs(numbers: Sequence[int]) -> list[int]:
    """Numbers as first, count, first, count …: new parts are numbered in their order."""
    runs: list[int] = []
    for number in numbers:
        if runs and number == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs


def resolve(body: Mapping[str, object], recent: Mapping[int, array[int]]) -> array[int] | None:
    """A recipe frame's part numbers; None when it is damaged or its base is not among the `recent` ones."""
    runs, base = body.get("new"), body.get("base")
    if not isinstance(runs, list) or len(runs) % 2 or not all(type(n) is int and n >= 0 for n in runs):
        return None
    numbers: array[int] = array("Q")
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        if count > 1 << 24:
            return None
        numbers.extend(range(first, first + count))
    if base is None:
        return numbers
    keep, tail = body.get("keep"), body.get("tail")
    known = recent.get(base) if isinstance(base, int) else None
    if known is None or not isinstance(keep, int) or not isinstance(tail, int) or not 0 <= keep + tail <= len(known):
        return None
    return known[:keep] + numbers + known[len(known) - tail :]


class Recent:
    """The last `WINDOW` recipes by their exchange's number."""

    def __init__(self) -> None:
        self._recipes: OrderedDict[int, array[int]] = OrderedDict()

    def add(self, exchange: int, numbers: array[int]) -> int | None:
        """Remember a recipe; returns the exchange that is forgotten for it."""
        self._recipes[exchange] = numbers
        return self._recipes.popitem(last=False)[0] if len(self._recipes) > WINDOW else None

    @property
    def recipes(self) -> Mapping[int, array[int]]:
        return self._recipes


@dataclass(slots=True)
class Parts:
    """Numbers parts as they are first seen and writes recipes. `store` lists what is new: (number, bytes)."""

    _young: dict[bytes, int] = field(default_factory=dict)
    _old: dict[bytes, int] = field(default_factory=dict)
    _held: int = 0
    _next: int = 0
    _recent: Recent = field(default_factory=Recent)
    _tips: OrderedDict[int, int] = field(default_factory=OrderedDict)  # a part near a recipe's end -> its exchange

    def add(self, exchange: int, body: bytes) -> tuple[list[tuple[int, bytes]], Recipe]:
        """(parts that must be written first, the recipe) of one request body."""
        new: list[tuple[int, bytes]] = []
        numbers: array[int] = array("Q")
        for part in split(body):
            number = self._young.get(part)
            if number is None:
                number = self._old.get(part)
                if number is None:
                    number = self._next
                    self._next += 1
                    new.append((number, part))
                self._remember(part, number)
            numbers.append(number)
        recipe = self._difference(numbers)
        self._note(exchange, numbers)
        return new, recipe

    def forget(self) -> None:
        """Nothing that was named before may be referred to again: it may not be on the disk."""
        self._young, self._old, self._held = {}, {}, 0
        self._recent, self._tips = Recent(), OrderedDict()

    def _remember(self, part: bytes, number: int) -> None:
        self._young[part] = number
        self._held += len(part) + _ENTRY
        if self._held > KNOWN_BYTES // 2:  # two generations: what is not met again in one is dropped with it
            self._old, self._young, self._held = self._young, {}, 0

    def _note(self, exchange: int, numbers: array[int]) -> None:
        self._recent.add(exchange, numbers)
        for number in numbers[-_TIPS:]:
            self._tips.pop(number, None)
            self._tips[number] = exchange
        while len(self._tips) > _TIPS * WINDOW:
            self._tips.popitem(last=False)

    def _difference(self, numbers: array[int]) -> Recipe:
        best = Recipe(tuple(numbers))
        tried: set[int] = set()
        for number in reversed(numbers):
            base = self._tips.get(number)
            known = self._recent.recipes.get(base) if base is not None else None
            if base is None or known is None or base in tried:
                continue
            tried.add(base)
            keep = _common(known, numbers)
            tail = _common(known[keep:][::-1], numbers[keep:][::-1])
            new = tuple(numbers[keep : len(numbers) - tail])
            if len(new) < len(best.new):
                best = Recipe(new, base, keep, tail)
            if len(tried) == _TIPS:
                break
        return best


def _common(a: array[int], b: array[int]) -> int:
    """How many leading numbers are equal; found by halving, because slices compare at memory speed."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
