"""agentx beside agentx-harness 1.0.12, in one run, on the same servers: what each client costs, how right its clock is.

    python benchmarks/against_agentx_harness.py [--peer .../bin/aiperf] [--only costs,clock,weka] [--weka FOLDER]
        [--seconds S] [--folder KEPT]

Without --peer (or $AGENTX_HARNESS) the peer is installed into a virtual environment in FOLDER, 1.1 GB. The parts:

  costs  whole commands, so start, load, records and summary are in: CPU per request is the slope between a small and a
         large run; the time to the first request and the peak memory are of the small run, with nothing cached. Both
         send as fast as they can, so agentx may well say that it was the bottleneck (exit code 5): no error here
  clock  time to first token as reported and as the server's log has it, and how many requests were really in flight
  weka   the same Weka sessions played by both (`beside_weka.py`)

Others use the machine too: what counts is the ratio within this run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import aiohttp
from agentx_harness import VERSION, Peer, peer, records, run_peer
from beside_weka import AGENTX, ENV, compare, generated
from known_server import Served, served, serving
from processes import Cost, run

from agentx.core import Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import EXIT_INVALID, EXIT_OK
from agentx.results import read_results
from agentx.trace import TraceWriter

TOKENS = 50  # of every reply
FIRST, EACH = 0.05, 0.01  # s of the server whose times are known
STREAMS = (16, 64, 256)
ROUNDS = 12  # requests of each stream in the clock's part; the first of each opens connections and is left out
PLAIN = ("--set", "gaps.scale=0", "--set", "salt=none")


class Case(NamedTuple):
    """A load that costs are taken of: `small` and `large` requests, `streams` at a time."""

    name: str
    streams: int
    small: int
    large: int
    bar: str


SHORT = Case("prompts of 100 tokens, replies of 50 chunks in one write, 64 streams", 64, 400, 6400, "1/10")
LONG = Case("prompts of 57k tokens on average (228 KB), 16 streams", 16, 400, 2000, "1/10")


def short_session(name: str, turns: int) -> Session:
    own = {1: Segment(1, "user", 100)}
    prompt = Prompt((Piece(1, 0, 100),))
    made = [Turn(at, 0, prompt, 100, Output(TOKENS), (at - 1,) if at else ()) for at in range(turns)]
    return Session(name, tuple(made), segments=own)


def long_session(name: str) -> Session:
    """40 turns from 12,032 to 101,888 tokens, all multiples of 64: other prompts the peer stores whole at each turn."""
    own = {1: Segment(1, "user", 12_032)}
    made = [Turn(0, 0, Prompt((Piece(1, 0, 12_032),)), 12_032, Output(64))]
    for at in range(1, 40):
        reply, result = 2 * at, 2 * at + 1
        own[reply], own[result] = Segment(reply, "assistant", 64), Segment(result, "tool_result", 2240)
        added = (Piece(reply, 0, 64), Piece(result, 0, 2240))
        made.append(Turn(at, 0, Prompt(added, at - 1, 2 * at - 1), 12_032 + 2304 * at, Output(64), (at - 1,)))
    return Session(name, tuple(made), segments=own)


def write(path: Path, sessions: Iterator[Session]) -> Path:
    with TraceWriter(path, Header(name=path.stem, scope=path.stem)) as writer:
        for each in sessions:
            writer.session(each)
    return path


class Measured(NamedTuple):
    """What one command cost, and what the server saw of it. `client`: CPU s before the report, where it tells."""

    cost: Cost
    log: list[Served]
    client: float = 0.0

    @property
    def first_request(self) -> float:
        """Seconds from its start to the first request that the server had read."""
        return min(each.read for each in self.log) - self.cost.started


def ours(trace: Path, case_streams: int, plays: int, url: str, scratch: Path, name: str) -> Measured:
    sets = ["--set", f"load.sessions={case_streams}", "--set", f"measure={{sessions: {plays}}}", *PLAIN]
    command = [*AGENTX, "replay", str(trace), "--target", url, "-o", str(scratch / name), *sets]
    served(url)
    cost = run(command, scratch / f"{name}.txt", env=ENV, codes=(EXIT_OK, EXIT_INVALID))
    end = read_results(scratch / name).end or {}
    return Measured(cost, served(url), end["cpu_seconds"])


def theirs(tool: Peer, options: Sequence[str], url: str, scratch: Path, name: str) -> Measured:
    served(url)
    cost = run_peer(tool.profile(url, "known", scratch / name, *options), scratch / f"{name}.txt", scratch)
    return Measured(cost, served(url))


def slope(small: Measured, large: Measured) -> float:
    """CPU milliseconds per request."""
    return (large.cost.cpu - small.cost.cpu) / (len(large.log) - len(small.log)) * 1e3


def slopes(what: str, mine: Sequence[Measured], other: Sequence[Measured], bar: str) -> Iterator[str]:
    """CPU per request of whole commands, and of the client proper."""
    client = (mine[1].client - mine[0].client) / (len(mine[1].log) - len(mine[0].log)) * 1e3
    yield ratio(f"CPU per request, {what}, ms", client, slope(*other), bar)
    yield ratio("the same with agentx's report of the run", slope(*mine), slope(*other), "")


def costs(tool: Peer, scratch: Path) -> Iterator[str]:
    """Lines of the table of costs."""
    yield "| what | agentx | agentx-harness | ratio | bar |"
    yield "|---|---|---|---|---|"
    with serving() as url:
        turns = 40
        trace = write(scratch / "short.trace", (short_session(f"s{n}", turns) for n in range(SHORT.large // turns)))
        mine = [
            ours(trace, SHORT.streams, count // turns, url, scratch, f"short-{count}")
            for count in (SHORT.small, SHORT.large)
        ]
        synthetic = ["--isl", "100", "--osl", str(TOKENS), "--concurrency", str(SHORT.streams)]
        synthetic += ["--extra-inputs", "ignore_eos:true", "--no-server-metrics"]
        other = [
            theirs(tool, [*synthetic, "--request-count", str(count)], url, scratch, f"their-short-{count}")
            for count in (SHORT.small, SHORT.large)
        ]
        yield from slopes(SHORT.name, mine, other, SHORT.bar)
        trace = write(scratch / "long.trace", (long_session(f"s{n}") for n in range(50)))
        folder = scratch / "long-weka"
        run([*AGENTX, "export", "weka", str(trace), "-o", str(folder)], scratch / "export.txt", env=ENV)
        mine = [
            ours(trace, LONG.streams, count // turns, url, scratch, f"long-{count}")
            for count in (LONG.small, LONG.large)
        ]
        replayed = ["--input-file", str(folder), "--custom-dataset-type", "weka_trace", "--ignore-trace-delays"]
        replayed += ["--concurrency", str(LONG.streams), "--no-server-metrics"]
        other = [
            theirs(tool, [*replayed, "--request-count", str(count)], url, scratch, f"their-long-{at}")
            for at, count in enumerate((LONG.small, LONG.small, LONG.large))
        ]
        yield from slopes(LONG.name, mine, other[1:], LONG.bar)
        cold, warm = other[:2]
        start = "start to the first request, 50 sessions x 40 turns to 100k tokens, s"
        yield ratio(start, mine[0].first_request, cold.first_request, "1 s")
        yield ratio("the same, the peer's data set cached", mine[0].first_request, warm.first_request, "1 s")
        yield ratio("peak memory of that run, MB (proportional)", mine[0].cost.peak, cold.cost.peak, "200 MB")
        yield f"| processes at a time | {mine[0].cost.processes} | {cold.cost.processes} | | |"


def ratio(what: str, mine: float, other: float, bar: str) -> str:
    return f"| {what} | {mine:.3g} | {other:.3g} | 1/{other / mine:.0f} | {bar} |"


class Clock(NamedTuple):
    """Seconds: mean reported and true time to first token; requests in flight, most and time-weighted mean."""

    reported: float
    true: float
    p99: float
    live: int
    mean_live: float
    rate: float


def clock_of(reported: Sequence[float], log: Sequence[Served], streams: int) -> Clock:
    """`reported` in the order in which requests were sent. The first of each stream are left out on both sides.

    How many were in flight and the rate are of the time in which every stream was at work.
    """
    kept, ordered = reported[streams:], sorted(log)[-len(reported) :]  # a client may ask something before its run
    rest, begin, stop = ordered[streams:], ordered[streams].read, ordered[-streams].read
    return Clock(
        reported=fmean(kept),
        true=fmean(each.first - each.read for each in rest),
        p99=sorted(kept)[int(0.99 * len(kept))],
        live=max(each.live for each in rest),
        mean_live=sum(max(0.0, min(stop, each.last) - max(begin, each.read)) for each in ordered) / (stop - begin),
        rate=sum(begin <= each.read < stop for each in ordered) / (stop - begin),
    )


def bare(url: str, streams: int, rounds: int, pipe: Connection) -> None:
    """The least that measures: aiohttp alone, one time per line of data, on connections that stay open."""
    body = b'{"model":"known","messages":[{"role":"user","content":"%b"}],"max_tokens":%d,"stream":true}'
    body %= (b" Abc" * 100, TOKENS)
    found: list[tuple[float, float]] = []

    async def lane(http: aiohttp.ClientSession) -> None:
        for _ in range(rounds):
            sent, times = time.monotonic(), list[float]()
            async with http.post(f"{url}/v1/chat/completions", data=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: "):
                        times.append(time.monotonic())
            found.append((sent, times[0] - sent))

    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            await asyncio.gather(*(lane(http) for _ in range(streams)))

    asyncio.run(main())
    pipe.send([ttft for _, ttft in sorted(found)])


def bare_clock(url: str, streams: int) -> Clock:
    served(url)
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=bare, args=(url, streams, ROUNDS, there))
    process.start()
    reported = here.recv()
    process.join()
    return clock_of(reported, served(url), streams)


def our_clock(url: str, streams: int, scratch: Path) -> Clock:
    trace = write(scratch / f"clock-{streams}.trace", (short_session(f"s{n}", ROUNDS) for n in range(streams)))
    measured = ours(trace, streams, streams, url, scratch, f"clock-{streams}")
    attempts = sorted(read_results(scratch / f"clock-{streams}").attempts, key=lambda each: each.sent)
    return clock_of([each.first - each.sent for each in attempts if each.first], measured.log, streams)


def their_clock(tool: Peer, url: str, streams: int, scratch: Path) -> Clock:
    options = ["--isl", "100", "--osl", str(TOKENS), "--concurrency", str(streams), "--no-server-metrics"]
    options += ["--extra-inputs", "ignore_eos:true", "--request-count", str(streams * ROUNDS)]
    measured = theirs(tool, options, url, scratch, f"their-clock-{streams}")
    told = [each.ttft for each in records(scratch / f"their-clock-{streams}") if each.ttft is not None]
    return clock_of(told, measured.log, streams)


def clock(tool: Peer, scratch: Path) -> Iterator[str]:
    """Lines of the table of time-stamps."""
    yield "| streams | client | TTFT reported - true, ms | its p99 | true, ms | in flight: most, mean | req/s |"
    yield "|---|---|---|---|---|---|---|"
    with serving(FIRST, EACH) as url:
        for streams in STREAMS:
            clocks = {
                "a bare aiohttp loop": bare_clock(url, streams),
                "agentx": our_clock(url, streams, scratch),
                "agentx-harness": their_clock(tool, url, streams, scratch),
            }
            for name, found in clocks.items():
                error = (found.reported - found.true) * 1e3
                yield (
                    f"| {streams} | {name} | {error:+.2f} | {found.p99 * 1e3:.1f} | {found.true * 1e3:.1f} | "
                    f"{found.live}, {found.mean_live:.0f} | {found.rate:.0f} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", default=os.environ.get("AGENTX_HARNESS"), help="aiperf in the peer's environment")
    parser.add_argument("--only", default="costs,clock,weka", help="which parts, with commas between")
    parser.add_argument("--weka", type=Path, help="a folder of Weka sessions to play too")
    parser.add_argument("--seconds", type=float, default=120.0, help="the window of each play of Weka sessions")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "agentx-against-harness")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    print(f"agentx beside agentx-harness {VERSION}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs", flush=True)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        scratch = Path(name)
        tool = peer(args.peer, args.folder, scratch)
        parts = {"costs": lambda: costs(tool, scratch), "clock": lambda: clock(tool, scratch)}
        parts["weka"] = lambda: weka(tool, scratch, args.weka, args.seconds)
        for part in args.only.split(","):
            print(f"\n## {part}\n", flush=True)
            for line in parts[part]():
                print(line, flush=True)


def weka(tool: Peer, scratch: Path, given: Path | None, seconds: float) -> Iterator[str]:
    folders = {"generated: 24 sessions of swe-coder-short, exported": generated(scratch)}
    if given is not None:
        folders[f"{given.name}: {len(list(given.glob('*.json')))} files"] = given
    for name, folder in folders.items():
        yield f"### {name}\n"
        yield from compare(tool, folder, seconds)
        yield ""


if __name__ == "__main__":
    main()
