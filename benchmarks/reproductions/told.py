"""What the report says of the runs at concurrency 4: is the loss explained, and is a run called steady?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.reporter.table import Block, Heading, Lines, Table
from benchmarks.reproductions.cliff import FIRST_SEED
from benchmarks.reproductions.freeze import lanes
from benchmarks.reproductions.points import Answer, Figures, trace_of

CONFIGURATION = lanes(4)
RUNS = 10


@dataclass(frozen=True, slots=True)
class Told:
    """Figures out of the report of one run: tokens, and 1 or 0 for what it says or does not."""

    seed: int

    @property
    def key(self) -> str:
        return f"told-{CONFIGURATION.digest()}-{self.seed}"

    def answer(self, folder: Path) -> Figures:
        each = CONFIGURATION
        with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
            sets = [*each.sets, f"seed={self.seed}"]
            trace = trace_of(each, self.seed, folder)
            run = simulate(trace, plan=each.plan, target=each.target, out=Path(scratch) / "run", sets=sets)
            found = report(run)
        reuse, losses = found.metrics.reuse, found.losses
        return {
            "reuse": reuse.by_request.share or 0.0,
            "ideal": (reuse.ideal.share or 0.0) if reuse.ideal else 0.0,
            "lost": float(losses.total or 0),
            "evicted": float(losses.of("evicted") or 0),
            "unexplained": float(losses.of("unexplained") or 0),
            "not_stationary": float(any(each.kind == "not_stationary" for each in found.findings)),
        }


def jobs(count: int = RUNS) -> list[Told]:
    return [Told(FIRST_SEED + number) for number in range(count)]


def blocks(answers: Sequence[Answer[Told]]) -> list[Block]:
    if not answers:
        return []
    rows = tuple(
        (
            str(answer.job.seed),
            f"{answer.figures['reuse']:.1%}",
            f"{answer.figures['ideal']:.1%}",
            *(f"{answer.figures[name]:,.0f}" for name in ("lost", "evicted", "unexplained")),
            "not steady" if answer.figures["not_stationary"] else "steady",
        )
        for answer in answers
    )
    unsteady = sum(answer.figures["not_stationary"] > 0 for answer in answers)
    return [
        Heading("What the reports of these runs say"),
        Lines(
            (
                "Concurrency 4 without a host tier, by the report's own findings: how much of the loss to an unlimited "
                "cache its causes explain, and whether it calls the run steady. It calls "
                f"{unsteady} of {len(answers)} not steady: an hour of four sessions is one draw and no mean. Evictions "
                "explain the loss; unexplained would be what the report's shadow of the cache had kept. The shadow has "
                "the rules of the engine that made these runs, and only the run folder to go by: that this is enough "
                "is what the table shows, not that a server has these rules.",
            )
        ),
        Table(("seed", "reuse", "ideal", "tokens lost", "evicted", "unexplained", "halves"), rows),
    ]
