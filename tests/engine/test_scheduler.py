"""Batches without a clock: who is in, how much of whom, who has to go."""

from __future__ import annotations

import random

import pytest

from agentx.engine import admission
from agentx.engine.engine import cache_of
from agentx.engine.jobs import Job
from agentx.engine.messages import Admitted, Event, Finished, Request, Retracted, Tally
from agentx.engine.scheduler import Batch, Scheduler
from agentx.engine.settings import EngineSettings


def prompt(seed: int, tokens: int) -> bytes:
    return random.Random(seed).randbytes(4 * tokens)


def scheduler(**changes: object) -> Scheduler:
    settings = EngineSettings.model_validate(changes)
    return Scheduler(settings, cache_of(settings), Tally())


def add(
    target: Scheduler, name: str, ids: bytes, max_new: int = 10, ready: float = 0.0, *, ignore_eos: bool = False
) -> Job:
    job = Job(Request(name, ids, max_new, 0, ignore_eos), max_new, ready, forced=False, bound=1)
    target.waiting.append(job)
    return job


def plan(target: Scheduler, now: float = 0.0) -> tuple[list[tuple[str, tuple[int, int]]], Batch]:
    """(name, tokens computed) of the next batch; (0, 0) for a decode."""
    batch = target.plan(now, [])
    assert batch is not None
    spans = batch.spans or [(0, 0)] * len(batch.jobs)
    return [(job.request.rid, span) for job, span in zip(batch.jobs, spans, strict=True)], batch


def steps(target: Scheduler, count: int) -> list[list[tuple[str, tuple[int, int]]]]:
    seen = []
    for _ in range(count):
        shown, batch = plan(target)
        seen.append(shown)
        target.complete(batch, [])
    return seen


def test_a_batch_takes_whole_prompts_and_then_the_chunk_of_one() -> None:
    target = scheduler(scheduler={"chunk": 100})
    for name, tokens in (("a", 40), ("b", 30), ("c", 90), ("d", 50)):
        add(target, name, prompt(ord(name), tokens))
    assert steps(target, 3) == [
        [("a", (0, 40)), ("b", (0, 30)), ("c", (0, 30))],
        [("c", (30, 90)), ("d", (0, 40))],  # the one under way comes first; one at a time
        [("d", (40, 50))],
    ]
    assert [name for name, _ in steps(target, 1)[0]] == ["a", "b", "c", "d"]  # only now they decode


def test_chunks_end_at_pages() -> None:
    target = scheduler(scheduler={"chunk": 70}, cache={"pool": 1600, "page": 16})
    add(target, "a", prompt(1, 200))
    assert [span for [(_, span)] in steps(target, 4)] == [(0, 64), (64, 134), (134, 200), (0, 0)]


def test_first_come_first_served_and_not_before_they_are_ready() -> None:
    target = scheduler()
    add(target, "a", prompt(1, 10))
    add(target, "b", prompt(2, 10), ready=5.0)
    assert plan(target, 1.0)[0] == [("a", (0, 10))]


def test_no_more_than_may_run() -> None:
    target = scheduler(scheduler={"max_running": 2})
    for name in "abc":
        add(target, name, prompt(ord(name), 10), max_new=3, ignore_eos=True)
    assert [len(shown) for shown in steps(target, 3)] == [2, 2, 2]  # a prefill, two decodes
    assert steps(target, 1) == [[("c", (0, 10))]]


def test_twins_in_one_batch_find_nothing() -> None:
    target = scheduler()
    for name in "abc":
        add(target, name, prompt(1, 50))
        if name == "b":
            steps(target, 1)
    shown, _ = plan(target)
    assert shown == [("c", (49, 50))]
    assert target.tally.prefill_device_hit == 49


@pytest.mark.parametrize(("pool", "admitted"), [(222, 1), (223, 2)])
def test_prompt_reply_and_a_page_have_to_fit(pool: int, admitted: int) -> None:
    """100 + 10 + a page each: 222 tokens, and one to spare."""
    target = scheduler(cache={"pool": pool})
    for name in "ab":
        add(target, name, prompt(ord(name), 100))
    assert len(plan(target)[0]) == admitted


def test_what_runs_is_promised_a_share_of_its_reply() -> None:
    for ignore_eos, admitted in ((False, True), (True, False)):
        target = scheduler(cache={"pool": 1000})
        add(target, "a", prompt(1, 100), max_new=400, ignore_eos=ignore_eos)
        steps(target, 1)
        add(target, "b", prompt(2, 100), max_new=400)
        # 900 tokens are left; 0.7 of 399, or all, are promised: b needs 501
        assert (plan(target)[0] == [("b", (0, 100))]) is admitted


def test_the_share_decays_and_starts_anew_when_idle() -> None:
    target = scheduler()
    job = add(target, "a", prompt(1, 10), max_new=700, ignore_eos=True)
    steps(target, 11)
    assert target.ratio == pytest.approx(admission.RATIO_START - 10 * admission.RATIO_DECAY)
    while not job.done:
        steps(target, 1)
    assert target.idle
    assert target.ratio == admission.RATIO_START


@pytest.mark.parametrize(("before", "name"), [(3, "c"), (1, "b")], ids=["shortest reply", "then longest prompt"])
def test_who_is_retracted(before: int, name: str) -> None:
    target = scheduler(cache={"pool": 130})
    jobs = {key: add(target, key, prompt(ord(key), tokens), 30) for key, tokens in (("a", 20), ("b", 30))}
    steps(target, before)
    jobs["c"] = add(target, "c", prompt(3, 15), 30)
    target.ratio = 0.0  # as if experience said that replies are short
    steps(target, 1)
    events: list[Event] = []
    while not any(isinstance(event, Retracted) for event in events):
        batch = target.plan(0.0, events)
        assert batch is not None
        target.complete(batch, events)
    assert [event.rid for event in events if isinstance(event, Retracted)] == [name]
    gone = jobs[name]
    assert (gone.retractions, gone.lease, target.waiting) == (1, None, [gone])
    assert gone.out == target.tally.retracted_output > 0  # what was sent stands
    while not target.idle:
        batch = target.plan(0.0, events)
        assert batch is not None
        target.complete(batch, events)
    assert all(job.done for job in jobs.values())
    assert not any(isinstance(event, Admitted) for event in events)  # a second admission is not told


def test_the_last_one_is_aborted_when_nothing_can_be_retracted() -> None:
    target = scheduler(cache={"pool": 40})
    job = add(target, "a", prompt(1, 30), 9, ignore_eos=True)
    job.planned = job.max_new = 25  # more than the engine lets in: as if it had been admitted by mistake
    job.max_new = 1
    events: list[Event] = []
    while not target.idle:
        batch = target.plan(0.0, events)
        if batch is not None:
            target.complete(batch, events)
    end = events[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.status, target.cache.free + target.cache.evictable) == ("abort", 500, 40)


def test_waiting_prefixes_are_kept_fresh() -> None:
    """S2: without it, the prefix of the queued request would be the first to be evicted."""
    target = scheduler(cache={"pool": 600}, scheduler={"chunk": 10})
    for seed in (1, 2):
        add(target, "warm", prompt(seed, 50), 1)
        steps(target, 5)
    add(target, "long", prompt(3, 350), 40, ignore_eos=True)
    add(target, "queued", prompt(1, 50) + prompt(4, 10), 1)
    steps(target, 35)
    assert [job.request.rid for job in target.waiting] == ["queued"]
    assert target.cache.make_room(180)
    assert target.cache.match(prompt(1, 50), 50).device == 50
    assert target.cache.match(prompt(2, 50), 50).device < 50
