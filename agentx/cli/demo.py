"""agentx demo: the whole path on this machine, twice, with nothing but a seed: what a cache's size does to agents.

Agents are generated, cut to what plays in seconds, and replayed over HTTP against the embedded engine, first with a
small cache and then with a larger one. All figures are of these two runs.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentx.cutting import CutReport
    from agentx.reporter.reporting import Report

EPILOG = """examples:
  agentx demo
  agentx demo --seed 3
  agentx demo -o demo/          keep the trace and both run folders, to look at them with inspect and report
"""

SESSIONS, TURNS, LANES = 8, 8, 4
SMALL, LARGE = 20_000, 200_000  # tokens of cache: fewer than all the contexts need, and more
SETS = (
    f"load.sessions={LANES}",
    "gaps.scale=0.02",
    "gaps.tree_idle_cap=500ms",
    "target.timing.prefill_token=15us",  # slower than the laptop's default, as a large model on a node is
    "target.timing.decode_step=1ms",  # faster, so that the demo ends soon: replies are the same in both runs
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the agents (default: %(default)s)")
    parser.add_argument("-o", "--out", metavar="DIR", help="keep the trace and the two run folders there")


def run(args: argparse.Namespace) -> int:
    from agentx.replayer.run import replay
    from agentx.reporter.reporting import report

    with _folder(args.out) as folder:
        trace, cut = _agents(folder, args.seed)
        _say(f"{cut.sessions} coding agents with {cut.turns} turns, {LANES} at a time, seed {args.seed}")
        reports = []
        for name, pool in (("small", SMALL), ("large", LARGE)):
            _say(f"replaying them against the embedded engine with a cache of {pool:,} tokens ...")
            sets = [*SETS, f"target.cache.pool={pool}"]
            reports.append(report(replay(trace, target="laptop", out=folder / name, sets=sets, progress=True)))
        print(text(reports[0], reports[1]))
    if args.out:
        _say(f"kept: agentx inspect {trace}, agentx report {folder / 'small'}, agentx report {folder / 'large'}")
    return 0


def _agents(folder: Path, seed: int) -> tuple[Path, CutReport]:
    from agentx import catalog
    from agentx.cutting import Limits, cut
    from agentx.generator.spec import load_spec
    from agentx.generator.write import generate

    spec = load_spec(catalog.resolve("workloads", "coding-agent"))
    whole = generate(spec, seed=seed, sessions=SESSIONS, out=folder / "whole.trace", name="coding-agent")
    trace = folder / "demo.trace"
    return trace, cut(whole, trace, Limits(turns=TURNS))


def text(small: Report, large: Report) -> str:
    """Two runs of the same turns side by side, and what the difference is."""
    from agentx.reporter.table import Lines, Table, as_text

    rows = tuple((name, before, after) for name, before, after in _rows(small, large))
    table = Table(("the same turns, the same engine", f"cache {SMALL:,}", f"cache {LARGE:,}"), rows)
    return as_text([table, Lines(tuple(_verdict(small, large)))])


def _rows(small: Report, large: Report) -> Iterator[tuple[str, str, str]]:
    def row(name: str, form: str, figures: list[float | None]) -> tuple[str, str, str]:
        before, after = ("unknown" if figure is None else format(figure, form) for figure in figures)
        return name, before, after

    both = [small.metrics, large.metrics]
    yield row("turns answered", ",d", [each.books.completed for each in both])
    yield row("prompt tokens reused, observed", ".1%", [each.reuse.by_request.share for each in both])
    yield row(
        "prompt tokens reused, ideal", ".1%", [each.reuse.ideal.share if each.reuse.ideal else None for each in both]
    )
    for name, percent in (("median", 50), ("p90", 90)):
        ttft = [None if each.latency.ttft is None else each.latency.ttft.at(percent) * 1e3 for each in both]
        yield row(f"time to first token, {name}, ms", ",.0f", ttft)
    jobs = [None if each.jobs.latency is None else each.jobs.latency.at(50) for each in both]
    yield row("time of a whole agent, median, s", ".2f", jobs)
    rate = [each.throughput.emitted.per_second(each.throughput.emitted.output) for each in both]
    yield row("output tokens per second", ",.0f", rate)


def _verdict(small: Report, large: Report) -> Iterator[str]:
    few, many = small.metrics.reuse.by_request.share, large.metrics.reuse.by_request.share
    ideal = small.metrics.reuse.ideal
    if few is None or many is None or ideal is None or ideal.share is None:
        yield "The server did not say what it reused, so there is nothing to compare."
        return
    yield (
        f"These agents send the same tokens again and again: an unlimited cache would spare {ideal.share:.0%} of "
        f"the prompt. A cache of {SMALL:,} tokens gave {few:.0%}, one of {LARGE:,} gave {many:.0%}."
    )
    yield "Figures of a model of SGLang's rules (engine rules: SGLang 0.5.23), not of a GPU."


@contextlib.contextmanager
def _folder(out: str | None) -> Iterator[Path]:
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="agentx-demo-") as name:
        yield Path(name)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
