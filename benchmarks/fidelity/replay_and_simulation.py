"""The same plan replayed over HTTP against the embedded engine, and simulated: how far apart are they?

    python benchmarks/fidelity/replay_and_simulation.py

Both see one engine, so what differs is what a network, a client and two processes on one machine add: milliseconds,
and with them the order in which requests meet. Bars: reuse equal where traffic is sequential; within a point of reuse
and 5 % of output tokens per second where it is parallel.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from agentx.core import Attempt
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.replayer.plan import load_plan
from agentx.replayer.run import replay
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.results import RunResults

COMMON = ("recycle=false", "gaps={scale: 0.02, tree_idle_cap: 500ms}")
CASES = (
    # what, keys
    ("one session, pool 60,000", ("load.sessions=1", "measure={sessions: 6}", "target.cache.pool=60000")),
    ("4 sessions, all fit", ("load.sessions=4", "measure={sessions: 12}", "target.cache.pool=400000")),
    ("4 sessions, pool 60,000", ("load.sessions=4", "measure={sessions: 12}", "target.cache.pool=60000")),
    ("8 sessions, pool 80,000", ("load.sessions=8", "measure={sessions: 16}", "target.cache.pool=80000")),
    (
        "4 sessions from the middle, warm, 20 s",
        ("load.sessions=4", "start={min: 0.25, max: 0.75}", "warmup.turns=3", "measure=20s", "target.cache.pool=80000"),
    ),
)


class Figures(NamedTuple):
    requests: int
    reuse: float
    rate: float


def figures(run: RunResults) -> Figures:
    found = report(run).metrics.throughput
    done = [each for each in run.attempts if each.ok and each.phase == "measure"]
    prompt = sum(each.prompt_tokens or 0 for each in done)
    rate = found.emitted.per_second(found.emitted.output) or 0.0
    return Figures(len(done), sum(cached(each) for each in done) / prompt, rate)


def cached(attempt: Attempt) -> int:
    return (attempt.cached.total or 0) if attempt.cached else 0


def equal(one: RunResults, other: RunResults) -> int:
    """Requests with the same cached tokens in both."""
    by_turn = [
        {(each.session, each.play, each.turn, each.phase): cached(each) for each in run.attempts}
        for run in (one, other)
    ]
    return sum(by_turn[0][key] == by_turn[1].get(key) for key in by_turn[0])


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = generate(
            load_spec(Path(__file__).parents[2] / "workloads/coding-agent.yaml"), seed=3, out=folder / "t.trace"
        )
        print(f"{'':40} {'requests':>9} {'reuse':>15} {'points':>7} {'tok/s':>15} {'':>7}  same cached tokens")
        for number, (what, sets) in enumerate(CASES):
            runs = [
                play(trace, plan=load_plan(), out=folder / f"{number}{play.__name__}", sets=[*COMMON, *sets], salt="s")
                for play in (replay, simulate)
            ]
            one, other = map(figures, runs)
            print(
                f"{what:40} {one.requests:4} {other.requests:4} {one.reuse:7.2%} {other.reuse:7.2%} "
                f"{100 * (other.reuse - one.reuse):+7.2f} {one.rate:7.1f} {other.rate:7.1f} "
                f"{other.rate / one.rate - 1:+7.1%}  {equal(*runs)} of {len(runs[0].attempts)}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
