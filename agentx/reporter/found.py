"""What a search found: the curve of all points, the answer, how sure it is, and what to know before using it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agentx.errors import EXIT_GATE, EXIT_OK
from agentx.plots import Axis, Panel, Series, svg
from agentx.replayer.search import Bracket, Goal, bracket, out_of_order
from agentx.replayer.slo import limit_text
from agentx.reporter.compare_statistics import mean
from agentx.reporter.goodput_text import figure_text
from agentx.reporter.table import Heading, Lines, Table, as_text
from agentx.reporter.text import number
from agentx.reporter.trials import Spot

SCHEMA = "agentx/find/1"
BETTER = 0.2  # by which a figure is better at a higher load before it is said that it is
ALIKE = 0.005  # within which simulated repeats are called alike
_SERVER = {"below": "kept up", "saturated": "fell behind", "unknown": "unknown", None: "-"}


@dataclass(frozen=True, slots=True)
class Found:
    """`spots` in ascending order. `exhausted`: the trace holds no more sessions than the highest value plays."""

    goal: Goal
    spots: tuple[Spot, ...]
    about: str
    simulated: bool
    repeats: int
    exhausted: bool = False

    @property
    def bracket(self) -> Bracket:
        return bracket(self._good)

    @property
    def _good(self) -> dict[float, bool]:
        return {spot.value: spot.good for spot in self.spots}

    @property
    def _answer(self) -> Spot | None:
        return next((spot for spot in self.spots if spot.value == self.bracket.good), None)

    @property
    def code(self) -> int:
        """The exit code: the conditions were met somewhere, or nowhere."""
        return EXIT_OK if self.bracket.good is not None else EXIT_GATE

    def text(self) -> str:
        """The curve and the answer, for a terminal."""
        conditions = ", ".join(map(str, self.goal.conditions))
        names = tuple(str(one) for one in self.goal.conditions)
        columns = (self.goal.knob, "runs", "met", "requests", *names, "out tok/s", "/GPU", "server")
        rows = tuple(self._row(spot) for spot in self.spots)
        notes = tuple(self.notes)
        return as_text(
            [
                Heading(f"agentx find: {self.about}, {self.goal.knob}: {conditions}"),
                Lines((self._about(),)),
                Table(columns, rows),
                Heading("Answer"),
                Lines((self.answer,)),
                *((Heading("Know before use"), Lines(notes, bullet=True)) if notes else ()),
            ]
        )

    def _about(self) -> str:
        how = "simulated in virtual time: every figure is of a model" if self.simulated else "replayed"
        return f"{how}; {self.goal.knob} in {self.goal.unit}"

    def _row(self, spot: Spot) -> tuple[str, ...]:
        figures = (_figure(spot, at) for at in range(len(self.goal.conditions)))
        failed = f" ({spot.failed} failed)" if spot.failed else ""
        met = "INVALID" if spot.invalid else "yes" if spot.good else "no" if not spot.met else "in part"
        return (
            self.goal.text(spot.value),
            str(len(spot.trials)),
            met if not spot.mixed else f"{spot.met} of {len(spot.trials)}",
            f"{spot.requests}{failed}",
            *figures,
            number(spot.output),
            number(spot.output_per_gpu),
            _SERVER[spot.server],
        )

    @property
    def answer(self) -> str:
        """One or two sentences."""
        found, goal = self.bracket, self.goal
        runs = {1: "its run", 2: "both runs"}.get(self.repeats, f"all {self.repeats} runs")
        if found.good is None:
            return f"Not met even at the lowest that was tried: {goal.knob} {goal.text(found.bad or 0.0)}."
        met = f"{goal.knob} {goal.text(found.good)} is met by {runs}"
        if found.bad is None:
            why = "the trace has no more sessions to play at a time" if self.exhausted else "the limit lies above"
            return f"{met}, the highest that was tried: {why}."
        apart = f"{(found.bad / found.good - 1) * 100:.1f} %"
        bad = next(spot for spot in self.spots if spot.value == found.bad)
        missed = "is not" if not bad.mixed else f"is not by {len(bad.trials) - bad.met} of {len(bad.trials)}"
        return (
            f"{met}, {goal.text(found.bad)} {missed}: the limit lies between {goal.text(found.good)} and "
            f"{goal.text(found.bad)} {goal.unit} ({apart} apart)."
        )

    @property
    def notes(self) -> Iterator[str]:
        """What to know before using the answer."""
        yield from self._sureness()
        yield from self._order()
        yield from self._servers()
        if (few := [spot for spot in self.spots if self._few(spot)]) and self.goal.knob == "sessions":
            played = max(trial.plays for trial in few[0].trials)
            yield (
                f"At {self.goal.text(few[0].value)} sessions at a time only {played} were played in all: hardly any "
                "of the run was at that load. A longer trace, or recycle with measure, plays more."
            )
        for spot in self.spots:
            if why := next((trial.invalid for trial in spot.trials if trial.invalid), None):
                yield f"{self.goal.knob} {self.goal.text(spot.value)} counts as not met, its figures are invalid: {why}"

    def _few(self, spot: Spot) -> bool:
        return max(trial.plays for trial in spot.trials) < 2 * spot.value > 2

    def _sureness(self) -> Iterator[str]:
        if self.repeats == 1:
            yield "One run of each point: how far repeats would disagree is not known. --repeats 3 tells."
            return
        for spot in self.spots:
            if spot.mixed:
                yield (
                    f"The repeats disagree at {self.goal.knob} {self.goal.text(spot.value)}: {spot.met} of "
                    f"{len(spot.trials)} met. The limit is no surer than that."
                )
        if self.simulated and all(map(_alike, self.spots)):
            yield (
                "The runs of each point are all alike to half a percent: hardly anything in them is drawn, so they do "
                "not say how far runs of a server would differ."
            )
            return
        good = self._answer
        if good is not None:
            ranges = (f"{one.name} {_range(one.name, good.values(at))}" for at, one in enumerate(self.goal.conditions))
            yield f"At {self.goal.text(good.value)} the {self.repeats} runs span {', '.join(ranges)}."

    def _order(self) -> Iterator[str]:
        if above := out_of_order(self._good):
            told = ", ".join(map(self.goal.text, above))
            yield (
                f"Not in order: {self.goal.knob} {told} was met, though {self.goal.text(self.bracket.bad or 0)} was "
                "not. The lower answer is given."
            )
        for at, one in enumerate(self.goal.conditions):
            for low, high in pairwise(self.spots):
                before, after = low.values(at), high.values(at)
                if before and after and _better(before, after, one.figure.at_most):
                    yield (
                        f"Not in order: {one.name} is better at {self.goal.knob} {self.goal.text(high.value)} than at "
                        f"{self.goal.text(low.value)} ({_range(one.name, after)}, {_range(one.name, before)})."
                    )

    def _servers(self) -> Iterator[str]:
        if self.goal.knob != "rate":
            return
        below = [spot for spot in self.spots if spot.server == "below"]
        if below:
            told = ", ".join(self.goal.text(spot.value) for spot in below)
            yield (
                f"Below saturation (rate {told}) the output is what was offered, rate x tokens of a session, whatever "
                "the server does: it is no measure of its speed."
            )
        if self._answer is not None and self._answer.server == "saturated":
            yield "At the answer more and more sessions were live: in a longer run the figures would be worse."
        if any(spot.server == "unknown" for spot in self.spots):
            here = self._answer is not None and self._answer.server == "unknown"
            yield (
                f"Where the server is unknown{', as at the answer,' if here else ''} there were fewer than 20 "
                "sessions, or each took more than a quarter of the time in which they arrived: the run is too short "
                "to tell."
            )

    def document(self) -> dict[str, Any]:
        """Plain values, ready for json.dumps."""
        found = self.bracket
        return {
            "schema": SCHEMA,
            "about": self.about,
            "simulated": self.simulated,
            "searched": {"name": self.goal.knob, "key": self.goal.key, "unit": self.goal.unit},
            "conditions": [
                {"name": one.name, "limit": one.limit, "limit_text": limit_text(one.name, one.limit)}
                for one in self.goal.conditions
            ],
            "repeats": self.repeats,
            "answer": {"good": found.good, "bad": found.bad, "text": self.answer, "exhausted": self.exhausted},
            "notes": list(self.notes),
            "points": [self._point(spot) for spot in self.spots],
        }

    def _point(self, spot: Spot) -> dict[str, Any]:
        return {
            "value": spot.value,
            "met_runs": spot.met,
            "output_tokens_per_second": spot.output,
            "output_tokens_per_second_per_gpu": spot.output_per_gpu,
            "server": spot.server,
            "runs": [
                {
                    "run": trial.run,
                    "met": trial.met,
                    "requests": trial.requests,
                    "failed": trial.failed,
                    "figures": {one.objective.name: one.value for one in trial.verdicts},
                    "endless": [one.objective.name for one in trial.verdicts if one.endless],
                    "output_tokens_per_second": trial.output,
                    "server": trial.server,
                    "invalid": trial.invalid,
                }
                for trial in spot.trials
            ],
        }

    def plot(self) -> str:
        """SVG: the figure of each condition, and the output, over what was searched."""
        values = tuple(self.goal.text(spot.value) for spot in self.spots)
        panels = [
            Panel(
                f"{one.name}{_UNITS[one.figure.unit]}",
                (Series("mean of runs", tuple(mean(list(spot.values(at))) for spot in self.spots)),),
            )
            for at, one in enumerate(self.goal.conditions)
        ]
        output = Series("mean of runs", tuple(spot.output for spot in self.spots))
        return svg(
            f"{self.about}: {self.answer}",
            Axis(self.goal.unit, values),
            [*panels, Panel("output, tokens/s", (output,))],
        )


_UNITS = {"time": ", s", "rate": ", tokens/s", "share": ", share"}


def _figure(spot: Spot, at: int) -> str:
    """The mean of the runs, and from where to where they go."""
    verdicts = [trial.verdicts[at] for trial in spot.trials]
    values = spot.values(at)
    if any(one.endless for one in verdicts):
        return "no answer"
    if len(values) < len(verdicts):
        return "unknown"
    return _range(verdicts[0].objective.name, values)


def _range(name: str, values: list[float]) -> str:
    if not values:
        return "unknown"
    low, high = figure_text(name, min(values)), figure_text(name, max(values))
    return low if low == high else f"{low} - {high}"


def _alike(spot: Spot) -> bool:
    columns = zip(*((trial.output, *(one.value for one in trial.verdicts)) for trial in spot.trials), strict=True)
    known = ([value for value in column if value is not None] for column in columns)
    return all(not column or max(column) - min(column) <= ALIKE * max(column) for column in known)


def _better(before: list[float], after: list[float], at_most: bool) -> bool:
    """Whether all runs at the higher load are better than all at the lower, by a share that is worth a word."""
    if at_most:
        return max(after) < (1 - BETTER) * min(before)
    return min(after) > (1 + BETTER) * max(before)
