"""The chunks of a reply, packed: 16 bytes each where a tuple of them takes a hundred. Runs have millions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from agentx.core import Chunk

UNTOLD = -1  # stands for the tokens of a chunk that the server did not tell


class Chunks(Sequence[Chunk]):
    """Equal to a tuple of the same chunks. `flat`: microseconds and tokens in turn, UNTOLD where they are None."""

    __slots__ = ("flat",)

    def __init__(self, flat: array[int]) -> None:
        self.flat = flat

    @staticmethod
    def of(chunks: Iterable[Chunk]) -> Chunks:
        return chunks if isinstance(chunks, Chunks) else Chunks.read([part for chunk in chunks for part in chunk])

    @staticmethod
    def read(flat: Sequence[int | None]) -> Chunks:
        """Of microseconds and tokens in turn. Raises ValueError for half a chunk, TypeError or OverflowError for what
        is no whole number of 64 bits."""
        if len(flat) % 2:
            raise ValueError("chunks: the last one has no tokens")
        return Chunks(array("q", [UNTOLD if part is None else part for part in flat]))

    @staticmethod
    def untold(micros: Sequence[int]) -> Chunks:
        """Chunks of which only the times are known."""
        flat = array("q", [UNTOLD]) * (2 * len(micros))
        flat[::2] = array("q", micros)
        return Chunks(flat)

    @overload
    def __getitem__(self, at: int) -> Chunk: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Chunk, ...]: ...
    def __getitem__(self, at: int | slice) -> Chunk | tuple[Chunk, ...]:
        return tuple(self)[at]

    def __len__(self) -> int:
        return len(self.flat) // 2

    def __iter__(self) -> Iterator[Chunk]:
        for micros, tokens in zip(self.flat[::2], self.flat[1::2], strict=True):
            yield Chunk(micros, None if tokens < 0 else tokens)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Chunks):
            return self.flat == other.flat
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
