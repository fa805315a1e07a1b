"""Rows of one session that are scattered over a file, put together without holding the file.

The first pass notes where each group's lines are, some 20 bytes a line, the second reads them again one group at a
time, in the order of the groups' first lines.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentx.recorder.imports.source import Line, lines


class Groups:
    """The lines of a file by the key that `key` gives each; lines of key None are groups of their own."""

    def __init__(self, path: Path, digest: Any, key: Callable[[Line], str | None]) -> None:
        self.path = path
        self._places: dict[object, array[int]] = {}  # offset, number, offset, number ... of each group
        for line in lines(path, digest):
            name = key(line)
            group: object = line.number if name is None else name
            self._places.setdefault(group, array("Q")).extend((line.offset, line.number))

    def __iter__(self) -> Iterator[list[Line]]:
        with self.path.open("rb") as file:
            for places in self._places.values():
                found = []
                for offset, number in zip(places[::2], places[1::2], strict=True):
                    file.seek(offset)
                    found.append(Line(number, offset, file.readline()))
                yield found

    def __len__(self) -> int:
        return len(self._places)
