"""`simulate`: a trace, a plan and an engine target in; a run folder out, in virtual time.

What is sent is what `replay` sends, by the same schedule; what comes back is the embedded engine's, without HTTP and
without a clock. For a seed (or a salt) the results are the same to the last byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agentx.content import Encoder, WordList, lexicon
from agentx.engine.engine import Engine
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.embedded import MODEL, facts_of
from agentx.replayer.folder import Facts, check_free, copy_trace, default_folder
from agentx.replayer.health import seldom_collecting
from agentx.replayer.lockstep import Course, course_of, left_out_notes, schedule_of, told_of
from agentx.replayer.order import Order, fates_of, order_of, source_of
from agentx.replayer.plan import Plan
from agentx.replayer.progress import VirtualBar
from agentx.replayer.prompts import Prompts
from agentx.replayer.simulation import Simulation
from agentx.replayer.wires import Wire
from agentx.results import ResultsWriter, RunResults, read_results
from agentx.wire.salting import namespace

NOTE = "simulated in virtual time: no client, no network, no server process; times are the target's timing model"
WALL = 0.0  # a simulation has no date


def simulate(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    order_from: str | Path | None = None,
    progress: bool = False,
    signals: bool = False,
) -> RunResults:
    """Play `trace` (a file, or a workload's name) against the embedded engine that `target` describes.

    The arguments are those of `replay`; `salt` None is derived from the plan's seed. `progress` says on stderr what was
    chosen and shows a bar of virtual seconds if that is a terminal. `signals`: SIGINT and SIGTERM end the run, whose
    books are written. Raises BadInput, also for a target that is a server.
    """
    with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
        folder = default_folder("sim") if out is None else Path(out)
        check_free(folder)
        order = order_of(trace, plan, target, sets, folder=folder, scratch=Path(scratch), salt=salt or "")
        for note in order.notes if progress else ():
            print(f"agentx simulate: {note}", file=sys.stderr)
        course = course_of(order_from, order.trace)
        _run(order, salt or derived_salt(order.plan.seed), course, progress=progress, signals=signals)
    return read_results(folder)


def derived_salt(seed: int, repeat: int = 1) -> str:
    """The salt of a simulation that was given none: the same for a seed, and another for each repeat."""
    name = f"simulate/{seed}" + (f"/{repeat}" if repeat > 1 else "")
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def _run(order: Order, salt: str, course: Course | None, *, progress: bool, signals: bool) -> None:
    settings, plan = order.target.settings, order.plan
    if not isinstance(settings, EngineSettings):
        raise BadInput(
            f"the target {order.target.name} is a server, and only an engine can be simulated",
            hint="agentx replay plays against it; --target laptop simulates",
        )
    copied = copy_trace(order.trace, order.out, always=order.made)
    more = {} if course is None else {"order_from": course.record()}
    facts = Facts(plan, order.target, order.trace, salt, facts_of(settings), None, copied, embedded=True, more=more)
    writer = ResultsWriter(order.out, {**facts.settings(), "simulated": True}, WALL)
    with contextlib.closing(writer), VirtualBar(plan.measure.seconds, wanted=progress) as bar:
        source = source_of(facts)
        fates = fates_of(facts)
        wire = Wire(plan.wire, MODEL, exact=plan.length == "exact", history=plan.history, shape=plan.messages)
        encoder = Encoder(WordList(lexicon()))
        with _signals() if signals else contextlib.nullcontext(lambda: None) as stopping:
            simulation = Simulation(
                schedule=schedule_of(iter(source), plan.rules, fates, course),
                engine=Engine(settings),
                prompts=Prompts(encoder, chat=wire.text, policy=plan.salt, salt=salt, shape=plan.messages),
                writer=writer,
                wire=wire,
                namespace=lambda send: namespace(plan.salt, salt, send.session.key, send.play),
                stall=plan.timeouts.stall,
                on_overflow=fates.when_refused,
                measured=plan.measure.seconds,
                told=bar.show,
                stopping=stopping,
            )
            for note in (NOTE, *order.notes, *(() if course is None else (course.note,))):
                writer.note(note)
            with seldom_collecting():
                simulation.run()
        for note in (*source.found.notes(), *left_out_notes(simulation.schedule)):
            writer.note(note)
        simulation.schedule.check_integrity()
        dropped = len(source.found.dropped) + simulation.schedule.empty
        told = {**simulation.facts(), **source.found.facts(), **told_of(simulation.schedule)}
        writer.end(_outcome(simulation), simulation.now, {**told, "dropped_sessions": dropped})
    if simulation.error is not None:
        raise simulation.error


def _outcome(simulation: Simulation) -> str:
    if simulation.interrupted:
        return "interrupted"
    return "failed" if simulation.schedule.stopped else "done"


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[], str | None]]:
    """Says by which signal the run was told to end; a second one ends the process."""
    told: list[str] = []
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def first(number: int, frame: object) -> None:
        told.append(f"interrupted by {signal.Signals(number).name}")
        for each, handler in before.items():
            signal.signal(each, handler)

    for each in before:
        signal.signal(each, first)
    try:
        yield lambda: told[0] if told else None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
