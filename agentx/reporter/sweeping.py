"""A sweep: the same work simulated with other values of some keys, as one table, one document and one plot.

Every point has the words of the same salt, so that what differs comes from the knobs. Points run in several processes;
the figures are those of each run's own report, whose folders stay.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentx import catalog
from agentx.errors import AgentxError, BadInput
from agentx.plots import Axis, Panel, Series, svg
from agentx.replayer.order import plan_of
from agentx.replayer.plan import Plan, split_sets
from agentx.replayer.simulate import simulate
from agentx.replayer.sweep import Knob, Point, knob_of, points_of
from agentx.reporter.reporting import Report, report
from agentx.reporter.table import Heading, Lines, Table, as_text
from agentx.reporter.text import number, share
from agentx.results import RunResults, read_results

SCHEMA = "agentx/sweep/1"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a sweep looks at. Shares 0 ... 1, tokens per second and GPU, seconds; None: the run does not tell."""

    requests: int
    failed: int
    reuse: float | None
    ideal_reuse: float | None
    output_per_gpu: float | None
    ttft_p50: float | None
    ttft_p90: float | None
    tpot_p50: float | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """`rows` are in the order of the points: settings by key, the run's folder, its figures."""

    knobs: tuple[Knob, ...]
    rows: tuple[tuple[Point, str, Figures], ...]
    about: str
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """One table for a terminal."""
        columns = (
            *(knob.key for knob in self.knobs),
            *("requests", "reuse", "ideal", "out tok/s/GPU", "TTFT p50, s", "p90, s", "TPOT p50, ms"),
        )
        rows = tuple((*(value for _, value in point.settings), *_cells(each)) for point, _, each in self.rows)
        notes = ("every figure is of a model, simulated in virtual time", *self.notes)
        return as_text([Heading(f"agentx sweep: {self.about}"), Lines(notes), Table(columns, rows)])

    def document(self) -> dict[str, Any]:
        """Plain values, ready for json.dumps."""
        return {
            "schema": SCHEMA,
            "about": self.about,
            "notes": list(self.notes),
            "knobs": [{"key": knob.key, "values": list(knob.values)} for knob in self.knobs],
            "points": [
                {"settings": dict(point.settings), "run": run, "figures": asdict(each)}
                for point, run, each in self.rows
            ],
        }

    def plot(self) -> str:
        """SVG: reuse, output per GPU and p90 TTFT over the first knob, a line for each value of the others."""
        first = self.knobs[0]
        lines: dict[str, dict[str, Figures]] = {}
        for point, _, each in self.rows:
            (_, value), *others = point.settings
            name = ", ".join(f"{key.rpartition('.')[2]} {other}" for key, other in others) or "all"
            lines.setdefault(name, {})[value] = each
        panels = [
            Panel(label, tuple(_series(name, line, first.values, field, times) for name, line in lines.items()))
            for label, field, times in (
                ("reuse of prompt tokens, %", "reuse", 100.0),
                ("output, tokens/s per GPU", "output_per_gpu", 1.0),
                ("TTFT p90, s", "ttft_p90", 1.0),
            )
        ]
        return svg(self.about, Axis(first.key, first.values), panels)


def _series(name: str, line: dict[str, Figures], values: Sequence[str], field: str, times: float) -> Series:
    found = [getattr(line[value], field) if value in line else None for value in values]
    return Series(name, tuple(None if one is None else one * times for one in found))


def _cells(each: Figures) -> tuple[str, ...]:
    tpot = None if each.tpot_p50 is None else each.tpot_p50 * 1e3
    requests = f"{each.requests}" + (f" ({each.failed} failed)" if each.failed else "")
    rest = (number(value, "n/a") for value in (each.output_per_gpu, each.ttft_p50, each.ttft_p90, tpot))
    return (requests, share(each.reuse), share(each.ideal_reuse), *rest)


