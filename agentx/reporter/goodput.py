"""Objectives held against a run: the goodput by turn and by session, and a verdict for each objective of the run.

Every turn that was due counts: one that failed, was cut, or was still waiting in the client when the run ended has no
answer, so it misses. In a percentile such a turn stands behind all others: a server that refuses a tenth of its turns
has no p95. A mean is of answered turns alone, and `failed` says the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pydantic

from agentx.core import Attempt
from agentx.replayer.slo import STATISTICS, TURN, Objective, Slo
from agentx.reporter.findings import CUT
from agentx.reporter.metrics import Metrics
from agentx.reporter.spread import percentile
from agentx.reporter.throughput import MEASURED
from agentx.reporter.turns import TurnTimes
from agentx.results import RunResults

PlayKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Goodput:
    """Turns that were `due` in the measured phase: `met` + `missed` + `unknown`, and plays of the same kind.

    `missed_by`: how many answered turns missed each objective (one may miss several); `failed`, `cut` and `unsent` ones
    missed for want of an answer. `unknown`: answered, and the server did not tell what an objective needs.
    `seconds` of the window; None: there is none.
    """

    objectives: tuple[Objective, ...]
    due: int
    met: int
    unknown: int
    failed: int
    cut: int
    unsent: int
    missed_by: Mapping[str, int]
    plays: int
    plays_met: int
    plays_unknown: int
    seconds: float | None

    @property
    def missed(self) -> int:
        return self.due - self.met - self.unknown

    @property
    def unanswered(self) -> int:
        return self.failed + self.cut + self.unsent

    @property
    def share(self) -> float | None:
        """Of the turns of which it is known."""
        known = self.due - self.unknown
        return self.met / known if known else None

    @property
    def per_second(self) -> float | None:
        return self.met / self.seconds if self.seconds else None

    @property
    def session_share(self) -> float | None:
        known = self.plays - self.plays_unknown
        return self.plays_met / known if known else None

    @property
    def sessions_per_hour(self) -> float | None:
        return self.plays_met * 3600 / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`value` with the misses counted; None: unknown, or endless (`endless`: too many turns had no answer)."""

    objective: Objective
    value: float | None
    endless: bool = False

    @property
    def met(self) -> bool | None:
        if self.endless:
            return False
        return None if self.value is None else self.objective.met(self.value)


@dataclass(frozen=True, slots=True)
class Judged:
    """`verdicts` on the objectives of the run. Nothing was asked for: no objectives and no verdicts."""

    goodput: Goodput
    verdicts: tuple[Verdict, ...]

    @property
    def asked(self) -> bool:
        return bool(self.verdicts or self.goodput.objectives)

    @property
    def missed(self) -> tuple[Verdict, ...]:
        """Those that are not known to be met: an objective that cannot be judged is not met."""
        return tuple(one for one in self.verdicts if not one.met)


def slo_in(run: RunResults) -> Slo:
    """The objectives of a run's own plan; none where it has no such key, or not as this agentx writes it."""
    plan = run.settings.get("plan")
    try:
        return Slo.model_validate(plan.get("slo") or {}) if isinstance(plan, Mapping) else Slo()
    except pydantic.ValidationError:
        return Slo()


def judge(run: RunResults, metrics: Metrics, slo: Slo) -> Judged:
    """The run against `slo`."""
    last = {(one.session, one.play, one.turn): one for one in run.attempts if one.phase == MEASURED}
    times = {(one.attempt.session, one.attempt.play, one.attempt.turn): one for one in metrics.times}
    answered = [times[key] for key, one in last.items() if one.failure is None]
    failures = [one for one in last.values() if one.failure is not None]
    unsent = Counter[PlayKey]()
    for play in run.plays:
        if isinstance(count := play.extra.get("overdue"), int):
            unsent[play.session, play.play] += count
    window = metrics.throughput.window
    seconds = window.seconds if window is not None and window.seconds > 0 else None
    goodput = _goodput(answered, failures, unsent, slo.turns, seconds)
    verdicts = tuple(_verdict(one, answered, metrics, goodput) for one in slo.runs)
    return Judged(goodput, verdicts)


