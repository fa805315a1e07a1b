"""One run of a search, judged: whether it meets the conditions, what it put out, and whether the server kept up."""

from __future__ import annotations

from dataclasses import dataclass

from agentx.replayer.search import Goal
from agentx.replayer.slo import Slo, TurnSlo
from agentx.reporter.about import about
from agentx.reporter.compare_statistics import mean
from agentx.reporter.findings import findings
from agentx.reporter.goodput import Verdict, judge
from agentx.reporter.metrics import measure
from agentx.reporter.saturation import State, saturation
from agentx.results import RunResults


@dataclass(frozen=True, slots=True)
class Trial:
    """`run` is its folder within the search's. `output` in tokens per second; None: unknown.

    `invalid`: why its figures must not be used; such a run meets nothing. `server`: of an open loop alone.
    """

    run: str
    requests: int
    failed: int
    plays: int
    verdicts: tuple[Verdict, ...]
    output: float | None
    output_per_gpu: float | None
    server: State | None
    invalid: str | None = None

    @property
    def met(self) -> bool:
        return self.invalid is None and all(one.met for one in self.verdicts)


@dataclass(frozen=True, slots=True)
class Spot:
    """All runs at one value of what is searched."""

    value: float
    trials: tuple[Trial, ...]

    @property
    def met(self) -> int:
        """How many of its runs meet all conditions."""
        return sum(trial.met for trial in self.trials)

    @property
    def good(self) -> bool:
        return self.met == len(self.trials)

    @property
    def mixed(self) -> bool:
        return 0 < self.met < len(self.trials)

    @property
    def invalid(self) -> bool:
        return any(trial.invalid for trial in self.trials)

    @property
    def requests(self) -> int:
        return sum(trial.requests for trial in self.trials)

    @property
    def failed(self) -> int:
        return sum(trial.failed for trial in self.trials)

    @property
    def output(self) -> float | None:
        return mean([trial.output for trial in self.trials])

    @property
    def output_per_gpu(self) -> float | None:
        return mean([trial.output_per_gpu for trial in self.trials])

    @property
    def server(self) -> State | None:
        """The worst of its runs: one that fell behind says more than one that did not."""
        states = [trial.server for trial in self.trials]
        return next((state for state in ("saturated", "unknown", "below", None) if state in states), None)

    def values(self, condition: int) -> list[float]:
        """What a condition's figure was in each run that tells it."""
        found = (trial.verdicts[condition].value for trial in self.trials)
        return [value for value in found if value is not None]


def trial_of(run: RunResults, name: str, goal: Goal, turns: TurnSlo) -> Trial:
    """`turns`: the objectives of turns that goodput, where it is a condition, goes by."""
    metrics = measure(run)
    slo = Slo.model_construct(turn=turns, run={one.name: one.limit for one in goal.conditions})
    flow = metrics.throughput.emitted
    rate, gpus = flow.per_second(flow.output), metrics.throughput.gpus
    bad = next((one for one in findings(about(run), metrics) if one.invalidates), None)
    return Trial(
        run=name,
        requests=metrics.attempts,
        failed=metrics.attempts - metrics.completed,
        plays=len(run.plays),
        verdicts=judge(run, metrics, slo).verdicts,
        output=rate,
        output_per_gpu=None if rate is None or gpus is None else rate / gpus,
        server=saturation(run) if goal.knob == "rate" else None,
        invalid=None if bad is None else bad.text,
    )
