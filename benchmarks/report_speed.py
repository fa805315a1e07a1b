"""What a report of many results costs: CPU seconds, peak memory, and the size of its page.

    python benchmarks/report_speed.py                     100,000 results
    python benchmarks/report_speed.py --results 20000     fewer, to see that it is linear
    python benchmarks/report_speed.py --profile           the same under cProfile
    python benchmarks/report_speed.py --aiperf            as many rows that AIPerf wrote, of 100 chunks each

The run folder is made here: a trace of short sessions that grow to some 6,000 tokens, and the results that a server
with an unlimited cache would have given to 64 lanes, written with the library's own writer. Report and page are made in
a process of their own each, so that peak memory is its own. Bars: 20 s, 1 GiB, 8 MB.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import os
import pstats
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentx.core import Attempt, Cached, Chunk, Gap, Header, Output, Piece, Play, Prompt, Sample, Segment, Session, Turn
from agentx.pages.run_page import run_page
from agentx.reporter.foreign import read_run
from agentx.reporter.reporting import report
from agentx.results import ResultsWriter, sha256_of
from agentx.trace import TraceWriter

TURNS, LANES = 20, 64
SYSTEM, FIRST, FRESH, REPLY = 1_500, 500, 150, 50  # tokens
SHARED = {1: Segment(1, "system", SYSTEM)}
CHUNKS = 10  # of a reply


def sessions(count: int) -> Iterator[Session]:
    for number in range(count):
        own = {10: Segment(10, "user", FIRST)}
        turns = []
        for index in range(TURNS):
            own[100 + index] = Segment(100 + index, "assistant", REPLY)
            append = (Piece(1, 0, SYSTEM), Piece(10, 0, FIRST))
            if index:
                own[500 + index] = Segment(500 + index, "tool_result", FRESH)
                append = (Piece(99 + index, 0, REPLY), Piece(500 + index, 0, FRESH))
            prompt = Prompt(append, index - 1 if index else None, 2 * index if index else 0)
            after = (index - 1,) if index else ()
            turns.append(Turn(index, 0, prompt, isl(index), Output(REPLY), after, Gap("tool", 1.0), reply=100 + index))
        yield Session(f"s{number}", tuple(turns), segments=own, shared=SHARED, scope="b")


def isl(turn: int) -> int:
    return SYSTEM + FIRST + turn * (REPLY + FRESH)


def make(folder: Path, count: int) -> None:
    """A run folder of `count` sessions."""
    folder.mkdir()
    with TraceWriter(folder / "trace.agx", Header(name="many", scope="b")) as writer:
        for session in sessions(count):
            writer.session(session)
    settings = {
        "plan": {"wire": "chat", "salt": "run", "history": "recorded", "load": {"sessions": LANES}},
        "salt": "x",
        "template": {"start": 0, "per_message": 0},
        "target": {"kind": "engine", "name": "made", "gpus": 8, "cache": {"pool": 400_000}, "price": {"gpu_hour": 2.0}},
        "trace": {"name": "many", "path": str(folder / "trace.agx"), "sha256": sha256_of(folder / "trace.agx")},
    }
    writer = ResultsWriter(folder, settings, 1_700_000_000.0)
    ready = [0.01 * lane for lane in range(LANES)]
    records: list[tuple[float, Attempt | Play | Sample]] = []
    for number in range(count):
        lane = min(range(LANES), key=ready.__getitem__)
        began = at = ready[lane]
        for turn in range(TURNS):
            one = attempt(number, turn, lane, at)
            records.append((one.end or at, one))
            at = (one.end or at) + 1.0
        ready[lane] = at
        ended = at - 1.0
        records.append((ended, Play(f"s{number}", 0, lane, "done", TURNS, TURNS, TURNS, began, ended)))
    end = max(at for at, _ in records)
    records += [(at, Sample(at, "one", counters(at / end * count))) for at in range(0, int(end) + 5, 5)]
    for _, record in sorted(records, key=lambda pair: pair[0]):
        if isinstance(record, Attempt):
            writer.attempt(record)
        elif isinstance(record, Play):
            writer.play(record)
        else:
            writer.sample(record)
    writer.end("done", end, {"window": [0.0, end]})


def counters(done: float) -> dict[str, float]:
    """The counters when so many sessions are through."""
    prompt = sum(isl(turn) for turn in range(TURNS))
    cached = SYSTEM + sum(isl(turn - 1) for turn in range(1, TURNS))
    return {"prefill_input": done * (prompt - cached), "prefill_device_hit": done * cached}


def attempt(number: int, turn: int, lane: int, sent: float) -> Attempt:
    ttft = 0.05 + (number * 7 + turn * 13) % 50 / 100
    step = 0.1 + (number + turn) % 5 / 100
    times = [ttft + step * chunk for chunk in range(CHUNKS)]
    cached = isl(turn - 1) if turn else (SYSTEM if number else 0)
    return Attempt(
        session=f"s{number}", turn=turn, play=0, thread=0, lane=lane, due=sent, sent=sent, first=sent + times[0],
        last=sent + times[-1], end=sent + times[-1], status=200, isl=isl(turn), osl=REPLY, prompt_tokens=isl(turn),
        completion_tokens=REPLY, cached=Cached(total=cached), queue_seconds=ttft / 4,
        chunks=tuple(Chunk(round(at * 1e6), REPLY // CHUNKS) for at in times),
    )  # fmt: skip


def make_aiperf(folder: Path, count: int) -> None:
    """The same sessions as AIPerf's rows, a chunk for each token of replies twice as long."""
    folder.mkdir()
    with (folder / "profile_export.jsonl").open("w") as file:
        for number in range(count):
            sent = 1.0 * number
            for turn in range(TURNS):
                one = attempt(number, turn, number % LANES, sent)
                file.write(json.dumps(row(one), separators=(",", ":")) + "\n")
                sent = (one.end or sent) + 1.0


