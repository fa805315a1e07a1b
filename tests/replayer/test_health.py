"""How the client watches itself."""

from __future__ import annotations

import asyncio
import gc

from agentx.replayer.health import Cpu, Health, LoopLag, Pauses, open_files, seldom_collecting, waited_for_cpu


def test_lag():
    assert LoopLag().facts() == {"samples": 0, "mean": None, "p99": None, "max": None}
    assert LoopLag([0.0, 0.003, 0.001]).facts() == {"samples": 3, "mean": 0.004 / 3, "p99": 0.003, "max": 0.003}


def test_the_collectors_settings_come_back():
    before = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collecting():
        assert gc.get_threshold() != before[0]
        assert gc.get_freeze_count() > 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_pauses_are_timed_by_what_the_collector_says():
    now = 0.0
    pauses = Pauses(clock=lambda: now)
    for took in (0.25, 0.5):
        pauses.hear("start", {})
        now += took
        pauses.hear("stop", {})
        now += 1.0
    assert (pauses.count, pauses.seconds, pauses.longest) == (2, 0.75, 0.5)


def test_real_collections_are_heard_while_it_listens():
    pauses = Pauses()
    gc.collect()
    with pauses.heard():
        gc.collect()
    gc.collect()
    assert pauses.count == 1


def test_cpu_is_judged_by_seconds():
    now = used = 0.0
    cpu = Cpu(clock=lambda: now, used=lambda: used)
    assert cpu.facts() == {"seconds": 0, "full": 0, "mean": None, "busiest": None}
    cpu.look()
    for share in (0.25, 1.0, 0.5, 0.95):
        now, used = now + 1.0, used + share
        cpu.look()
    assert cpu.facts() == {"seconds": 4, "full": 2, "mean": 0.675, "busiest": 1.0}


async def test_a_loop_that_is_held_up_is_seen():
    health = Health()
    with health.measured():
        watching = asyncio.ensure_future(health.watch())
        for _ in range(5):
            await asyncio.sleep(0)
        end = asyncio.get_running_loop().time() + 0.08
        while asyncio.get_running_loop().time() < end:
            pass
        await asyncio.sleep(0.06)
        watching.cancel()
        facts = health.facts()
    assert facts["loop_lag"]["max"] > 0.02  # it held the loop for 80 ms, 30 of them behind the timer
    assert facts["loop_cpu"]["busiest"] > 0
    assert facts["cpu_seconds"] > 0
    assert facts["files"]["limit"] > 0


def test_what_the_system_tells():
    waited, files = waited_for_cpu(), open_files()
    assert waited is None or waited >= 0
    assert files is None or files >= 3
