"""Prompts as chains of numbered blocks become segments and pieces.

A source row says: my prompt has `isl` tokens, its first blocks are `ids`. Token `p` of it is then token
`p % block` of block `ids[p // block]`; equal ids mean equal tokens. Tokens behind the last id are not identified:
they get a synthetic segment of their own. One segment holds one stretch of new tokens of one layer, however many
blocks it spans, and a stretch that occurs again is the same segment again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentx.core import Layer, Opaque, OpaqueRun, Piece, Prompt, Segment


def common(left: array[int], right: array[int]) -> int:
    """How many leading block ids two chains share."""
    low, high = 0, min(len(left), len(right))
    if high and left[0] != right[0]:
        return 0
    if left[:high] == right[:high]:
        return high
    # Bisected with slices, of which each is half as long: a loop over a long chain is some ten times slower.
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def blocks_of(tokens: int, block: int) -> int:
    """Blocks that `tokens` tokens need, the last one perhaps cut."""
    return -(-tokens // block)


def runs_of(ids: array[int], block: int, start: int, stop: int) -> tuple[OpaqueRun, ...]:
    """Tokens `start ... stop - 1` of a chain as runs; consecutive ids join into one run."""
    runs: list[OpaqueRun] = []
    at = start
    while at < stop:
        index, offset = divmod(at, block)
        end = index + 1
        while end * block < stop and ids[end] == ids[end - 1] + 1:
            end += 1
        tokens = min(stop, end * block) - at
        runs.append(OpaqueRun(ids[index], offset, tokens))
        at += tokens
    return tuple(runs)


class Mark(NamedTuple):
    """Tokens `start ... stop - 1` of a prompt are of this layer."""

    layer: Layer
    start: int
    stop: int


class Woven(NamedTuple):
    """A prompt, its resolved pieces, and the segment of each new mark that lies in one segment."""

    prompt: Prompt
    pieces: tuple[Piece, ...]
    segments: tuple[int | None, ...]


@dataclass(slots=True)
class Weaver:
    """Makes the segments and prompts of one session; `segments` holds what was made so far."""

    block: int
    segments: dict[int, Segment] = field(default_factory=dict)
    synthetic: int = 0  # tokens that no block id identifies
    _known: dict[tuple[Layer, tuple[OpaqueRun, ...]], int] = field(default_factory=dict)

    def prompt(
        self,
        ids: array[int],
        marks: Sequence[Mark],
        base: tuple[int, Sequence[Piece]] | None = None,
        keep: int = 0,
    ) -> Woven:
        """A prompt that keeps the first `keep` tokens of `base` (a turn's index and its resolved pieces).

        `marks` cover the tokens from `keep` on, without holes. Raises ValueError when the base is shorter than `keep`.
        """
        whole, cut = _leading(base[1], keep) if base else (0, ())
        made = [self.stretch(ids, mark) for mark in marks]
        append = cut + tuple(piece for pieces in made for piece in pieces)
        segments = tuple(pieces[0].segment if len(pieces) == 1 else None for pieces in made)
        if base is None or not whole:
            return Woven(Prompt(append), append, segments)
        return Woven(Prompt(append, base[0], whole), (*base[1][:whole], *append), segments)

    def stretch(self, ids: array[int], mark: Mark) -> list[Piece]:
        """The new pieces of a mark: one of identified tokens, one of the rest."""
        covered = min(mark.stop, max(mark.start, len(ids) * self.block))
        pieces = []
        if covered > mark.start:
            runs = runs_of(ids, self.block, mark.start, covered)
            pieces.append(Piece(self._opaque(mark.layer, runs), 0, covered - mark.start))
        if mark.stop > covered:
            pieces.append(Piece(self.unidentified(mark.layer, mark.stop - covered), 0, mark.stop - covered))
        return pieces

    def _opaque(self, layer: Layer, runs: tuple[OpaqueRun, ...]) -> int:
        id = self._known.get((layer, runs))
        if id is None:
            content = Opaque(self.block, runs)
            id = self._known[layer, runs] = self._add(layer, content.tokens, content)
        return id

    def unidentified(self, layer: Layer, tokens: int) -> int:
        """A new segment whose tokens occur nowhere else; its id."""
        self.synthetic += tokens
        return self._add(layer, tokens, None)

    def _add(self, layer: Layer, tokens: int, content: Opaque | None) -> int:
        id = len(self.segments)
        self.segments[id] = Segment(id, layer, tokens, content)
        return id


def _leading(pieces: Sequence[Piece], tokens: int) -> tuple[int, tuple[Piece, ...]]:
    """How many whole pieces the first `tokens` tokens hold, and the shortened piece behind them, if any."""
    for whole, piece in enumerate(pieces):
        if tokens < piece.tokens:
            rest = (Piece(piece.segment, piece.start, piece.start + tokens),) if tokens else ()
            return whole, rest
        tokens -= piece.tokens
    if tokens:
        raise ValueError(f"the base ends {tokens} tokens before what is to be kept of it")
    return len(pieces), ()


def marks(start: int, stop: int, bounds: Iterable[tuple[int, Layer]], rest: Layer) -> list[Mark]:
    """Cut `start ... stop` at `bounds`: each (end, layer) in ascending order names what lies before `end`."""
    found, at = [], start
    for end, layer in bounds:
        end = min(end, stop)
        if end > at:
            found.append(Mark(layer, at, end))
            at = end
    return [*found, Mark(rest, at, stop)] if stop > at else found
