"""Runs that belong together, each in a folder of its own: what is finished is read, and not played again.

So a batch that was killed goes on where it was: its only state is its run folders. A folder whose run has not ended is
put aside under another name, and one that holds a run of something else is refused.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx import catalog
from agentx.errors import BadInput, Unreachable
from agentx.replayer.order import order_of, plan_of
from agentx.replayer.plan import Plan, split_sets
from agentx.replayer.run import replay
from agentx.replayer.simulate import derived_salt, simulate
from agentx.reporter.compare_conditions import differences
from agentx.results import RESULTS, RunResults, read_results, sha256_of
from agentx.trace import read_trace

OVER = ("done", "failed")  # outcomes of a run that is not to be made again
ASIDE = "unfinished"


@dataclass(frozen=True, slots=True)
class Job:
    """One run: the arguments of `replay` or `simulate`, and `more` of them that only `replay` has.

    `repeat` counts from 1: each repeat has words of its own. `label` says which run it is.
    """

    trace: str | Path | None
    plan: Plan | str | Path | None
    target: str | None
    sets: tuple[str, ...]
    out: Path
    simulated: bool
    salt: str | None = None
    repeat: int = 1
    label: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_sets(self) -> list[str]:
        """A run is one run, however many of its kind there are."""
        return [*self.sets, "repeats=1"]


def repeated(folder: Path, repeat: int) -> Path:
    """Where a repeat lies."""
    return folder / f"run-{repeat}"


def abba(points: Sequence[Any], repeats: int) -> list[tuple[Any, int]]:
    """(point, repeat) in the order A B, B A, A B ...: drift of a server then weighs on all points alike."""
    rounds = range(1, repeats + 1)
    return [(point, repeat) for repeat in rounds for point in (points if repeat % 2 else reversed(points))]


def check_folder(folder: Path, ours: Callable[[str], bool]) -> None:
    """Make the folder of a batch, or go on in one. Raises BadInput when something else is in it."""
    if folder.exists() and not folder.is_dir():
        raise BadInput("is a file, a folder is needed", file=folder)
    if folder.exists() and (other := next((path.name for path in folder.iterdir() if not ours(path.name)), None)):
        raise BadInput(f"is there already, with {other} in it", file=folder, hint="choose another folder or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot be made: {error.strerror}", file=folder) from None


def check_salt(salt: str | None, runs: int, simulated: bool) -> None:
    """Raises BadInput where a server would meet the words of an earlier run again."""
    if salt is not None and runs > 1 and not simulated:
        raise BadInput(
            f"--salt {salt} gives {runs} runs the same words, and a later one would find the earlier one's cache",
            hint="without --salt each has its own",
        )


def check_trace(name: str | Path) -> None:
    """Raises BadInput for a file that is no trace, and for a name that no workload has."""
    if isinstance(name, str) and not catalog.is_path(name):
        catalog.resolve("workloads", name)
    else:
        _ = read_trace(name).header


def trace_in(folder: Path, name: str | Path, seed: int, spec_sets: tuple[str, ...] = (), number: int = 0) -> Path:
    """The trace that all runs of a batch play: a file, or that of a workload, made once, in the batch's folder."""
    if not isinstance(name, str) or catalog.is_path(name):
        return Path(name)
    from agentx.generator.spec import load_spec
    from agentx.generator.write import generate

    spec = load_spec(name, sets=spec_sets)
    return generate(spec, seed=seed, out=folder / f"trace-{number}.trace", name=name)


def play(job: Job, *, progress: bool = False, signals: bool = False) -> RunResults:
    """The run of a job: the finished one that is there, or a new one.

    Raises what `replay` and `simulate` raise, Unreachable when a server answered no turn at all, and KeyboardInterrupt
    when the run was interrupted: its books are written, and the batch is to end.
    """
    if (found := finished(job)) is not None:
        return found
    if (job.out / RESULTS).exists():
        _put_aside(job.out)
    if job.simulated:
        run = simulate(
            job.trace, plan=job.plan, target=job.target, out=job.out, sets=job.all_sets, salt=_salt(job),
            progress=progress, signals=signals, **job.more,
        )  # fmt: skip
    else:
        run = replay(
            job.trace, plan=job.plan, target=job.target, out=job.out, sets=job.all_sets, salt=job.salt,
            progress=progress, signals=signals, **job.more,
        )  # fmt: skip
    if (run.end or {}).get("outcome") == "interrupted":
        print("what is finished stays: the same command goes on from there", file=sys.stderr)
        raise KeyboardInterrupt
    if not job.simulated and run.attempts and not any(attempt.ok for attempt in run.attempts):
        failure = next(attempt.failure for attempt in run.attempts if attempt.failure is not None)
        raise Unreachable(f"{job.label or job.out}: every turn failed, the first by {failure.kind}: {failure.message}")
    return run


def _salt(job: Job) -> str | None:
    if job.salt is not None or job.repeat == 1:
        return job.salt
    return derived_salt(plan_of(job.plan, split_sets(job.all_sets)[0]).seed, job.repeat)


def finished(job: Job) -> RunResults | None:
    """The finished run in a job's folder; None: none, or one that did not end. Raises BadInput for another run."""
    if not (job.out / RESULTS).exists():
        return None
    try:
        run = read_results(job.out)
    except BadInput:  # killed before it had settings
        return None
    over = run.tear is None and (run.end or {}).get("outcome") in OVER
    if not over or not (job.simulated or any(attempt.ok for attempt in run.attempts)):
        return None
    _check_same(job, run)
    return run


def _put_aside(folder: Path) -> None:
    number = 1
    while (aside := folder.with_name(f"{ASIDE}-{folder.name}-{number}")).exists():
        number += 1
    folder.rename(aside)
    print(f"{folder} was not finished: it is now {aside.name}, and is run again", file=sys.stderr)


def _work(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What of a plan makes the run: trace and target are compared by what they are, and objectives change nothing."""
    return {key: value for key, value in plan.items() if key not in ("trace", "target", "slo")}


def _check_same(job: Job, run: RunResults) -> None:
    """Raises BadInput when the run is not what the job would make."""
    with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
        order = order_of(job.trace, job.plan, job.target, job.all_sets, folder=job.out, scratch=Path(scratch), salt="")
        asked = {
            "plan": _work(order.plan.model_dump(mode="json")),
            "target": order.target.record(),
            "trace": sha256_of(order.trace),
            "simulated": job.simulated,
            "order_from": None if job.more.get("order_from") is None else Path(job.more["order_from"]).name,
        }
    kept = run.settings
    trace = kept.get("trace")
    there = {
        "plan": _work(kept.get("plan") or {}),
        "target": kept.get("target"),
        "trace": trace.get("sha256") if isinstance(trace, Mapping) else None,
        "simulated": bool(kept.get("simulated")),
        "order_from": (kept.get("order_from") or {}).get("run"),
    }
    if other := differences(there, asked):
        told = ", ".join(f"{key} {was} there, {now} asked for" for key, (was, now) in list(other.items())[:3])
        raise BadInput(f"holds a finished run of something else: {told}", file=job.out, hint="choose another folder")
