"""TraceLab: recorded rounds of Claude Code and Codex (JSON Lines), and the CSV that its session runner plays.

*Rounds.* A round's prompt has `prefix_tokens` that the provider had cached and `newly_append_tokens`; the former is a
cache's doing, not a property of the context, and is kept as what was observed cached. A prompt that is not shorter
than the one before keeps all of it (inferred); a shorter one is a compaction that kept the cached part. The pause is
the longest of the round's tools, which run side by side, or the time until the user's next message.

*Runner CSV.* A row's prompt is the first `prefix_len` tokens of the previous prompt and reply, then `input_len` new
ones; `tool_wait_after_ms` comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.core import Session
from agentx.frames import open_for_reading
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.running import Format
from agentx.recorder.imports.tracelab_csv import read as read_csv
from agentx.recorder.imports.tracelab_rounds import read as read_rounds
from agentx.trace import BOM


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The sessions of a file of either form, told apart by its first bytes."""
    with open_for_reading(path) as file:
        start = file.read(4096).removeprefix(BOM).lstrip()[:1]
    return (read_rounds if start in (b"{", b"[", b"") else read_csv)(path, books, digest)


def make_format() -> Format:
    """What `agentx import tracelab` reads."""
    return Format(
        name="tracelab",
        row="round",
        sessions=read,
        unknowable=(
            "text, token ids, and what sessions share: only lengths",
            "what a prompt really kept of the one before: lengths decide, and a cache's prefix where it shrank",
            "where messages begin; system prompt and tools apart: the first prompt's cached part is called system",
            "subagents (their rounds are not in the file), aborted calls, retries",
        ),
        endings=(".jsonl", ".csv"),
        fidelity=Fidelity("lengths", "start-end", "header", "server", "split"),
    )
