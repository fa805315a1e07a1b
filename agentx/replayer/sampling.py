"""The server's counters through a run: a sample before it, every few seconds, at its turning points and behind it."""

from __future__ import annotations

import asyncio
import contextlib

from agentx.core import Sample
from agentx.replayer.counters import Scraper
from agentx.results import Records

SAMPLE_EVERY = 5.0  # s between samples of the server's counters


class Sampler:
    """Takes samples and records them, in one coroutine each."""

    def __init__(self, scraper: Scraper, records: Records) -> None:
        self._scraper, self._records = scraper, records
        self._now = asyncio.Event()

    async def take(self) -> None:
        """One sample of each endpoint."""
        self._keep(await self._scraper.sample())

    async def last(self, *, settled: bool) -> None:
        """The sample behind the run; `settled`: when the counts have come in."""
        self._keep(await (self._scraper.settled() if settled else self._scraper.sample()))

    def soon(self) -> None:
        """Ask for a sample at this moment."""
        self._now.set()

    async def watch(self) -> None:
        """Sample every SAMPLE_EVERY seconds, and when asked to, for as long as this is awaited."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._now.wait(), SAMPLE_EVERY)
            self._now.clear()
            await self.take()

    def _keep(self, samples: list[Sample]) -> None:
        for sample in samples:
            self._records.sample(sample)
