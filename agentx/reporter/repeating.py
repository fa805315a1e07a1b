"""A plan with `repeats`: the same work several times, each run in a folder of its own and with words of its own.

One table of the runs. What they say of a comparison is for `agentx compare --a … --b …`, which takes them as they lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentx.replayer.order import plan_of, trace_named
from agentx.replayer.plan import Plan, split_sets
from agentx.reporter.batch import ASIDE, Job, check_folder, check_salt, check_trace, play, repeated, trace_in
from agentx.reporter.goodput_text import slo_document, value_text, verdict_text
from agentx.reporter.reporting import Report, report
from agentx.reporter.sweeping import COLUMNS, cells, figures_of, typical
from agentx.reporter.table import Heading, Lines, Table, as_text
from agentx.results import RunResults

SCHEMA = "agentx/repeats/1"


@dataclass(frozen=True, slots=True)
class Repeats:
    """Run and report of each, in order."""

    about: str
    runs: tuple[tuple[RunResults, Report], ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        """One table for a terminal; the objectives of every run where the plan has some."""
        figures = [figures_of(found) for _, found in self.runs]
        rows = [(run.folder.name, *cells(each)) for (run, _), each in zip(self.runs, figures, strict=True)]
        rows.append(("mean", *cells(typical(figures))))
        table = Table(("run", *COLUMNS), tuple(rows))
        return as_text([Heading(f"agentx repeats: {self.about}"), Lines(self.notes), table, *self._verdicts()])

    def _verdicts(self) -> list[Heading | Table]:
        rows = [
            (run.folder.name, str(one.objective), value_text(one), verdict_text(one))
            for run, found in self.runs
            for one in found.judged.verdicts
        ]
        return [Heading("Objectives"), Table(("run", "of the run", "value", "verdict"), tuple(rows))] if rows else []

    def document(self) -> dict[str, Any]:
        """Plain values, ready for json.dumps."""
        return {
            "schema": SCHEMA,
            "about": self.about,
            "notes": list(self.notes),
            "runs": [
                {"run": run.folder.name, "figures": asdict(figures_of(found)), "slo": slo_document(found.judged)}
                for run, found in self.runs
            ],
        }


def repeat(
    trace: str | Path | None = None,
    *,
    out: Path | str,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    progress: bool = False,
    simulated: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Repeats:
    """As many runs as the plan's `repeats` says, in `run-1`, `run-2` … of `out`; finished ones there are read.

    `simulated` False replays, and `more` is what else `replay` is to be given; the other arguments are those of
    `simulate`. Raises what those raise.
    """
    known = plan_of(plan, split_sets(sets)[0])
    check_salt(salt, known.repeats, simulated)
    folder, name = Path(out), trace_named(trace, known)
    check_trace(name)
    check_folder(folder, _ours)
    path = trace_in(folder, name, known.seed)
    made = []
    for number in range(1, known.repeats + 1):
        own = repeated(folder, number)
        job = Job(path, plan, target, tuple(sets), own, simulated, salt, number, own.name, more or {})
        run = play(job, progress=progress, signals=progress)
        made.append((run, report(run)))
    what = f"{made[0][1].about.title}, {known.repeats} runs"
    chosen = tuple(note for note in made[0][0].notes if note.startswith("no plan given"))
    model = ("every figure is of a model, simulated in virtual time",) if simulated else ()
    return Repeats(what, tuple(made), (*model, *chosen))


def _ours(name: str) -> bool:
    return name.startswith(("run-", "trace-", f"{ASIDE}-")) or name == "repeats.json"