def _goodput(
    answered: Sequence[TurnTimes],
    failures: Sequence[Attempt],
    unsent: Mapping[PlayKey, int],
    objectives: tuple[Objective, ...],
    seconds: float | None,
) -> Goodput:
    """`answered`, `failures`: the last attempt of each turn; `unsent`: turns of a play that were due and not sent."""
    missed_by = Counter[str]()
    cut = sum(one.failure is not None and one.failure.kind == CUT for one in failures)
    plays: dict[PlayKey, set[bool | None]] = {key: {False} for key, count in unsent.items() if count}
    for one in failures:
        plays.setdefault((one.session, one.play), set()).add(False)
    verdicts = Counter[bool | None]()
    for times in answered:
        held = dict(_held(times, objectives))
        missed_by.update(name for name, one in held.items() if one is False)
        verdict = False if False in held.values() else None if None in held.values() else True
        verdicts[verdict] += 1
        plays.setdefault((times.attempt.session, times.attempt.play), set()).add(verdict)
    waiting = sum(unsent.values())
    return Goodput(
        objectives=objectives,
        due=len(answered) + len(failures) + waiting,
        met=verdicts[True],
        unknown=verdicts[None],
        failed=len(failures) - cut,
        cut=cut,
        unsent=waiting,
        missed_by={one.name: missed_by[one.name] for one in objectives},
        plays=len(plays),
        plays_met=sum(found == {True} for found in plays.values()),
        plays_unknown=sum(False not in found and None in found for found in plays.values()),
        seconds=seconds,
    )


def _held(times: TurnTimes, objectives: Sequence[Objective]) -> Iterator[tuple[str, bool | None]]:
    """(objective, whether an answered turn meets it; None: the server did not tell)."""
    for one in objectives:
        value = _of_turn(one.name, times)
        if value is None and one.name == "tpot" and times.tokens is not None:
            yield one.name, True  # all tokens came at once: there is nothing to wait for
        else:
            yield one.name, None if value is None else one.met(value)


def _of_turn(name: str, times: TurnTimes) -> float | None:
    found: float | None = getattr(times, name)
    return found


def _verdict(one: Objective, answered: Sequence[TurnTimes], metrics: Metrics, goodput: Goodput) -> Verdict:
    figure, _, how = one.name.rpartition("_")
    if figure in TURN and how in STATISTICS:
        return _of_times(one, figure, how, answered, goodput.unanswered)
    if figure == "interactivity":
        slow = _of_times(one, "tpot", how, answered, goodput.unanswered)
        rate = 0.0 if slow.endless else 1 / slow.value if slow.value else None
        return Verdict(one, rate)
    if figure == "job_latency":
        jobs = metrics.jobs.latency
        if jobs is None:
            return Verdict(one, None)
        return Verdict(
            one, {"mean": jobs.mean, "max": jobs.maximum}.get(how) if how[0] == "m" else jobs.at(int(how[1:]))
        )
    return Verdict(one, _of_run(one.name, metrics, goodput))


def _of_run(name: str, metrics: Metrics, goodput: Goodput) -> float | None:
    flow = metrics.throughput.emitted
    rate = flow.per_second(flow.output)
    if name == "output_per_gpu":
        gpus = metrics.throughput.gpus
        return None if rate is None or gpus is None else rate / gpus
    if name == "failed":
        return goodput.unanswered / goodput.due if goodput.due else None
    known: dict[str, float | None] = {
        "output_per_second": rate,
        "reuse": metrics.reuse.by_request.share,
        "goodput": goodput.share,
        "session_goodput": goodput.session_share,
    }
    return known[name]


def _of_times(one: Objective, figure: str, how: str, answered: Sequence[TurnTimes], unanswered: int) -> Verdict:
    """A statistic of a time of turns. Answered turns that do not have it are left out, as in the report."""
    values = (_of_turn(figure, times) for times in answered)
    known = sorted(value for value in values if value is not None)
    if how == "mean":
        return Verdict(one, math.fsum(known) / len(known) if known else None, endless=not known and unanswered > 0)
    found = statistic(known, unanswered, 100.0 if how == "max" else float(how[1:]))
    return Verdict(one, None if found == math.inf else found, endless=found == math.inf)


def statistic(ordered: Sequence[float], endless: int, percent: float) -> float | None:
    """Percentile of values in ascending order and of `endless` more above them all; None when there are none."""
    if not ordered and not endless:
        return None
    whole = len(ordered) + endless
    if math.ceil(percent / 100 * (whole - 1)) >= len(ordered):
        return math.inf
    rank = percent / 100 * (whole - 1)
    return percentile(ordered, 100 * rank / (len(ordered) - 1)) if len(ordered) > 1 else ordered[0]
