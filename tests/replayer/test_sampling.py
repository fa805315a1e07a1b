"""When counters are sampled."""

from __future__ import annotations

import asyncio

from agentx.core import Sample
from agentx.replayer.sampling import Sampler


class Counting:
    """A server whose counter rises by one with each look."""

    def __init__(self) -> None:
        self.looks = 0

    async def sample(self) -> list[Sample]:
        self.looks += 1
        return [Sample(float(self.looks), "x", {"requests": self.looks})]

    async def settled(self) -> list[Sample]:
        return [Sample(99.0, "x", {"requests": 99})]


class Kept(list):
    def sample(self, sample: Sample) -> None:
        self.append(sample.at)


async def test_before_at_a_turning_point_and_behind():
    kept = Kept()
    sampler = Sampler(Counting(), kept)
    await sampler.take()
    watching = asyncio.ensure_future(sampler.watch())
    await asyncio.sleep(0)
    assert kept == [1.0]
    sampler.soon()
    for _ in range(10):
        await asyncio.sleep(0)
    assert kept == [1.0, 2.0]
    watching.cancel()
    await sampler.last(settled=False)
    await sampler.last(settled=True)
    assert kept == [1.0, 2.0, 3.0, 99.0]
