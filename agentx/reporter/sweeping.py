"""A sweep: the same work with other values of some keys, as one table, one document and one plot.

Simulated, every point has the words of the same salt, so that what differs comes from the knobs, and points run in
several processes. Replayed, they run one after another, repeats in the order A B B A, each with words of its own. The
figures are those of each run's own report, whose folders stay: what is finished is not run again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from agentx.errors import AgentxError, BadInput
from agentx.plots import Axis, Panel, Series, svg
from agentx.replayer.order import plan_of, trace_named
from agentx.replayer.plan import Plan, split_sets
from agentx.replayer.sweep import Knob, Point, knob_of, points_of
from agentx.reporter.batch import ASIDE, Job, abba, check_folder, check_salt, play, repeated, trace_in
from agentx.reporter.reporting import Report, report
from agentx.reporter.table import Heading, Lines, Table, as_text
from agentx.reporter.text import number, share
from agentx.results import read_results

SCHEMA = "agentx/sweep/1"
SUMS = ("requests", "failed", "objectives_missed")  # over repeats; all else is a mean
COLUMNS = ("requests", "reuse", "ideal", "out tok/s/GPU", "TTFT p50, s", "p90, s", "TPOT p50, ms")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a sweep looks at. Shares 0 ... 1, tokens per second and GPU, seconds; None: the run does not tell.

    `goodput` of turns and the number of the run's objectives that were not met: None without objectives of the kind.
    """

    requests: int
    failed: int
    reuse: float | None
    ideal_reuse: float | None
    output_per_gpu: float | None
    ttft_p50: float | None
    ttft_p90: float | None
    tpot_p50: float | None
    goodput: float | None = None
    objectives_missed: int | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """`rows` are in the order of the points: settings by key, the point's folder, its figures (means of its repeats).

    `repeats` has the figures of each run, where a point has several.
    """

    knobs: tuple[Knob, ...]
    rows: tuple[tuple[Point, str, Figures], ...]
    about: str
    notes: tuple[str, ...] = ()
    repeats: tuple[tuple[Figures, ...], ...] = ()

    def text(self) -> str:
        """One table for a terminal."""
        columns: tuple[str, ...] = (
            *(knob.key for knob in self.knobs),
            *COLUMNS,
            *self._judged(),
            *(("runs", "out, from - to", "p90, from - to") if self.repeats else ()),
        )
        rows = tuple(
            (*(value for _, value in point.settings), *cells(each), *self._judged(each), *self._ranges(at))
            for at, (point, _, each) in enumerate(self.rows)
        )
        return as_text([Heading(f"agentx sweep: {self.about}"), Lines(self.notes), Table(columns, rows)])

    def _judged(self, of: Figures | None = None) -> tuple[str, ...]:
        """Columns for objectives, where there are some; of a row, its cells in them."""
        first, found = self.rows[0][2], []
        if first.goodput is not None:
            found.append("goodput" if of is None else share(of.goodput))
        if first.objectives_missed is not None:
            missed = None if of is None else of.objectives_missed
            found.append("objectives" if of is None else "MISSED" if missed or missed is None else "met")
        return tuple(found)

    def _ranges(self, at: int) -> tuple[str, ...]:
        if not self.repeats:
            return ()
        runs = self.repeats[at]
        return (
            str(len(runs)),
            *(_range([getattr(one, name) for one in runs]) for name in ("output_per_gpu", "ttft_p90")),
        )

    def document(self) -> dict[str, Any]:
        """Plain values, ready for json.dumps."""
        return {
            "schema": SCHEMA,
            "about": self.about,
            "notes": list(self.notes),
            "knobs": [{"key": knob.key, "values": list(knob.values)} for knob in self.knobs],
            "points": [
                {"settings": dict(point.settings), "run": run, "figures": asdict(each), **self._runs(at, run)}
                for at, (point, run, each) in enumerate(self.rows)
            ],
        }

    def _runs(self, at: int, folder: str) -> dict[str, Any]:
        if not self.repeats:
            return {"runs": None}
        runs = enumerate(self.repeats[at], 1)
        return {"runs": [{"run": f"{folder}/run-{number}", "figures": asdict(each)} for number, each in runs]}

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


def cells(each: Figures) -> tuple[str, ...]:
    """Under COLUMNS."""
    tpot = None if each.tpot_p50 is None else each.tpot_p50 * 1e3
    requests = f"{each.requests}" + (f" ({each.failed} failed)" if each.failed else "")
    rest = (number(value, "n/a") for value in (each.output_per_gpu, each.ttft_p50, each.ttft_p90, tpot))
    return (requests, share(each.reuse), share(each.ideal_reuse), *rest)


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{number(min(known))} - {number(max(known))}" if known else "n/a"


