"""Generated sessions into a trace file, one at a time."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from agentx.core import Header, Session
from agentx.generator.sessions import scope_of
from agentx.generator.sessions import sessions as made_of
from agentx.generator.spec import WorkloadSpec, spec_text
from agentx.trace import TraceWriter


def generate(
    spec: WorkloadSpec,
    *,
    seed: int,
    sessions: int | None = None,
    out: Path | str,
    name: str = "generated",
    progress: bool = False,
) -> Path:
    """Write a trace of `sessions` sessions (None: as many as the spec says) to `out`, and return its path.

    The bytes depend on nothing but the arguments. `progress` shows a bar on stderr if that is a terminal. Raises
    BadInput, before the file is touched, for a spec that leaves no room for a turn, and WriteFailed when the disk is
    full; what was written stays readable.
    """
    count = spec.sessions if sessions is None else sessions
    made = made_of(spec, seed, count)
    with TraceWriter(out, header(spec, seed, name)) as writer:
        for each in _bar(made, count) if progress else made:
            writer.session(each)
    return Path(out)


def header(spec: WorkloadSpec, seed: int, name: str) -> Header:
    """What a generated trace says of itself: the resolved spec, with which it can be made again."""
    text = spec_text(spec)
    digest = hashlib.sha256(text.encode()).hexdigest()
    provenance = {"generator": "workload/1", "spec": text, "spec_sha256": digest, "seed": seed}
    return Header(name=name, scope=scope_of(spec, seed), provenance=provenance)


def _bar(made: Iterable[Session], count: int) -> Iterable[Session]:
    from tqdm import tqdm

    # disable=None: no bar without a terminal
    return tqdm(made, total=count, unit=" sessions", file=sys.stderr, disable=None)
