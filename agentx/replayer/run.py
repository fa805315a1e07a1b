"""`replay`: a trace, a plan and a target in; a run folder out.

Everything that can be refused is refused before the folder exists: the plan, the trace's head, the target's answer.
From then on whatever happens is in the folder: failed turns, an interruption, an input that breaks in the middle.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from aiohttp import ClientSession

from agentx.content import WordList, lexicon
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.acceptance import check_server
from agentx.replayer.client import open_session
from agentx.replayer.cold import prove_cold
from agentx.replayer.folder import Facts, check_free, copy_trace, default_folder
from agentx.replayer.kv_recorder import check_installed
from agentx.replayer.limits import check_files
from agentx.replayer.lockstep import course_of
from agentx.replayer.order import Order, order_of
from agentx.replayer.plan import Plan
from agentx.replayer.playing import Options, Playing
from agentx.replayer.probe import confirmed_words
from agentx.replayer.progress import Watch
from agentx.replayer.servers import facts_of_all
from agentx.replayer.serving import Serving, serving
from agentx.replayer.split import check_workers
from agentx.replayer.targets import request_headers
from agentx.replayer.wires import Wire
from agentx.results import RunResults, read_results
from agentx.wire.history import TEXT_WIRES

P = ParamSpec("P")


async def areplay(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    sets: Sequence[str] = (),
    salt: str | None = None,
    cold: bool = False,
    order_from: str | Path | None = None,
    workers: int = 1,
    ray: str | None = None,
    progress: bool = False,
    signals: bool = False,
    watch: Watch | None = None,
) -> RunResults:
    """Replay `trace` (a file, or a workload's name) against `target` (a URL, a file or a name; None: embedded engine).

    `plan` None plays every session once, one at a time, with pauses that end in minutes. `sets` override keys of the
    plan, and of the target behind `target.`. `salt` repeats another run's words. `cold`: prove first that the cache can
    be seen and emptied, and begin with an empty one. `out` None: a new folder here.
    `order_from`: another run of this trace, in whose order the turns are sent (`lockstep.py`).
    `workers` processes share the plan, or as many actors on the Ray cluster at the address `ray`. `progress` says on
    stderr what was chosen, and shows a bar if that is a terminal. `signals`: SIGINT and SIGTERM end the run, whose
    books are written. `watch`: from where it can be asked how it is, as it goes on.
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
        check_workers(order.plan.load, workers)
        check_files(order.plan.load, workers, embedded=isinstance(order.target.settings, EngineSettings))
        check_installed(getattr(order.target.settings, "kv_events", ()))
        course = course_of(order_from, order.trace)
        if course is not None and (workers > 1 or ray):
            raise BadInput(
                "--order-from is one order of all turns: it cannot be split over workers", hint="--workers 1"
            )
        options = Options(cold, course, workers, ray, progress, signals, watch)
        async with serving(order, progress=progress) as served:
            await _run(order, served, options)
    return read_results(folder)


def _waited_for(run: Callable[P, Coroutine[Any, Any, RunResults]]) -> Callable[P, RunResults]:
    """The same, for a caller without an event loop: it takes what `run` takes and returns when that has ended."""

    @wraps(run)
    def replay(*args: P.args, **kwargs: P.kwargs) -> RunResults:
        return asyncio.run(run(*args, **kwargs))

    replay.__name__ = replay.__qualname__ = "replay"
    return replay


replay = _waited_for(areplay)


async def _run(order: Order, served: Serving, options: Options) -> None:
    plan, endpoint = order.plan, served.endpoint
    headers = request_headers(endpoint)
    async with open_session(headers) as session:
        server, servers = await facts_of_all(session, endpoint)
        check_server(plan.acceptance, server)
        embedded = "engine_rules" in server
        words = None if embedded else await confirmed_words(session, endpoint.base, server["model"])
        if words is None and not embedded and plan.wire not in TEXT_WIRES:
            raise BadInput(f"{endpoint.base} has no /tokenize, so its token ids are not known", hint="wire: chat")
        await served.prepare(session, order, server, words)
        proof = [await _prove(plan, session, base, server, words) for base in endpoint.bases if options.cold]
        copied = copy_trace(order.trace, order.out, always=order.made)
        course = options.course
        more = {**served.facts, **({"servers": servers} if servers else {})}
        more |= {} if course is None else {"order_from": course.record()}
        facts = Facts(plan, order.target, order.trace, order.salt, server, words, copied, embedded, more)
        notes = (*order.notes, *(() if course is None else (course.note,)), *served.notes, *proof, *_words_note(facts))
        playing = Playing(facts, order.out, endpoint, session, notes, served.ending, options)
        await (playing.together(headers) if options.workers > 1 or options.ray else playing.alone())


async def _prove(
    plan: Plan, session: ClientSession, base: str, server: Mapping[str, Any], words: WordList | None
) -> str:
    """Prove that the cache can be seen and emptied, on the wire of the plan."""
    wire, page = Wire(plan.wire, server["model"]), server.get("page_size") or 1
    return await prove_cold(session, base, wire, words or WordList(lexicon()), page, time.monotonic)


def _words_note(facts: Facts) -> Iterator[str]:
    if facts.words is not None:
        yield f"{len(facts.words.words)} of {len(lexicon())} words are one token each to the target, and are used"
    elif not facts.embedded:
        yield "the target has no /tokenize: how many tokens a word is was not confirmed"
