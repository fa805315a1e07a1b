"""A folder of Weka sessions, played by agentx and by agentx-harness against the embedded engine, in its own process.

What is compared is told by the engine's log: requests in the window, how many were in flight for how much of it, and
how much of the prompts came from the cache. The window begins when the first measured request arrives; warm-up
requests, which ask for one token, are not in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agentx_harness import Peer, records, run_peer, scenario, summary
from processes import run

from agentx.reporter.reporting import report
from agentx.results import read_results

ROOT = Path(__file__).parents[1]
LANES = 4
AGENTX = [sys.executable, "-m", "agentx"]
ENV = {"PYTHONPATH": str(ROOT)}


class Way(NamedTuple):
    """How sessions are begun: the same in both tools' words."""

    name: str
    agentx: Sequence[str]
    harness: Sequence[str]


WAYS = (
    Way(
        "each session from its first turn, one warm-up turn a lane (the peer wants one)",
        ("--set", "start=null", "--set", "warmup.turns=1"),
        ("--trajectory-start-min-ratio", "0", "--trajectory-start-max-ratio", "0", "--warmup-requests-per-lane", "1"),
    ),
    Way("the scenario as it is (starts spread, 10 warm-up turns a lane)", (), ()),
    Way(
        "the scenario with starts at once",
        ("--set", "start.phase=burst"),
        ("--burst-phase-starts",),
    ),
)


@dataclass(frozen=True)
class Seen:
    """What the engine saw of one run in its window. `flight`: share of the time with 0, 1, 2 ... in flight."""

    turns: int
    warm: int
    seconds: float
    flight: tuple[float, ...]
    prompt: int
    cached: int
    output: int
    shortest: int  # tokens of the shortest and the longest prompt
    longest: int
    counters: tuple[float, float]  # prompt and cached tokens of the whole run, by the server's /metrics

    @property
    def mean_flight(self) -> float:
        return sum(at * share for at, share in enumerate(self.flight))


@contextlib.contextmanager
def engine(log: Path) -> Iterator[str]:
    """The URL of an embedded engine in a process of its own, with an empty cache."""
    command = [*AGENTX, "serve", "laptop", "--port", "0", "--log", str(log)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **ENV})
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+?:\d+", line)
        if found is None:
            raise SystemExit(f"agentx serve did not start: {line}")
        yield found[0]
    finally:
        process.terminate()
        process.communicate()


def counters(url: str) -> tuple[float, float]:
    """(prompt tokens, cached tokens) that the server has counted."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    prompt, cached = (
        sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))
        for name in ("sglang:prompt_tokens_total{", "sglang:cached_tokens_total{")
    )
    return prompt, cached


def seen(log: Path, begin: float, seconds: float, totals: tuple[float, float]) -> Seen:
    """Read the engine's log. `begin`: when the window begins, since the epoch."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    measured = [row for row in rows if begin - 1e-3 <= row["received"] < begin + seconds]
    edges = [(row["received"], 1) for row in measured] + [
        (row["received"] + row["end_seconds"], -1) for row in measured
    ]
    flight: dict[int, float] = {}
    at, live = begin, 0
    for when, change in [*sorted(edges), (begin + seconds, 0)]:
        until = min(max(when, begin), begin + seconds)
        flight[live] = flight.get(live, 0.0) + until - at
        at, live = until, live + change
    return Seen(
        turns=len(measured),
        warm=len(rows) - len(measured),
        seconds=seconds,
        flight=tuple(flight.get(count, 0.0) / seconds for count in range(max(flight) + 1)),
        prompt=sum(row["prompt_tokens"] for row in measured),
        cached=sum(sum(row["cached_tokens"].values()) for row in measured),
        output=sum(row["completion_tokens"] for row in measured),
        shortest=min((row["prompt_tokens"] for row in measured), default=0),
        longest=max((row["prompt_tokens"] for row in measured), default=0),
        counters=totals,
    )


