"""Azure LLM inference CSV (`TIMESTAMP,ContextTokens,GeneratedTokens`): each row is a session of one turn.

Times are calendar times; arrivals count from the first row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from agentx.core import Output, Session, Turn
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.growth import Growth
from agentx.recorder.imports.running import Format, note_unknown
from agentx.recorder.imports.tables import rows, whole

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The rows of a file as sessions. Raises BadInput, with the line, for what is none."""
    zero: float | None = None
    for line, cells in rows(path, digest, COLUMNS):
        at = moment(cells["TIMESTAMP"], path, line)
        zero = at if zero is None else zero
        books.note("row before the first one in time: arrives at 0", at < zero)
        context = Growth()
        isl, out = (whole(cells, name, path, line) for name in COLUMNS[1:])
        context.add("user", isl)
        turn = Turn(0, 0, context.prompt(0), isl, Output(out))
        note_unknown(cells, frozenset(COLUMNS), books)
        for account in (books.rows, books.sessions):
            account.read += 1
            account.used += 1
        yield Session(f"row-{line}", (turn,), segments=context.segments, arrival=max(0.0, round(at - zero, 6)))


def moment(text: str, path: Path, line: int) -> float:
    """Seconds of a calendar time; fractions have up to nine digits. No zone is read as UTC. Raises BadInput."""
    found = _TIME.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        whole_seconds = datetime.fromisoformat(found[1] + (found[3] or "+00:00").replace("Z", "+00:00"))
    except ValueError:
        message = f"TIMESTAMP: {text[:40]!r} is not a time such as 2023-11-16 18:17:03.9799600"
        raise BadInput(message, file=path, line=line) from None
    return whole_seconds.astimezone(timezone.utc).timestamp() + float(f"0.{found[2] or 0}")


def make_format() -> Format:
    """What `agentx import azure` reads."""
    return Format(
        name="azure",
        row="row",
        sessions=read,
        unknowable=(
            "text, token ids, and what prompts share: only lengths",
            "which rows belong to one session: each is a session of one turn",
            "how long replies took; models; reasoning tokens; cached tokens; failures",
        ),
        endings=(".csv",),
        fidelity=Fidelity("lengths", "start-only", "none", "server", "none"),
    )
