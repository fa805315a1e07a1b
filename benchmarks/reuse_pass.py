"""Possible and ideal reuse of a trace, and the capacity curve: turns per second, beside a bare walk over its pieces.

    python benchmarks/reuse_pass.py [--sessions 400]

Sessions of 60 turns that grow by 2,900 tokens a turn from 15k to 186k, about 100k tokens on average, are written to a
trace and read back. Prints the rate of each pass, its ratio to the bare walk (every piece of every prompt touched
once), whether twice the sessions cost twice the time, and the peak memory.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from agentx.capacity import Curve, capacity_curve
from agentx.core import Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.reuse import ideal, possible, possible_by_turn
from agentx.trace import TraceWriter, read_trace

TURNS = 60
SHARED = {1: Segment(1, "tools", 12_000), 2: Segment(2, "system", 3_000)}


def session(number: int) -> Session:
    own: dict[int, Segment] = {}
    turns = []
    for index in range(TURNS):
        result, reply = 100 + 2 * index, 101 + 2 * index
        own[result], own[reply] = Segment(result, "tool_result", 2_500), Segment(reply, "assistant", 400)
        head = (Piece(1, 0, 12_000), Piece(2, 0, 3_000)) if index == 0 else (Piece(reply - 2, 0, 400),)
        base, keep = (None, 0) if index == 0 else (index - 1, 2 * index + 1)
        isl = 15_000 + 2_500 + 2_900 * index
        turns.append(
            Turn(index, 0, Prompt((*head, Piece(result, 0, 2_500)), base, keep), isl, Output(400), reply=reply)
        )
    return Session(f"s{number}", tuple(turns), segments=own, shared=SHARED)


def bare(path: Path) -> int:
    return sum(piece.stop - piece.start for s in read_trace(path) for i in range(len(s.turns)) for piece in s.pieces(i))


def curve(sessions: Iterable[Session]) -> Curve:
    return capacity_curve(possible_by_turn(sessions))


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=400)
    count = parser.parse_args().sessions
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for factor in (1, 2):
            paths[factor] = Path(folder) / f"{factor}.trace"
            with TraceWriter(paths[factor], Header("bench", "bench")) as trace:
                for number in range(count * factor):
                    trace.session(session(number))
        base = timed(lambda: bare(paths[1]))
        turns = count * TURNS
        print(f"{turns:,} turns; reading and a bare walk: {turns / base:,.0f} turns/s")
        for name, work in (("possible", possible), ("ideal", ideal), ("possible and curve", curve)):
            once, twice = (timed(lambda path=path, work=work: work(read_trace(path))) for path in paths.values())
            print(
                f"{name:18} {turns / once:,.0f} turns/s, {once / base:.2f}x the bare walk; "
                f"twice the sessions cost {twice / once:.2f}x"
            )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
