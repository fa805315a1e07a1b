"""How exactly pauses are kept: the achieved gap minus the planned one, against a server that answers at once.

    python benchmarks/gap_fidelity.py [--sessions 16] [--turns 100] [--workers N]

Each session waits 20 to 180 ms between its turns. Two measures of the same turns: by the run's own record (sent, minus
the end of the turn before, minus the gap) and by the server's log on the same clock (this request read whole, minus the
last byte of the answer before written, minus the gap), which also holds the way there and back. How busy the machine
was is printed beside them: the share of both cores that others used, and how long the client waited for one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from known_server import Served, served, serving

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.run import replay
from agentx.results import RunResults
from agentx.trace import TraceWriter

MEAN, P99 = 1e-3, 5e-3  # s; the bars at 16 sessions
TOKENS = 20  # of every reply


def session(number: int, turns: int) -> Session:
    """Each turn's prompt has a length of its own in the whole trace, by which it is found in the server's log."""
    longest = 100 + (number + 1) * turns
    own = {1: Segment(1, "user", longest)}
    made = []
    for at in range(turns):
        tokens = 100 + number * turns + at
        gap = Gap("tool", 0.02 + 0.16 * ((number * 31 + at * 7) % 16) / 15)
        made.append(Turn(at, 0, Prompt((Piece(1, 0, tokens),)), tokens, Output(TOKENS), (at - 1,) if at else (), gap))
    return Session(f"s{number}", tuple(made), segments=own)


def own_errors(run: RunResults, gaps: dict[tuple[str, int], float]) -> Iterator[float]:
    ends = {(one.session, one.turn): one.end for one in run.attempts}
    for one in run.attempts:
        before = ends.get((one.session, one.turn - 1))
        if before is not None:
            yield one.sent - before - gaps[one.session, one.turn]


def server_errors(log: list[Served], sessions: list[Session], gaps: dict[tuple[str, int], float]) -> Iterator[float]:
    lengths = sorted((turn.isl, each.id, turn.index) for each in sessions for turn in each.turns)
    found = dict(
        zip((row[1:] for row in lengths), sorted((one for one in log if one.tokens == TOKENS), key=_bytes), strict=True)
    )
    for (name, turn), entry in found.items():
        if turn:
            yield entry.read - found[name, turn - 1].last - gaps[name, turn]


def _bytes(entry: Served) -> int:
    return entry.bytes


def told(label: str, errors: list[float]) -> str:
    errors = sorted(errors)
    p50, p99 = (errors[min(len(errors) - 1, int(share * len(errors)))] for share in (0.5, 0.99))
    shown = {"mean": fmean(errors), "p50": p50, "p99": p99, "max": errors[-1]}
    figures = ", ".join(f"{name} {value * 1e3:+.3f}" for name, value in shown.items())
    return f"{label:>24}: {figures} ms over {len(errors)} gaps"


def busy() -> float:
    """CPU seconds that the whole machine has used."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    sessions = [session(number, args.turns) for number in range(args.sessions)]
    gaps = {(each.id, turn.index): turn.gap.seconds for each in sessions for turn in each.turns}
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        path = Path(folder) / "gaps.trace"
        with TraceWriter(path, Header(name="gaps", scope="gaps")) as writer:
            for each in sessions:
                writer.session(each)
        before, began, times = busy(), time.monotonic(), os.times()
        sets = ["gaps.scale=1", f"load.sessions={args.sessions}", "measure=once"]
        run = replay(path, target=url, out=Path(folder) / "run", sets=sets, workers=args.workers)
        passed, after = time.monotonic() - began, os.times()
        log = served(url)
        own = sum(after[:4]) - sum(times[:4])
        others = max(0.0, busy() - before - own) / passed / (os.cpu_count() or 1)
        wait = max(end.get("cpu_wait") or 0.0 for end in run.ends)
        print(f"{args.sessions} sessions, workers: {args.workers}, {passed:.1f} s; others used {others:.0%} of")
        print(f"all cores, the client waited {wait:.2f} s for one; bars: mean {MEAN * 1e3:g} ms, p99 {P99 * 1e3:g} ms")
        print(told("by the run's own record", list(own_errors(run, gaps))))
        print(told("by the server's log", list(server_errors(log, sessions, gaps))))


if __name__ == "__main__":
    main()
