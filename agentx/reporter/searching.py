"""`--find`: the highest load that meets conditions, by runs at values that bracket and bisect it.

The state is the run folders, `KNOB-VALUE/run-N`: a search that was killed goes on, and one with other conditions in the
same folder begins with all points that are there. Repeats have words of their own and, where the plan draws anything,
draws of their own: repeat N has the seed of the plan + N - 1. The trace of a workload is made once, by the plan's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.replayer.order import plan_of, trace_named
from agentx.replayer.plan import Plan, split_sets
from agentx.replayer.search import Goal, goal_of, next_value
from agentx.replayer.sweep import Knob, points_of
from agentx.reporter.batch import ASIDE, Job, check_folder, check_salt, check_trace, finished, play, repeated, trace_in
from agentx.reporter.found import Found
from agentx.reporter.goodput_text import value_text
from agentx.reporter.trials import Spot, Trial, trial_of


@dataclass(slots=True)
class _Search:
    """What a search asks for, and the spots that it knows."""

    goal: Goal
    plan: Plan
    folder: Path
    job: Job  # of which each run changes the overrides, the folder and the repeat
    progress: bool
    spots: dict[float, Spot]

    def spot(self, value: float) -> Spot:
        """Run what is not there yet."""
        trials = tuple(self._trial(job) for job in self._jobs(value))
        spot = Spot(value, trials)
        if self.progress:
            print(f"agentx find: {_heard(self.goal, spot)}", file=sys.stderr)
        return spot

    def _trial(self, job: Job) -> Trial:
        run = play(job, progress=self.progress, signals=self.progress)
        return trial_of(run, str(job.out.relative_to(self.folder)), self.goal, self.plan.slo.turn)

    def _jobs(self, value: float) -> Iterator[Job]:
        name = f"{self.goal.knob}-{self.goal.text(value)}"
        for repeat in range(1, self.plan.repeats + 1):
            seed = (f"seed={self.plan.seed + repeat - 1}",) if repeat > 1 else ()
            sets = (*self.job.sets, f"{self.goal.key}={self.goal.text(value)}", *seed)
            yield replace(
                self.job, sets=sets, out=repeated(self.folder / name, repeat), repeat=repeat,
                label=f"{name}, run {repeat}", more=self._more(value),
            )  # fmt: skip

    def _more(self, value: float) -> Mapping[str, Any]:
        """Fewer sessions, or requests, than workers are split over fewer workers."""
        workers = self.job.more.get("workers", 1)
        return (
            {**self.job.more, "workers": min(workers, int(value))} if self.goal.whole and workers > 1 else self.job.more
        )

    def read(self) -> None:
        """The spots of which every run is there already."""
        for path in sorted(self.folder.glob(f"{self.goal.knob}-*")):
            value = _value(path.name)
            if value is None or self.goal.rounded(value) != value:
                continue
            if all(finished(job) is not None for job in self._jobs(value)):
                self.spots[value] = self.spot(value)

    @property
    def good(self) -> dict[float, bool]:
        return {value: spot.good for value, spot in self.spots.items()}


def find(
    trace: str | Path | None = None,
    *,
    goal: str,
    out: Path | str,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    progress: bool = False,
    simulated: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Found:
    """Search as `goal` says (`rate: ttft_p95 <= 5s`), with as many runs of each point as the plan's `repeats`.

    `out` gets a folder for each point; what is finished in it is not run again. `simulated` False replays, and `more`
    is what else `replay` is to be given; the other arguments are those of `simulate`. Raises BadInput, before the first
    run for whatever can be known by then.
    """
    asked = goal_of(goal)
    known = plan_of(plan, split_sets(sets)[0])
    base = (*sets, *_instead(asked, known))
    start = _start(asked, known)
    knob = Knob(asked.key, (asked.text(start),))
    points_of(trace, plan=plan, target=target, sets=base, knobs=[knob], simulated=simulated)
    check_salt(salt, 2, simulated)
    folder, name = Path(out), trace_named(trace, known)
    check_trace(name)
    check_folder(folder, lambda name: _ours(name, asked))
    path = trace_in(folder, name, known.seed)
    job = Job(path, plan, target, base, folder, simulated, salt, more=more or {})
    search = _Search(asked, known, folder, job, progress, {})
    search.read()
    limited = asked
    while (value := next_value(limited, start, search.good)) is not None:
        search.spots[value] = spot = search.spot(value)
        if asked.knob == "sessions" and max(trial.plays for trial in spot.trials) <= value:
            limited = limited._replace(high=min(value, limited.high or value))  # more are never played at a time
    told = name.stem if isinstance(name, Path) else Path(str(name)).stem
    spots = tuple(search.spots[value] for value in sorted(search.spots))
    return Found(limited, spots, told, simulated, known.repeats, exhausted=limited.high != asked.high)


def _start(goal: Goal, plan: Plan) -> float:
    """Where a search begins: at the plan's own value, within the bounds."""
    load = plan.load
    rate = None if load.rate is None else load.rate.per_second
    own = {"rate": rate, "sessions": load.sessions, "requests": load.requests}[goal.knob]
    first = float(own or goal.low or 1)
    return goal.rounded(min(max(first, goal.low or first), goal.high or first))


def _instead(goal: Goal, plan: Plan) -> Iterator[str]:
    """What of the plan's load stands in the way of what is searched. Raises BadInput."""
    rate = plan.load.rate
    if goal.knob == "rate" and rate is not None and rate.kind in ("recorded", "ramp"):
        raise BadInput(
            f"--find rate: the plan's arrivals are of kind {rate.kind}, which has no one rate",
            hint="--set load.rate='{kind: poisson, per_second: 1}'",
        )
    if goal.knob == "rate" and plan.load.sessions is not None:
        yield "load.sessions=null"
    if goal.knob == "sessions" and rate is not None:
        yield "load.rate=null"


def _value(name: str) -> float | None:
    try:
        return float(name.partition("-")[2])
    except ValueError:
        return None


def _ours(name: str, goal: Goal) -> bool:
    own = name.startswith(f"{goal.knob}-") and _value(name) is not None
    return own or name.startswith(("trace-", f"{ASIDE}-")) or name in ("find.json", "find.svg")


def _heard(goal: Goal, spot: Spot) -> str:
    told = (", ".join(f"{one.objective.name} {value_text(one)}" for one in trial.verdicts) for trial in spot.trials)
    return f"{goal.knob} {goal.text(spot.value)}: {spot.met} of {len(spot.trials)} runs met; {'; '.join(told)}"
