"""The public engine in virtual time."""

from __future__ import annotations

import random

import pytest

from agentx.engine.engine import Admitted, Engine, EngineSettings, Event, Finished, Refused, Request, Retracted, Tokens
from agentx.engine.settings import LAPTOP


def engine(**changes: object) -> Engine:
    return Engine(EngineSettings.model_validate(changes))


def prompt(seed: int, tokens: int) -> bytes:
    return random.Random(seed).randbytes(4 * tokens)


def drain(target: Engine, now: float = 0.0) -> list[Event]:
    events: list[Event] = []
    due: float | None = now
    while due is not None:
        new, due = target.step(due)
        events += new
        target.check_integrity()
    return events


def ended(events: list[Event]) -> list[Finished]:
    return [event for event in events if isinstance(event, Finished)]


def test_one_request_takes_the_time_of_its_parts() -> None:
    target = engine()
    target.submit(Request("a", prompt(1, 1000), 3, ignore_eos=True), 10.0)
    events = drain(target, 10.0)
    start = 10.0 + LAPTOP.request
    first = start + LAPTOP.prefill_batch + LAPTOP.prefill_token * 1000 + LAPTOP.prefill_token_context * 499_500
    step = [LAPTOP.decode_step + LAPTOP.decode_request + LAPTOP.decode_context * (1000 + i) for i in range(2)]
    times = [event.at for event in events]
    assert [type(event) for event in events] == [Admitted, Tokens, Tokens, Tokens, Finished]
    assert times == pytest.approx([start, first, first + step[0], first + sum(step), first + sum(step)])


def test_a_second_turn_finds_the_first_and_its_reply() -> None:
    target = engine()
    target.submit(Request("a", prompt(1, 100), 20, ignore_eos=True), 0.0)
    reply = b"".join(event.ids for event in drain(target) if isinstance(event, Tokens))
    assert len(reply) == 80
    target.submit(Request("b", prompt(1, 100) + reply + prompt(2, 10), 1), 1.0)
    assert ended(drain(target, 1.0))[0].cached_device == 119  # the reply's last token has no KV


def test_namespaces_do_not_share() -> None:
    target = engine()
    for rid, namespace, at in (("a", "x", 0.0), ("b", "y", 1.0), ("c", "x", 2.0)):
        target.submit(Request(rid, prompt(1, 100), 1, namespace=namespace), at)
        hit = ended(drain(target, at))[0].cached_device
        assert hit == (99 if rid == "c" else 0)


def test_replies_are_words_that_depend_on_the_prompt_alone() -> None:
    replies = []
    for _ in range(2):
        target = engine()
        target.submit(Request("a", prompt(1, 50), 30, ignore_eos=True), 0.0)
        replies.append(b"".join(event.ids for event in drain(target) if isinstance(event, Tokens)))
    assert replies[0] == replies[1]
    words = [replies[0][i : i + 4].decode() for i in range(0, len(replies[0]), 4)]
    assert all(word[0] == " " and word[1].isupper() and word[2:].islower() for word in words)


@pytest.mark.parametrize(
    ("max_new", "min_new", "ignore_eos", "reason", "least"),
    [
        (4000, 0, False, "stop", 16),  # stops by itself, at 16 to 512 tokens
        (4000, 1000, False, "stop", 1000),  # but not before min_new
        (10, 0, False, "length", 10),
        (600, 0, True, "length", 600),
    ],
)
def test_ends(max_new: int, min_new: int, ignore_eos: bool, reason: str, least: int) -> None:
    target = engine()
    target.submit(Request("a", prompt(1, 50), max_new, min_new, ignore_eos), 0.0)
    end = ended(drain(target))[0]
    assert end.reason == reason
    assert least <= end.completion_tokens <= max(512, least)


def test_decodes_wait_while_a_long_prompt_is_prefilled() -> None:
    target = engine(scheduler={"chunk": 1000})
    target.submit(Request("short", prompt(1, 10), 50, ignore_eos=True), 0.0)
    events, due = target.step(0.1)
    target.submit(Request("long", prompt(2, 5000), 1), 0.1)
    events += drain(target, 0.1)
    first = next(event.at for event in events if isinstance(event, Tokens) and event.rid == "long")
    admitted = next(event.at for event in events if isinstance(event, Admitted) and event.rid == "long")
    assert due is not None
    assert not [e for e in events if isinstance(e, Tokens) and e.rid == "short" and admitted < e.at <= first]
    assert first - admitted > 5 * LAPTOP.prefill_batch