def sweep(
    trace: str | Path | None = None,
    *,
    knobs: Sequence[str],
    out: Path | str,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Sweep:
    """Simulate every combination of the knobs (each `KEY=v1,v2,…`), in `workers` processes (None: one for each CPU).

    `out` gets a run folder for each point. The other arguments are those of `simulate`. Raises BadInput, before the
    first simulation for whatever can be known by then.
    """
    read = [knob_of(text) for text in knobs]
    points = points_of(trace, plan=plan, target=target, sets=sets, knobs=read)
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput("is there already", file=folder, hint="choose another folder or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    name = trace if trace is not None else plan_of(plan, split_sets(sets)[0]).trace
    traces = _traces(name, points, folder)
    jobs = [
        _Job(point, traces[point.number], plan, target, [*sets, *point.sets], folder / _name(point), salt)
        for point in points
    ]
    wanted = os.cpu_count() or 1 if workers is None else workers
    done = dict(_run_all(jobs, max(1, min(wanted, len(jobs))), progress))
    rows = tuple((point, _name(point), done[point.number]) for point in points)
    told = name.stem if isinstance(name, Path) else Path(str(name)).stem
    about = f"{told}, {' x '.join(str(len(knob.values)) for knob in read)} simulations"
    return Sweep(tuple(read), rows, about, _chosen(jobs[0].out))


def _chosen(folder: Path) -> tuple[str, ...]:
    """What was chosen for a run because no plan was given."""
    return tuple(note for note in read_results(folder).notes if note.startswith("no plan given"))


@dataclass(frozen=True, slots=True)
class _Job:
    point: Point
    trace: Path
    plan: Plan | str | Path | None
    target: str | None
    sets: list[str]
    out: Path
    salt: str | None


def _name(point: Point) -> str:
    return f"{point.number:03}"


def _traces(name: str | Path | None, points: Sequence[Point], folder: Path) -> dict[int, Path]:
    """The trace of each point; a workload's is made once for each of its specs and seeds."""
    if name is None or not isinstance(name, str) or catalog.is_path(name):
        return {point.number: Path(name or "") for point in points}
    from agentx.generator.spec import load_spec
    from agentx.generator.write import generate

    made: dict[tuple[tuple[str, ...], int], Path] = {}
    for point in points:
        key = point.spec_sets, point.seed
        if key not in made:
            path = folder / f"trace-{len(made)}.trace"
            made[key] = generate(load_spec(name, sets=key[0]), seed=key[1], out=path, name=name)
    return {point.number: made[point.spec_sets, point.seed] for point in points}


def _run_all(jobs: Sequence[_Job], workers: int, progress: bool) -> Iterator[tuple[int, Figures]]:
    """(number, figures) as they come. Raises BadInput for the first point that could not be run."""
    from tqdm import tqdm

    shown = progress and sys.stderr.isatty()
    with tqdm(total=len(jobs), file=sys.stderr, unit=" simulations", disable=not shown, leave=False) as bar:
        if workers == 1:
            for job in jobs:
                yield job.point.number, _figures_or_raise(_run(job))
                bar.update()
            return
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            running = {pool.submit(_run, job): job for job in jobs}
            try:
                for ended in as_completed(running):
                    yield running[ended].point.number, _figures_or_raise(ended.result())
                    bar.update()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _figures_or_raise(outcome: Figures | str) -> Figures:
    if isinstance(outcome, str):
        raise BadInput(outcome)
    return outcome


def _run(job: _Job) -> Figures | str:
    """One simulation, in whatever process; what it was refused for comes back as words."""
    try:
        run = simulate(job.trace, plan=job.plan, target=job.target, out=job.out, sets=job.sets, salt=job.salt)
    except AgentxError as error:
        return f"{', '.join(f'{key}={value}' for key, value in job.point.settings)}: {error}"
    return figures_of(run, report(run))


def figures_of(run: RunResults, found: Report) -> Figures:
    """What a sweep keeps of one report."""
    metrics = found.metrics
    rate = metrics.throughput.emitted.per_second(metrics.throughput.emitted.output)
    latency, ideal = metrics.latency, metrics.reuse.ideal
    return Figures(
        requests=metrics.attempts,
        failed=metrics.attempts - metrics.completed,
        reuse=metrics.reuse.by_request.share,
        ideal_reuse=None if ideal is None else ideal.share,
        output_per_gpu=None if rate is None else rate / (metrics.throughput.gpus or 1),
        ttft_p50=None if latency.ttft is None else latency.ttft.at(50),
        ttft_p90=None if latency.ttft is None else latency.ttft.at(90),
        tpot_p50=None if latency.tpot is None else latency.tpot.at(50),
    )
