"""CSV sources, line by line: one row a line, CRLF or LF, with the place of every mistake."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.imports.source import Line, lines
from agentx.trace import BOM

MAX_TOKENS = 1 << 40
Cells = dict[str, str]


def rows(path: Path, digest: Any, columns: Sequence[str]) -> Iterator[tuple[int, Cells]]:
    """The rows of a CSV file with their line numbers, each a map from column to text.

    Raises BadInput when the first line lacks one of `columns`, for rows of another width, and for what is not text.
    """
    names: list[str] | None = None
    for line in lines(path, digest):
        cells = cells_of(line, path)
        if names is None:
            names = header(cells, columns, path, line.number)
        else:
            yield line.number, named(names, cells, path, line.number)


def cells_of(line: Line, path: Path) -> list[str]:
    """The cells of one line. Raises BadInput for what is not UTF-8, or a quoted cell that the line does not close."""
    try:
        text = line.data.removeprefix(BOM if line.number == 1 else b"").decode()
        return [cell.strip() for cell in next(csv.reader([text.rstrip("\r\n")], strict=True), [])]
    except UnicodeDecodeError:
        raise BadInput("this line is not UTF-8 text", file=path, line=line.number) from None
    except csv.Error as error:
        raise BadInput(f"not a row of CSV: {error}", file=path, line=line.number) from None


def header(cells: list[str], columns: Sequence[str], path: Path, number: int) -> list[str]:
    """The names of the columns. Raises BadInput when one of `columns` is missing or one occurs twice."""
    missing = [name for name in columns if name not in cells]
    if missing:
        found = ", ".join(cells)
        raise BadInput(
            f"the first line lacks the column {missing[0]!r}, it has: {found:.80}",
            file=path,
            line=number,
            hint=f"the columns are {', '.join(columns)}",
        )
    if len(set(cells)) < len(cells):
        raise BadInput("a column's name occurs twice", file=path, line=number)
    return cells


def named(names: list[str], cells: list[str], path: Path, number: int) -> Cells:
    if len(cells) != len(names):
        raise BadInput(f"the row has {len(cells)} cells, the first line {len(names)}", file=path, line=number)
    return dict(zip(names, cells, strict=True))


def whole(cells: Cells, name: str, path: Path, number: int, high: int = MAX_TOKENS) -> int:
    """A cell as a whole number from 0 to `high`. Raises BadInput with the value and the place."""
    text = cells[name]
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
    if value is None and (real := _real(text)) is not None and real == int(real) and real >= 0:
        value = int(real)  # pandas writes whole numbers as 12.0 where a column has holes
    if value is None or value > high:
        raise BadInput(f"{name}: {text[:40]!r} is not a whole number from 0 to {high}", file=path, line=number)
    return value


def number(cells: Cells, name: str, path: Path, line: int) -> float | None:
    """A cell as a number of at least 0, None when it is empty or not there. Raises BadInput with the place."""
    text = cells.get(name, "")
    if not text:
        return None
    value = _real(text)
    if value is None or not 0 <= value <= 1e18:
        raise BadInput(f"{name}: {text[:40]!r} is not a number of at least 0", file=path, line=line)
    return value


def _real(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
