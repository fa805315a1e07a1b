"""Plays what was resolved: alone in this process, or by several workers; from here on everything is in the folder."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import ClientSession

from agentx.errors import BadInput
from agentx.replayer.beside import recorded_beside
from agentx.replayer.client import warm
from agentx.replayer.counters import Scraper
from agentx.replayer.folder import Facts
from agentx.replayer.kv_recorder import CONNECT
from agentx.replayer.lockstep import Course, left_out_notes, schedule_of, told_of
from agentx.replayer.order import fates_of, source_of
from agentx.replayer.progress import Progress, Watch
from agentx.replayer.ray_workers import actors
from agentx.replayer.sampling import Sampler
from agentx.replayer.split import Part, split_words
from agentx.replayer.targets import Endpoint
from agentx.replayer.worker import Job, connections_of, driver_of
from agentx.replayer.workers import START, Coordinator, about, check_nodes, drifted, lead, processes
from agentx.results import ResultsWriter


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is made; what is sent does not hang on any of it, but for the course, to which it is held."""

    cold: bool = False
    course: Course | None = None
    workers: int = 1
    ray: str | None = None
    progress: bool = False
    signals: bool = False
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class Playing:
    """All that a run needs when everything that can be refused was not. `ending` gives notes when it is over."""

    facts: Facts
    out: Path
    endpoint: Endpoint
    session: ClientSession
    notes: Sequence[str]
    ending: Callable[[], Iterable[str]]
    options: Options

    async def alone(self) -> None:
        """Play all of it in this process."""
        await warm(self.session, self.endpoint.bases, connections_of(self.facts, Part()))
        facts, settings, start = self.facts, self.facts.settings(), time.monotonic()

        def clock() -> float:
            return time.monotonic() - start

        writer = ResultsWriter(self.out, settings, time.time())
        with contextlib.closing(writer):
            source, run_id = source_of(facts), secrets.token_hex(4)
            schedule = schedule_of(iter(source), facts.plan.rules, fates_of(facts), self.options.course)
            driver = driver_of(
                facts,
                schedule,
                self.endpoint,
                self.session,
                writer,
                clock,
                run_id=run_id,
                progress=self.options.progress,
            )
            if self.options.watch is not None:
                self.options.watch.of(driver.progress, lambda: schedule.in_flight, driver.health.lag.facts)
            for note in self.notes:
                writer.note(note)
            async with recorded_beside(self.endpoint, self.out, clock, writer.note, embedded=self.facts.embedded):
                with self._signals(driver.stop):
                    await driver.run()
            for note in (*source.found.notes(), *left_out_notes(schedule), *self.ending()):
                writer.note(note)
            schedule.check_integrity()
            dropped = len(source.found.dropped) + schedule.empty
            told = {**driver.facts(), **source.found.facts(), **told_of(schedule)}
            writer.end(driver.outcome, clock(), {**told, "dropped_sessions": dropped})
        if driver.error is not None:
            raise driver.error

    async def together(self, headers: Mapping[str, str]) -> None:
        """Let several workers play it, a part each."""
        plan, count, run_id, options = self.facts.plan, self.options.workers, secrets.token_hex(4), self.options
        parts, split = [Part(each, count) for each in range(count)], split_words(plan.load, count)
        for note in split if options.progress else ():
            print(f"agentx replay: {note}", file=sys.stderr)
        jobs = [Job(part, self.facts, self.endpoint, headers, run_id, self.out, options.progress) for part in parts]
        async with processes(jobs) if options.ray is None else actors(jobs, options.ray) as links:
            crew = Coordinator(links, plan.rules)
            told = await crew.ready()
            check_nodes(told, self.endpoint)
            offsets = [await link.offset() for link in links]
            ahead = START + (CONNECT if self.endpoint.kv_events else 0.0)
            settings, start = {**self.facts.settings(), "workers": about(told, offsets)}, time.monotonic() + ahead

            def clock() -> float:
                return time.monotonic() - start

            writer = ResultsWriter(self.out, settings, time.time() + ahead)
            with contextlib.closing(writer):
                for note in (*self.notes, *split):
                    writer.note(note)
                scraper = Scraper(self.session, self.endpoint.metrics_urls, clock, self.endpoint.roles)
                progress = Progress(clock, plan.measure.sessions, wanted=options.progress)
                if options.watch is not None:
                    options.watch.of(progress, progress.live, None)
                starts = [start + offset.seconds for offset in offsets]
                async with recorded_beside(self.endpoint, self.out, clock, writer.note, embedded=self.facts.embedded):
                    with self._signals(crew.stop):
                        await lead(crew, clock, starts, Sampler(scraper, writer), progress)
                for note in (*crew.told().notes(), *self.ending()):
                    writer.note(note)
                facts = crew.facts(plan.measure.seconds)
                if (apart := await drifted(crew, offsets)) > 0:
                    facts["clocks_drifted"] = apart
                    writer.note(f"the clocks of the workers' machines went {apart * 1000:.1f} ms apart during the run")
                writer.end(crew.outcome, clock(), facts)
        if crew.error is not None:
            raise BadInput(crew.error)

    def _signals(self, stop: Callable[..., None]) -> contextlib.AbstractContextManager[None]:
        return _signals(stop) if self.options.signals else contextlib.nullcontext()


@contextlib.contextmanager
def _signals(stop: Callable[..., None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the run with its books; a second SIGINT ends the process at once."""
    loop = asyncio.get_running_loop()
    both = (signal.SIGINT, signal.SIGTERM)

    def first(name: str) -> None:
        for each in both:
            loop.remove_signal_handler(each)
        stop(name, interrupted=True)

    for each in both:
        loop.add_signal_handler(each, first, f"interrupted by {each.name}")
    try:
        yield
    finally:
        for each in both:
            loop.remove_signal_handler(each)
