"""`replay`: a trace, a plan and a target in; a run folder out.

Everything that can be refused is refused before the folder exists: the plan, the trace's head, the target's answer.
From then on whatever happens is in the folder: failed turns, an interruption, an input that breaks in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import ClientSession
from yarl import URL

from agentx.content import Encoder, WordList, lexicon
from agentx.errors import BadInput
from agentx.replayer.acceptance import check_server
from agentx.replayer.bodies import Bodies
from agentx.replayer.client import Clock, Silence, open_session
from agentx.replayer.cold import prove_cold
from agentx.replayer.counters import Scraper
from agentx.replayer.drive import Driver
from agentx.replayer.folder import Facts, check_free, copy_trace, default_folder
from agentx.replayer.order import Order, fates_of, order_of, source_of, trace_notes
from agentx.replayer.plan import Plan
from agentx.replayer.probe import confirmed_words
from agentx.replayer.progress import Progress
from agentx.replayer.schedule import Schedule
from agentx.replayer.servers import facts_of_all
from agentx.replayer.serving import Serving, serving
from agentx.replayer.source import Source
from agentx.replayer.targets import Endpoint, request_headers, session_headers
from agentx.replayer.wires import Wire
from agentx.results import ResultsWriter, RunResults, read_results
from agentx.wire.history import TEXT_WIRES


def replay(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    cold: bool = False,
    progress: bool = False,
    signals: bool = False,
) -> RunResults:
    """Replay a trace and return the run, which is also in the folder `out`. See `areplay`."""
    run = areplay(
        trace, plan=plan, target=target, out=out, sets=sets, salt=salt, cold=cold, progress=progress, signals=signals
    )
    return asyncio.run(run)


async def areplay(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    cold: bool = False,
    progress: bool = False,
    signals: bool = False,
) -> RunResults:
    """Replay `trace` (a file, or a workload's name) against `target` (a URL, a file or a name; None: embedded engine).

    `plan` None plays every session once, one at a time, with pauses that end in minutes. `sets` override keys of the
    plan, and of the target behind `target.`. `salt` repeats another run's words. `cold`: prove first that the cache can
    be seen and emptied, and begin with an empty one. `out` None: a new folder here.
    `progress` says on stderr what was chosen, and shows a bar if that is a terminal. `signals`: SIGINT and SIGTERM end
    the run, whose books are written.
    A failed turn is data and raises nothing. Raises BadInput, and Unreachable and InvalidMeasurement (of `cold`) before
    anything is written.
    """
    with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
        folder = default_folder() if out is None else Path(out)
        check_free(folder)
        salt = secrets.token_hex(8) if salt is None else salt
        order = order_of(trace, plan, target, sets, folder=folder, scratch=Path(scratch), salt=salt)
        for note in order.notes if progress else ():
            print(f"agentx replay: {note}", file=sys.stderr)
        async with serving(order, progress=progress) as served:
            await _run(order, served, cold=cold, progress=progress, signals=signals)
    return read_results(folder)


async def _run(order: Order, served: Serving, *, cold: bool, progress: bool, signals: bool) -> None:
    plan, endpoint = order.plan, served.endpoint
    async with open_session(request_headers(endpoint)) as session:
        server, servers = await facts_of_all(session, endpoint)
        check_server(plan.acceptance, server)
        embedded = "engine_rules" in server
        words = None if embedded else await confirmed_words(session, endpoint.base, server["model"])
        if words is None and not embedded and plan.wire not in TEXT_WIRES:
            raise BadInput(f"{endpoint.base} has no /tokenize, so its token ids are not known", hint="wire: chat")
        await served.warm_up(session, order, server, words)
        proof = [await _prove(plan, session, base, server, words) for base in endpoint.bases if cold]
        copied = copy_trace(order.trace, order.out, always=order.made)
        more = {**served.facts, **({"servers": servers} if servers else {})}
        facts = Facts(plan, order.target, order.trace, order.salt, server, words, copied, embedded, more)
        settings, start = facts.settings(), time.monotonic()
        writer = ResultsWriter(order.out, settings, time.time())
        with contextlib.closing(writer):
            source = source_of(facts)
            driver = _driver(facts, source, endpoint, session, writer, lambda: time.monotonic() - start, progress)
            for note in (*order.notes, *served.notes, *proof, *_words_note(facts)):
                writer.note(note)
            with _signals(driver) if signals else contextlib.nullcontext():
                await driver.run()
            for note in (*trace_notes(source), *served.ending()):
                writer.note(note)
            driver.schedule.check_integrity()
            dropped = len(source.dropped) + driver.schedule.empty
            writer.end(_outcome(driver), driver.clock(), {**driver.facts(), "dropped_sessions": dropped})
    if driver.error is not None:
        raise driver.error


async def _prove(
    plan: Plan, session: ClientSession, base: str, server: Mapping[str, Any], words: WordList | None
) -> str:
    """Prove that the cache can be seen and emptied, on the wire of the plan."""
    wire, page = Wire(plan.wire, server["model"]), server.get("page_size") or 1
    return await prove_cold(session, base, wire, words or WordList(lexicon()), page, time.monotonic)


def _driver(
    facts: Facts,
    source: Source,
    endpoint: Endpoint,
    session: ClientSession,
    writer: ResultsWriter,
    clock: Clock,
    progress: bool,
) -> Driver:
    plan, fates = facts.plan, fates_of(facts)
    wire = Wire(plan.wire, facts.server["model"], exact=plan.length == "exact", history=plan.history)
    words, urls = facts.words or WordList(lexicon()), [URL(base + wire.path) for base in endpoint.bases]
    return Driver(
        schedule=Schedule(iter(source), plan.rules, fates),
        session=session,
        url=lambda send: urls[send.lane % len(urls)],
        wire=wire,
        bodies=Bodies(Encoder(words), wire, policy=plan.salt, salt=facts.salt),
        headers=lambda send: session_headers(endpoint, send.session.key, send.play),
        writer=writer,
        scraper=Scraper(session, endpoint.metrics_urls, clock, endpoint.roles),
        silence=Silence(plan.timeouts.stall, clock),
        clock=clock,
        progress=Progress(clock, plan.measure.sessions, wanted=progress),
        run_id=secrets.token_hex(4),
        on_overflow=fates.when_refused,
        measured=plan.measure.seconds,
    )


@contextlib.contextmanager
def _signals(driver: Driver) -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the run with its books; a second SIGINT ends the process at once."""
    loop = asyncio.get_running_loop()
    both = (signal.SIGINT, signal.SIGTERM)

    def first(name: str) -> None:
        for each in both:
            loop.remove_signal_handler(each)
        driver.interrupt(name)

    for each in both:
        loop.add_signal_handler(each, first, f"interrupted by {each.name}")
    try:
        yield
    finally:
        for each in both:
            loop.remove_signal_handler(each)


def _words_note(facts: Facts) -> Iterator[str]:
    if facts.words is not None:
        yield f"{len(facts.words.words)} of {len(lexicon())} words are one token each to the target, and are used"
    elif not facts.embedded:
        yield "the target has no /tokenize: how many tokens a word is was not confirmed"


def _outcome(driver: Driver) -> str:
    if driver.interrupted:
        return "interrupted"
    return "failed" if driver.schedule.stopped else "done"