def test_chunks_can_be_hit_before_the_prompt_is_done() -> None:
    target = engine(scheduler={"chunk": 1000})
    target.submit(Request("a", prompt(1, 5000), 1), 0.0)
    target.submit(Request("b", prompt(1, 3000), 1), 0.0)
    by_rid = {event.rid: event for event in ended(drain(target))}
    assert by_rid["b"].cached_device == 2999


def test_late_steps_change_nothing() -> None:
    """A server that wakes up late sees the same times as a simulation that jumps."""
    exact, late = engine(), engine()
    for target in (exact, late):
        for i in range(5):
            target.submit(Request(f"r{i}", prompt(i, 300), 40, ignore_eos=True), 0.01 * i)
    assert late.step(100.0)[0] == drain(exact)


def test_the_queue_is_limited_and_the_limit_said_as_sglang_says_it() -> None:
    target = engine(scheduler={"queue": 1})
    target.submit(Request("a", prompt(1, 10), 1), 0.0)
    with pytest.raises(Refused, match="The request queue is full") as caught:
        target.submit(Request("b", prompt(1, 10), 1), 0.0)
    assert caught.value.status == 503


@pytest.mark.parametrize(
    ("tokens", "max_new", "message"),
    [
        (1000, 1, "The input (1000 tokens) is longer than the model's context length (1000 tokens)."),
        (900, 200, "Requested token count exceeds the model's maximum context length of 1000 tokens. You requested a "),
        (600, 10, "Input length (600 tokens) exceeds the maximum allowed length (494 tokens)."),
    ],
)
def test_what_does_not_fit_is_refused(tokens: int, max_new: int, message: str) -> None:
    target = engine(context=1000, cache={"pool": 500})
    with pytest.raises(Refused) as caught:
        target.submit(Request("a", prompt(1, tokens), max_new), 0.0)
    assert caught.value.status == 400
    assert caught.value.message.startswith(message)


def test_an_id_is_used_once_at_a_time() -> None:
    target = engine()
    target.submit(Request("a", prompt(1, 10), 1), 0.0)
    with pytest.raises(Refused, match="Duplicate"):
        target.submit(Request("a", prompt(1, 10), 1), 0.0)
    drain(target)
    target.submit(Request("a", prompt(1, 10), 1), 1.0)


@pytest.mark.parametrize("at", [0.0, 0.002, 0.1], ids=["waiting", "in its prefill", "decoding"])
def test_an_aborted_request_ends_and_leaves_no_reply(at: float) -> None:
    target = engine()
    target.submit(Request("a", prompt(1, 1000), 500, ignore_eos=True), 0.0)
    events, _ = target.step(at)
    target.abort("a", at)
    events += drain(target, at)
    end = ended(events)[0]
    assert (end.reason, len(ended(events))) == ("abort", 1)
    counters = target.counters()
    assert (counters.used, counters.totals.aborted, counters.totals.requests) == (0, 1, 0)
    assert counters.evictable in (0, 1000)
    target.abort("a", at)
    assert drain(target, at) == []


def test_flush_waits_for_requests() -> None:
    target = engine()
    target.submit(Request("a", prompt(1, 100), 1), 0.0)
    assert not target.flush()
    drain(target)
    assert target.flush()
    assert target.counters().available == target.counters().pool
    target.submit(Request("b", prompt(1, 100), 1), 1.0)
    assert ended(drain(target, 1.0))[0].cached_device == 0


