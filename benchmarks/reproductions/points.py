"""Simulated points: one seed of one configuration each, in several processes, every finished one kept on disk.

A point is a pure function of its configuration, its seed, and the files that it names; the key of the kept answer is a
digest of all of them, so that an answer of other files is never taken. A trace is made once for each seed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from agentx.core import Attempt
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.replayer.order import plan_of
from agentx.replayer.plan import split_sets
from agentx.replayer.simulate import simulate
from agentx.replayer.targets import resolve_target
from agentx.reporter.server_counters import counters_of
from agentx.reporter.spread import percentile
from agentx.reporter.throughput import MEASURED, throughput, window_of
from agentx.reporter.turns import finished, turn_times
from agentx.results import RunResults

Figures = dict[str, float]
"""By name; a figure that a run does not tell is not there."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is simulated, without the seed: `sets` override the plan and the target, `spec` the workload.

    The trace has `sessions` sessions.
    """

    name: str
    workload: str
    plan: str
    target: str
    sets: tuple[str, ...] = ()
    sessions: int = 24
    spec: tuple[str, ...] = ()

    def digest(self) -> str:
        """Of everything that decides the answer but the seed."""
        return _digest(self)


@cache
def _digest(each: Configuration) -> str:
    plan_sets, target_sets = split_sets(each.sets)
    parts = (
        load_spec(each.workload, sets=each.spec).model_dump_json(),
        plan_of(each.plan, plan_sets).model_dump_json(),
        resolve_target(each.target, target_sets).settings.model_dump_json(),
        str(each.sessions),
    )
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


class Job(Protocol):
    """One thing to be found out, the same for ever by its key."""

    @property
    def key(self) -> str: ...

    def answer(self, folder: Path) -> Figures: ...


@dataclass(frozen=True, slots=True)
class Point:
    """One simulation."""

    configuration: Configuration
    seed: int

    @property
    def key(self) -> str:
        return f"{self.configuration.digest()}-{self.seed}"

    def answer(self, folder: Path) -> Figures:
        """Simulate it; the trace of its seed is kept in `folder`."""
        each = self.configuration
        with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
            trace = trace_of(each, self.seed, folder)
            sets = [*each.sets, f"seed={self.seed}"]
            run = simulate(trace, plan=each.plan, target=each.target, out=Path(scratch) / "run", sets=sets)
            return figures_of(run)


J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class Answer(Generic[J]):
    """Figures of a job, and the seconds of processor time that it took."""

    job: J
    figures: Figures
    cpu: float


def run_all(jobs: Sequence[J], folder: Path, *, workers: int, until: float) -> list[Answer[J]]:
    """The answers that are there by `until` (time.monotonic), in the order of the jobs; kept ones cost nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {each: folder / f"{each.key}.json" for each in jobs}
    missing = [each for each in paths if not paths[each].exists()]
    if missing and time.monotonic() < until:
        print(f"{len(missing)} of {len(paths)} points are to be simulated", file=sys.stderr)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            waiting = iter(missing)
            running = {pool.submit(_run, each, paths[each], folder) for each in islice(waiting, workers)}
            while running:
                done = next(as_completed(running))
                running.remove(done)
                done.result()
                if time.monotonic() < until and (following := next(waiting, None)) is not None:
                    running.add(pool.submit(_run, following, paths[following], folder))
    return [_read(each, paths[each]) for each in jobs if paths[each].exists()]


def spent(answers: Sequence[Answer[J]]) -> float:
    """Seconds of processor time, in whatever run they were spent."""
    return sum(each.cpu for each in answers)


def _read(job: J, path: Path) -> Answer[J]:
    found = json.loads(path.read_text())
    return Answer(job, found["figures"], found["cpu"])


def _run(job: Job, path: Path, folder: Path) -> None:
    started = time.process_time()
    figures = job.answer(folder)
    _write(path, json.dumps({"figures": figures, "cpu": time.process_time() - started}, indent=1).encode())


def _write(path: Path, data: bytes) -> None:
    """All or nothing: other processes may look for the file."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(data)
    part.replace(path)


def trace_of(each: Configuration, seed: int, folder: Path) -> Path:
    """The trace of a seed, made once."""
    spec = load_spec(each.workload, sets=each.spec)
    name = hashlib.blake2b(f"{spec.model_dump_json()}/{each.sessions}".encode(), digest_size=8).hexdigest()
    path = folder / f"{name}-{seed}.trace"
    if not path.exists():
        part = folder / f"{name}-{seed}-{os.getpid()}.trace"
        generate(spec, seed=seed, sessions=each.sessions, out=part, name=Path(each.workload).stem)
        part.replace(path)
    return path


def figures_of(run: RunResults) -> Figures:
    """Rates are those of the whole window, per GPU; reuse is that of the server's counters; seconds otherwise."""
    measured = [attempt for attempt in run.attempts if attempt.phase == MEASURED]
    done = [attempt for attempt in measured if attempt.ok]
    flow = throughput(run, measured, window_of(run, measured))
    counters, gpus = counters_of(run, measured), flow.gpus or 1
    emitted = flow.emitted
    output, computed, cached = (
        emitted.per_second(amount) or 0.0 for amount in (emitted.output, emitted.input_computed, emitted.input_cached)
    )
    times = turn_times(done)
    figures = {
        "requests": float(len(done)),
        "output": output / gpus,
        "total": (output + computed + cached) / gpus,
        "in_per_out": _in_per_out(done),
        "peak": _peak(done),
        **_spread("ttft", [each.ttft for each in times]),
        **_spread("tpot", [each.tpot for each in times]),
        **_spread("latency", [each.latency for each in times]),
    }
    if counters is not None and counters.prompt and counters.cached is not None:
        figures["reuse"] = counters.cached / counters.prompt
        figures["host_reuse"] = (counters.host or 0) / counters.prompt
    return figures


def _in_per_out(done: Iterable[Attempt]) -> float:
    pairs = [(attempt.prompt_tokens or 0, attempt.completion_tokens or 0) for attempt in done]
    return sum(isl for isl, _ in pairs) / max(1, sum(osl for _, osl in pairs))


def _peak(done: Iterable[Attempt]) -> float:
    """The most tokens that requests which ran at one time had, prompts and replies together."""
    moves = []
    for attempt in done:
        tokens = (attempt.prompt_tokens or 0) + (attempt.completion_tokens or 0)
        moves += [(attempt.sent, tokens), (finished(attempt) or attempt.sent, -tokens)]
    held = most = 0
    for _, tokens in sorted(moves):
        held += tokens
        most = max(most, held)
    return float(most)


def _spread(name: str, values: Iterable[float | None]) -> Figures:
    known = sorted(value for value in values if value is not None)
    if not known:
        return {}
    percents = {f"{name}_p{at}": percentile(known, at) for at in (50, 90, 95, 99)}
    return {f"{name}_mean": sum(known) / len(known), **percents}