def typical(runs: Sequence[Figures]) -> Figures:
    """Means over repeats, None where one run does not tell; requests are summed."""
    if len(runs) == 1:
        return runs[0]
    found: dict[str, Any] = {}
    for name in (field.name for field in fields(Figures)):
        values = [getattr(one, name) for one in runs]
        whole = None not in values
        found[name] = (sum(values) if name in SUMS else fmean(values)) if whole else None
    return Figures(**found)


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
    simulated: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Sweep:
    """Run every combination of the knobs (each `KEY=v1,v2,…`), as often as the plan's `repeats` says.

    Simulations run in `workers` processes (None: one for each CPU); replays (`simulated` False) one by one, and `more`
    is what else `replay` is to be given. `out` gets a run folder for each point; where it holds finished ones, those
    are read. The other arguments are those of `simulate`. Raises BadInput, before the first run for whatever can be
    known by then.
    """
    read = [knob_of(text) for text in knobs]
    if own := next((knob.key for knob in read if knob.key == "repeats"), None):
        raise BadInput(f"--sweep {own}: repeats are of every point, and are not swept")
    points = points_of(trace, plan=plan, target=target, sets=sets, knobs=read, simulated=simulated)
    known = plan_of(plan, split_sets(sets)[0])
    check_salt(salt, len(points) * known.repeats, simulated)
    folder = Path(out)
    check_folder(folder, _ours)
    name = trace_named(trace, known)
    traces = _traces(name, points, folder)
    jobs = [
        Job(
            traces[point.number], plan, target, (*sets, *point.sets), _folder(folder, point, repeat, known.repeats),
            simulated, salt, repeat, _label(point), more or {},
        )
        for point, repeat in abba(points, known.repeats)
    ]  # fmt: skip
    wanted = (os.cpu_count() or 1 if workers is None else workers) if simulated else 1
    done = dict(_run_all(jobs, max(1, min(wanted, len(jobs))), progress))
    runs = [
        tuple(done[_folder(folder, point, repeat, known.repeats)] for repeat in range(1, known.repeats + 1))
        for point in points
    ]
    rows = tuple((point, _name(point), typical(each)) for point, each in zip(points, runs, strict=True))
    told = name.stem if isinstance(name, Path) else Path(str(name)).stem
    count = " x ".join(str(len(knob.values)) for knob in read)
    about = f"{told}, {count} {'simulations' if simulated else 'replays'}"
    notes = (*(("every figure is of a model, simulated in virtual time",) if simulated else ()), *_chosen(jobs[0].out))
    if known.repeats == 1:
        return Sweep(tuple(read), rows, about, notes)
    notes = (*notes, f"means of {known.repeats} runs of each point")
    return Sweep(tuple(read), rows, about, notes, tuple(runs))


def _ours(name: str) -> bool:
    return name.isdigit() or name.startswith(("trace-", f"{ASIDE}-")) or name in ("sweep.json", "sweep.svg")


def _label(point: Point) -> str:
    return ", ".join(f"{key}={value}" for key, value in point.settings)


def _folder(folder: Path, point: Point, repeat: int, repeats: int) -> Path:
    own = folder / _name(point)
    return own if repeats == 1 else repeated(own, repeat)


def _chosen(folder: Path) -> tuple[str, ...]:
    """What was chosen for a run because no plan was given."""
    return tuple(note for note in read_results(folder).notes if note.startswith("no plan given"))


def _name(point: Point) -> str:
    return f"{point.number:03}"


def _traces(name: str | Path, points: Sequence[Point], folder: Path) -> dict[int, Path]:
    """The trace of each point; a workload's is made once for each of its specs and seeds."""
    made: dict[tuple[tuple[str, ...], int], Path] = {}
    for point in points:
        key = point.spec_sets, point.seed
        if key not in made:
            made[key] = trace_in(folder, name, point.seed, point.spec_sets, len(made))
    return {point.number: made[point.spec_sets, point.seed] for point in points}


def _run_all(jobs: Sequence[Job], workers: int, progress: bool) -> Iterator[tuple[Path, Figures]]:
    """(folder, figures) as they come. Raises the error of the first point that could not be run."""
    from tqdm import tqdm

    shown = progress and sys.stderr.isatty()
    with tqdm(total=len(jobs), file=sys.stderr, unit=" runs", disable=not shown, leave=False) as bar:
        if workers == 1:
            for job in jobs:
                yield job.out, _run_here(job, progress)
                bar.update()
            return
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_leave_at_once) as pool:
            running = {pool.submit(_run, job): job for job in jobs}
            try:
                for ended in as_completed(running):
                    yield running[ended].out, _figures_or_raise(ended.result())
                    bar.update()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _leave_at_once() -> None:
    """Ctrl-C ends a process of the pool without a word: what it has not finished is run again another time."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _figures_or_raise(outcome: Figures | str) -> Figures:
    if isinstance(outcome, str):
        raise BadInput(outcome)
    return outcome


def _run_here(job: Job, progress: bool) -> Figures:
    """One run in this process, which Ctrl-C ends with its books."""
    if job.simulated:
        return _figures_or_raise(_run(job))
    if progress:
        print(f"agentx replay: {job.label}, run {job.repeat}", file=sys.stderr)
    run = play(job, progress=progress, signals=progress)
    return figures_of(report(run))


def _run(job: Job) -> Figures | str:
    """One simulation, in whatever process; what it was refused for comes back as words."""
    try:
        run = play(job)
    except AgentxError as error:
        return f"{job.label}: {error}"
    return figures_of(report(run))


def figures_of(found: Report) -> Figures:
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
        goodput=found.judged.goodput.share if found.judged.goodput.objectives else None,
        objectives_missed=len(found.judged.missed) if found.judged.verdicts else None,
    )
