"""How fast a simulation is, and how much memory it takes: seconds of this machine for virtual time.

    python benchmarks/simulate_speed.py            an hour of 4 sessions at ~120k tokens; ten minutes of 1,000 sessions
    python benchmarks/simulate_speed.py --profile  the same under cProfile

Each case runs in a process of its own, so that peak memory is its own; the report is timed apart. Bars: an hour in 5 s,
a thousand sessions in 120 s and 4 GiB.
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import pstats
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter

SHARED = {1: Segment(1, "tools", 12_000), 2: Segment(2, "system", 4_000)}


@dataclass(frozen=True)
class Case:
    name: str
    target: str
    lanes: int
    seconds: int
    turns: int  # of a session
    begin: int  # tokens of the first prompt
    fresh: int  # new tokens of a turn
    reply: int
    gap: float
    sets: tuple[str, ...] = ()


CASES = [
    Case(
        "an hour, 4 sessions, ~120k tokens, a node", "sim-mi325x-glm-5.2-fp8", 4, 3600, 40, 100_000, 900, 400, 8.0,
        ("target.timing.prefill_token_context=0.5ns",),  # fast enough for some 600 turns
    ),
    Case(
        "an hour, 4 sessions, ~120k tokens, laptop", "laptop", 4, 3600, 40, 100_000, 700, 400, 20.0,
        ("target.cache.pool=600000",),
    ),
    Case(
        "ten minutes, 1,000 sessions, 20-60k tokens", "laptop", 1000, 600, 40, 20_000, 800, 200, 60.0,
        ("target.cache.pool=2000000", "target.cache.host.tokens=8000000", "target.scheduler.max_running=256"),
    ),
]  # fmt: skip


def sessions(case: Case, count: int) -> Iterator[Session]:
    for number in range(count):
        own = {10: Segment(10, "user", case.begin - 16_000)}
        turns = []
        for index in range(case.turns):
            own[100 + index] = Segment(100 + index, "assistant", case.reply)
            append = (Piece(1, 0, 12_000), Piece(2, 0, 4_000), Piece(10, 0, case.begin - 16_000))
            if index:
                own[500 + index] = Segment(500 + index, "tool_result", case.fresh)
                append = (Piece(99 + index, 0, case.reply), Piece(500 + index, 0, case.fresh))
            prompt = Prompt(append, index - 1 if index else None, 2 * index + 1 if index else 0)
            isl = case.begin + index * (case.reply + case.fresh)
            gap = Gap("tool", case.gap * (0.25 + (number * 7 + index * 13) % 16 / 10))
            after = (index - 1,) if index else ()
            turns.append(Turn(index, 0, prompt, isl, Output(case.reply), after, gap, reply=100 + index))
        yield Session(f"s{number}", tuple(turns), segments=own, shared=SHARED, scope="b")


def play(case: Case, profile: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "t.trace"
        with TraceWriter(trace, Header(name="bench", scope="b")) as writer:
            for session in sessions(case, max(20, case.lanes)):
                writer.session(session)
        sets = [f"load.sessions={case.lanes}", f"measure={case.seconds}s", "drain=0s", *case.sets]
        plan = Path(folder) / "p.yaml"
        plan.write_text("agentx: replay/1\n")
        profiler = cProfile.Profile()
        start, cpu = time.perf_counter(), time.process_time()
        if profile:
            profiler.enable()
        run = simulate(trace, plan=plan, target=case.target, out=Path(folder) / "run", sets=sets)
        profiler.disable()
        took, used = time.perf_counter() - start, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        found = report(run).document()
        reported = time.perf_counter() - start
        tokens = sum(attempt.prompt_tokens or 0 for attempt in run.attempts)
        mean = tokens / max(1, len(run.attempts)) / 1000
        print(
            f"{case.name:44} {took:6.1f} s ({used:.1f} of CPU), {peak:6.0f} MiB: "
            f"{len(run.attempts)} requests of {mean:.0f}k tokens, "
            f"{sum(attempt.completion_tokens or 0 for attempt in run.attempts):,} tokens out, "
            f"{len(found['findings'])} findings; report {reported:.1f} s",
            flush=True,
        )
        if profile:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(22)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--case", type=int, help="only this one, from 0")
    args = parser.parse_args()
    for case in CASES if args.case is None else [CASES[args.case]]:
        process = multiprocessing.get_context("spawn").Process(target=play, args=(case, args.profile))
        process.start()
        process.join()
        if process.exitcode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
