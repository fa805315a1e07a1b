"""What is to be played, resolved and checked before anything is written: trace, plan, target, salt.

A replay over HTTP and a simulation begin with the same order, so that what they send is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentx import catalog
from agentx.core import Session
from agentx.errors import BadInput
from agentx.replayer.acceptance import applied
from agentx.replayer.defaults import pace, trace_path
from agentx.replayer.fates import Fates
from agentx.replayer.folder import Facts
from agentx.replayer.plan import Plan, load_plan, split_sets
from agentx.replayer.source import Source
from agentx.replayer.starts import equilibrium
from agentx.replayer.targets import DEFAULT_TARGET, Target, resolve_target
from agentx.reuse_template import PLAIN
from agentx.room import room_of
from agentx.trace import read_trace


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for, resolved. `made`: the trace was generated for this run."""

    trace: Path
    made: bool
    plan: Plan
    target: Target
    out: Path
    salt: str
    notes: tuple[str, ...]


def order_of(
    trace: str | Path | None,
    plan: Plan | str | Path | None,
    target: str | None,
    sets: Sequence[str],
    *,
    folder: Path,
    scratch: Path,
    salt: str,
) -> Order:
    """Resolve what the arguments mean; a workload's trace is generated in `scratch`. Raises BadInput."""
    plan_sets, target_sets = split_sets(sets)
    known = plan_of(plan, plan_sets)
    name = trace_named(trace, known)
    made = isinstance(name, str) and not catalog.is_path(name)
    path = trace_path(name, known.seed, scratch) if isinstance(name, str) else name
    notes: tuple[str, ...] = ()
    reader = read_trace(path)
    if plan is None and not any(each.strip().startswith("gaps") for each in plan_sets):
        chosen = pace(reader)
        known, notes = load_plan(sets=[*chosen.sets, *plan_sets]), (str(chosen),)
    else:
        _ = reader.header  # what is not a trace is refused now
    asked = target or known.target or DEFAULT_TARGET
    known = known.model_copy(update={"trace": str(name), "target": asked})
    goal = applied(known.acceptance, resolve_target(asked, target_sets))
    return Order(path, made, known, goal, folder, salt, notes)


def plan_of(plan: Plan | str | Path | None, sets: Sequence[str]) -> Plan:
    """The plan that an argument means, with overrides. Raises BadInput."""
    if plan is None:
        return load_plan(sets=sets)
    if isinstance(plan, Plan):
        return plan.changed(sets)
    return load_plan(catalog.resolve("replays", str(plan)), sets=sets)


def trace_named(trace: str | Path | None, plan: Plan) -> str | Path:
    """The trace that was asked for, else the plan's: a file, or a workload's name. Raises BadInput for none."""
    name = trace if trace is not None else plan.trace
    if name is None:
        raise BadInput("no trace to replay", hint="name one, or a plan that has a trace")
    return name


def source_of(facts: Facts) -> Source:
    """The sessions of a run in order of play."""
    plan, trace, fates = facts.plan, read_trace(facts.trace), fates_of(facts)

    def played(session: Session) -> bool:
        return not fates.skips(session) and fates.plays(fates.made_to_fit(session))

    found = plan.start is not None and plan.start.by == "equilibrium"
    return Source(
        trace,
        shuffle=plan.order == "shuffle",
        seed=plan.seed,
        recycle=plan.recycles,
        keep=fates.plays,
        skip=fates.skips,
        fit=fates.made_to_fit,
        first=equilibrium(trace, plan.load.sessions or 1, plan.seed, played) if found else (),
    )


def fates_of(facts: Facts) -> Fates:
    """What becomes of turns on the run's server."""
    return Fates(
        overflow=facts.plan.overflow,
        skip_aborted=facts.plan.abort == "skip",
        room=room_of(facts.server, facts.template or PLAIN, facts.plan.messages),
    )