def ours(folder: Path, way: Way, seconds: float, scratch: Path) -> tuple[Seen, str]:
    """agentx: import the folder, then play it under the AgentX plan; and what its report says was there to reuse."""
    trace, out, log = scratch / "weka.trace", scratch / "run", scratch / "engine.jsonl"
    run([*AGENTX, "import", "weka", str(folder), "-o", str(trace)], scratch / "import.txt", env=ENV)
    sets = ["--set", f"measure={seconds:g}s", "--set", "drain=30s", *way.agentx]
    with engine(log) as url:
        command = [*AGENTX, "replay", str(trace), "--plan", f"agentx-c{LANES}", "--target", url, "-o", str(out), *sets]
        run(command, scratch / "agentx.txt", env=ENV)
        totals = counters(url)
    results = read_results(out)
    began = min(attempt.sent for attempt in results.attempts if attempt.phase == "measure")
    ideal = report(results).metrics.reuse.ideal
    claim = "" if ideal is None or ideal.share is None else f"its ideal {ideal.share:.2%}"
    return seen(log, results.wall + began, seconds, totals), claim


def theirs(peer: Peer, folder: Path, way: Way, seconds: float, scratch: Path) -> tuple[Seen, str]:
    """agentx-harness on the folder itself; and its own theoretical hit rate."""
    out, log = scratch / "harness", scratch / "engine.jsonl"
    with engine(log) as url:
        command = peer.profile(url, "agentx", out, *scenario(folder, LANES, seconds, way.harness))
        run_peer(command, scratch / "harness.txt", scratch)
        totals = counters(url)
    began = min(record.start for record in records(out) if record.phase == "profiling")
    oracle = summary(out).get("theoretical_prefix_cache_hit", {}).get("avg")
    claim = "" if oracle is None else f"its theoretical hit {oracle:.2f}%"
    return seen(log, began, seconds, totals), claim


def compare(peer: Peer, folder: Path, seconds: float) -> Iterator[str]:
    """Lines of a markdown table, as the runs end."""
    yield (
        "| way | tool | turns/min | mean in flight | share with 0 / 1 / 2 / 3 / 4+ in flight | reuse in the window | "
        "of the whole run, by /metrics | in the window |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for way in WAYS:
        for tool in ("agentx", "agentx-harness"):
            with tempfile.TemporaryDirectory() as name:
                if tool == "agentx":
                    found, claim = ours(folder, way, seconds, Path(name))
                else:
                    found, claim = theirs(peer, folder, way, seconds, Path(name))
            yield row(way.name, tool, found, claim)


def row(way: str, tool: str, found: Seen, claim: str) -> str:
    shares = [*found.flight, *[0.0] * 5]
    flight = " / ".join(f"{share:.0%}" for share in (*shares[:4], sum(shares[4:])))
    reuse = f"{found.cached / found.prompt:.2%}" if found.prompt else "n/a"
    whole = f"{found.counters[1] / found.counters[0]:.2%}" if found.counters[0] else "n/a"
    told = f"{found.turns} turns, {found.prompt:,} tokens, prompts of {found.shortest:,} to {found.longest:,}"
    return (
        f"| {way} | {tool} | {found.turns * 60 / found.seconds:.1f} | {found.mean_flight:.2f} | {flight} | "
        f"{reuse}; {claim} | {whole} | {told}, {found.warm} requests outside |"
    )


def generated(folder: Path, sessions: int = 24) -> Path:
    """A generated trace as Weka sessions, by our own exporter."""
    trace, out = folder / "generated.trace", folder / "weka"
    made = [*AGENTX, "generate", "swe-coder-short", "--seed", "3", "--sessions", str(sessions), "-o", str(trace)]
    run(made, folder / "generate.txt", env=ENV)
    run([*AGENTX, "export", "weka", str(trace), "-o", str(out)], folder / "export.txt", env=ENV)
    return out
