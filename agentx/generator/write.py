"""Generated sessions into a trace file, by one process or several: the bytes are the same.

Sessions are made and encoded in chunks; the chunks are written in order, and no more of them exist at one time than a
few for each worker, so memory does not grow with the number of sessions.
"""

from __future__ import annotations

import hashlib
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentx.core import Header, Segment, Session
from agentx.frames import encode
from agentx.generator.arrivals import arrival_times
from agentx.generator.realistic import Dresser, needed
from agentx.generator.sessions import scope_of, session
from agentx.generator.shared import Shared, shared_layers
from agentx.generator.spec import WorkloadSpec, load_spec, spec_text
from agentx.trace import TraceWriter, session_frames
from agentx.trace_lines import to_line

CHUNK = 16  # sessions that a worker makes at a time
MOST_WORKERS = 64  # more processes than that only wait for the one that writes
AHEAD = 4  # chunks for each worker that may wait to be written
JSON_ENDINGS = (".jsonl", ".json")


class Encoded(NamedTuple):
    """A session's frames, and the file's segments that it uses, by id."""

    shared: tuple[Segment, ...]
    frames: bytes


class Work(NamedTuple):
    """A chunk: the numbers of its sessions, and when they arrive."""

    first: int
    arrivals: tuple[float | None, ...]


class Maker:
    """Makes chunks of a trace; one in each process."""

    def __init__(self, spec: WorkloadSpec, seed: int, as_lines: bool) -> None:
        self.spec, self.seed, self.as_lines = spec, seed, as_lines
        self.shared: Shared = shared_layers(spec, seed)
        self.scope = scope_of(spec, seed)
        self.dresser = Dresser(seed) if spec.content == "realistic" else None

    def chunk(self, work: Work) -> list[Encoded]:
        return [self._one(work.first + place, arrival) for place, arrival in enumerate(work.arrivals)]

    def _one(self, index: int, arrival: float | None) -> Encoded:
        made = session(self.spec, self.seed, index, self.shared, self.scope, arrival)
        if self.dresser is not None:
            made = self.dresser.session(made)
        write = to_line if self.as_lines else encode
        return Encoded(_shared(made), b"".join(write(kind, body) for kind, body in session_frames(made)))


def _shared(made: Session) -> tuple[Segment, ...]:
    used = {piece.segment for turn in made.turns for piece in turn.prompt.append}
    return tuple(made.shared[id] for id in sorted(used - made.segments.keys()))


class EncodedWriter(TraceWriter):
    """Writes sessions that are encoded already; a shared segment before the session that is the first to need it."""

    def encoded(self, made: Encoded) -> None:
        for segment in made.shared:
            self.segment(segment)
        self._file.write_bytes(made.frames)
        self.sessions += 1


def generate(
    spec: WorkloadSpec,
    *,
    seed: int,
    sessions: int | None = None,
    out: Path | str,
    name: str = "generated",
    workers: int = 1,
    progress: bool = False,
) -> Path:
    """Write a trace of `sessions` sessions (None: as many as the spec says) to `out`, and return its path.

    The bytes depend on nothing but the spec, the seed, the number of sessions and the name. `progress` shows a bar on
    stderr if that is a terminal. Raises BadInput for a spec that leaves no room for a turn, before the file is touched,
    and WriteFailed when the disk is full; what was written stays readable.
    """
    count = spec.sessions if sessions is None else sessions
    workers = max(1, min(workers, -(-count // CHUNK), MOST_WORKERS))
    maker = Maker(spec, seed, Path(out).suffix in JSON_ENDINGS)
    work = _chunks(spec, seed, count)
    made = (each for chunk in work for each in maker.chunk(chunk)) if workers == 1 else _parallel(maker, work, workers)
    writer = EncodedWriter(out, header(spec, seed, name))
    with writer:
        for each in _bar(made, count) if progress else made:
            writer.encoded(each)
    return Path(out)


def _chunks(spec: WorkloadSpec, seed: int, count: int) -> Iterator[Work]:
    times = arrival_times(spec.arrivals, seed)
    return (Work(first, tuple(islice(times, min(CHUNK, count - first)))) for first in range(0, count, CHUNK))


def _parallel(maker: Maker, work: Iterator[Work], workers: int) -> Iterator[Encoded]:
    """The chunks' sessions in order, made by `workers` processes."""
    start = (spec_text(maker.spec), maker.seed, maker.as_lines)
    waiting: deque[Future[list[Encoded]]] = deque()
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=start) as pool:
        try:
            for chunk in work:
                waiting.append(pool.submit(_chunk, chunk))
                if len(waiting) > workers * AHEAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_maker: Maker | None = None  # of this worker process


def _begin(text: str, seed: int, as_lines: bool) -> None:
    global _maker
    _maker = Maker(load_spec("the spec", text=text), seed, as_lines)


def _chunk(work: Work) -> list[Encoded]:
    if _maker is None:
        raise RuntimeError("a worker that did not begin")
    return _maker.chunk(work)


def header(spec: WorkloadSpec, seed: int, name: str) -> Header:
    """What a generated trace says of itself: the resolved spec, with which it can be made again."""
    text = spec_text(spec)
    digest = hashlib.sha256(text.encode()).hexdigest()
    provenance = {"generator": "workload/1", "spec": text, "spec_sha256": digest, "seed": seed}
    if spec.content == "realistic":
        provenance["faker"] = needed()
        return Header(name=name, scope=scope_of(spec, seed), content="text", provenance=provenance)
    return Header(name=name, scope=scope_of(spec, seed), provenance=provenance)


def _bar(made: Iterator[Encoded], count: int) -> Iterator[Encoded]:
    from tqdm import tqdm

    # disable=None: no bar without a terminal
    yield from tqdm(made, total=count, unit=" sessions", file=sys.stderr, disable=None)