def test_memory_pressure_retracts_and_everyone_ends() -> None:
    target = engine(cache={"pool": 1000}, context=1000)
    for i in range(40):
        target.submit(Request(f"r{i}", prompt(i, 20 + i), 200, min_new=200), 0.05 * i)
    events = drain(target)
    assert {end.rid for end in ended(events)} == {f"r{i}" for i in range(40)}
    assert all(end.completion_tokens == 200 for end in ended(events))
    retracted = [event for event in events if isinstance(event, Retracted)]
    assert retracted
    counters = target.counters()
    assert counters.totals.retracted_requests == len(retracted)
    admitted = [event.rid for event in events if isinstance(event, Admitted)]
    assert len(admitted) == len(set(admitted))  # told once, at the first admission
    made = sum(len(event.ids) // 4 for event in events if isinstance(event, Tokens))
    assert made == counters.totals.generation_tokens


def test_counters_and_events_tell_the_same() -> None:
    target = engine(cache={"pool": 4000, "page": 16}, scheduler={"chunk": 512, "max_running": 4})
    for i in range(20):
        target.submit(Request(f"r{i}", prompt(i % 5, 300) + prompt(i, 40), 60, ignore_eos=i % 2 == 0), 0.05 * i)
    ends = ended(drain(target))
    totals = target.counters().totals
    assert totals.requests == len(ends) == 20
    assert totals.prompt_tokens == sum(end.prompt_tokens for end in ends) == 20 * 340
    assert totals.generation_tokens == sum(end.completion_tokens for end in ends)
    assert totals.cached_device == totals.prefill_device_hit == sum(end.cached_device for end in ends) > 0
    assert totals.prefill_input + totals.prefill_device_hit == 20 * 340


def test_speculation_accepts_several_tokens_a_step() -> None:
    speculation = {"algorithm": "EAGLE", "steps": 3, "draft_tokens": 4, "acceptance": {"length": 4.0}}
    target = engine(speculation=speculation)
    target.submit(Request("a", prompt(1, 100), 10, ignore_eos=True), 0.0)
    events = drain(target)
    assert [len(event.ids) // 4 for event in events if isinstance(event, Tokens)] == [1, 4, 4, 1]
    assert (ended(events)[0].verify_steps, ended(events)[0].histogram) == (3, (0, 0, 0, 3))


@pytest.mark.parametrize(("length", "cached"), [(4.0, 110), (3.0, 110), (1.0, 109)])
def test_an_overshooting_step_leaves_the_last_token_cached(length: float, cached: int) -> None:
    """I2: 10 tokens; steps of 4 overshoot (1 + 12), steps of 3 end exactly (1 + 9), as do steps of 1."""
    speculation = {"algorithm": "EAGLE", "steps": 3, "draft_tokens": 4, "acceptance": {"length": length}}
    target = engine(speculation=speculation)
    target.submit(Request("a", prompt(1, 100), 10, ignore_eos=True), 0.0)
    reply = b"".join(event.ids for event in drain(target) if isinstance(event, Tokens))
    target.submit(Request("b", prompt(1, 100) + reply + prompt(2, 5), 1), 9.0)
    expected = cached if length == 4.0 else 109
    assert ended(drain(target, 9.0))[0].cached_device == expected


def any_settings(rng: random.Random) -> EngineSettings:
    page = rng.choice([1, 8, 64])
    pool = rng.choice([6, 12, 40]) * max(page, 16)
    host = {"tokens": rng.choice([0, 1, 3]) * pool // 2 // page * page}
    host["write"] = rng.choice(["write_through", "write_through_selective", "write_back"])
    scheduler = {"chunk": rng.choice([64, 512]), "max_running": rng.choice([1, 3, 64]), "queue": rng.choice([None, 3])}
    speculation: dict[str, object] = {}
    if rng.random() < 0.4:
        acceptance = {"length": 1 + 3 * rng.random(), "method": rng.choice(["match-expected", "multinomial"])}
        speculation = {"algorithm": "EAGLE", "steps": 3, "draft_tokens": 4, "acceptance": acceptance}
    cache = {"pool": pool, "page": page, "host": host, "bigram": rng.random() < 0.2}
    return EngineSettings.model_validate({"cache": cache, "scheduler": scheduler, "speculation": speculation})


@pytest.mark.parametrize("seed", range(15))
def test_any_traffic_ends_and_the_books_balance_at_every_step(seed: int) -> None:
    rng = random.Random(seed)
    settings = any_settings(rng)
    target, pool = Engine(settings), settings.cache.pool
    contexts = [rng.randbytes(4 * rng.randrange(1, pool // 8)) for _ in range(6)]
    session_of: dict[str, int] = {}
    events: list[Event] = []
    now = 0.0
    for number in range(80):
        session, rid = rng.randrange(6), str(number)
        most = rng.randrange(0, rng.choice([8, 60, pool]))
        try:
            target.submit(Request(rid, contexts[session], most, ignore_eos=rng.random() < 0.5), now)
            session_of[rid] = session
        except Refused:
            contexts[session] = contexts[session][:40]
        if rng.random() < 0.1:
            target.abort(str(rng.randrange(number + 1)), now)
        now += rng.random() * rng.choice([0.001, 0.05, 0.3])
        new, _ = target.step(now)
        target.check_integrity()
        events += new
        for event in new:
            if isinstance(event, Tokens):
                contexts[session_of[event.rid]] += event.ids
    events += drain(target, now)
    assert sorted(end.rid for end in ended(events)) == sorted(session_of)
    assert all(end.cached_device + end.cached_host < end.prompt_tokens for end in ended(events))
    assert (target.counters().used, target.flush()) == (0, True)
    target.check_integrity()