def row(one: Attempt) -> dict[str, Any]:
    began, ttft = 1_800_000_000_000_000_000 + round(one.sent * 1e9), one.chunks[0].micros / 1000
    gaps = [10.0 + number % 7 / 8 for number in range(2 * REPLY - 1)]
    latency = ttft + sum(gaps)
    name = f"{one.session}-0000-4000-8000-000000000000"
    metadata = {
        "x_request_id": f"{name}-{one.turn}", "x_correlation_id": name, "conversation_id": one.session,
        "turn_index": one.turn, "source_kind": "weka_main", "credit_issued_ns": began,
        "request_start_ns": began + 10**6,
        "request_ack_ns": began + 2 * 10**6, "request_end_ns": began + 10**6 + round(latency * 1e6),
        "worker_id": f"worker_{one.lane % 4}", "benchmark_phase": "profiling", "was_cancelled": False, "agent_depth": 0,
        "root_correlation_id": name,
    }  # fmt: skip
    times = {"time_to_first_token": ttft, "inter_chunk_latency": gaps, "request_latency": latency}
    times |= {f"http_req_{part}": 1.5 for part in ("blocked", "connecting", "sending", "waiting", "receiving", "total")}
    tokens = {
        "input_sequence_length": one.isl, "output_sequence_length": 2 * REPLY, "usage_prompt_tokens": one.isl,
        "usage_completion_tokens": 2 * REPLY, "usage_prompt_cache_read_tokens": one.cached.tokens if one.cached else 0,
    }  # fmt: skip
    units = ((times, "ms"), (tokens, "tokens"), ({"osl_mismatch_diff_pct": 0.0}, "%"))
    metrics = {name: {"value": value, "unit": unit} for held, unit in units for name, value in held.items()}
    return {"metadata": metadata, "metrics": metrics}


def measure(what: str, work: Callable[[], object], profile: bool) -> None:
    """Run in a process of its own."""
    profiler = cProfile.Profile()
    begun, cpu = time.perf_counter(), time.process_time()
    found = profiler.runcall(work) if profile else work()
    spent, wall = time.process_time() - cpu, time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    size = f", {len(found.encode()) / 1e6:.2f} MB" if isinstance(found, str) else ""
    print(f"{what:<16} {spent:6.1f} s of CPU, {wall:6.1f} s of wall, peak {peak:5.0f} MiB{size}", flush=True)
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


def summary(folder: Path) -> Callable[[], str]:
    return lambda: report(folder).summary()


def page(folder: Path) -> Callable[[], str]:
    def work() -> str:
        results = read_run(folder)
        return run_page(report(results), results)

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--aiperf", action="store_true")
    args = parser.parse_args()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        maker = context.Process(target=make_aiperf if args.aiperf else make, args=(folder, args.results // TURNS))
        maker.start()
        maker.join()
        print(f"{args.results // TURNS * TURNS:,} results; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        for what, work in (("report", summary(folder)), ("report and page", page(folder))):
            process = context.Process(target=measure, args=(what, work, args.profile))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
