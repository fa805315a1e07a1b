"""Faults that users of load generators have reported, of what sends and measures: each as a class, in words.

The right value is asserted, not only that nothing breaks. What concerns traces is in test_known_faults_traces.py.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from itertools import pairwise
from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Thread, Turn
from agentx.engine.server import running
from agentx.engine.settings import load_engine
from agentx.replayer.run import areplay
from agentx.replayer.simulate import simulate
from agentx.reporter.compare import compare
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter
from tests.making import SHARED, linear

_spec = importlib.util.spec_from_file_location("faulty_server", Path(__file__).with_name("faulty_server.py"))
faulty = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(faulty)
FaultyServer, serving = faulty.FaultyServer, faulty.serving

QUICK = ("gaps.scale=0", "timeouts.stall=300ms")
SLOW = ["target.timing.prefill_batch=1s", "target.timing.decode_step=1ms"]


@pytest.fixture
def write(tmp_path):
    """A function that writes sessions to a trace file."""

    def make(*sessions: Session) -> Path:
        with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
            for each in sessions:
                writer.session(each)
        return tmp_path / "t.trace"

    return make


async def against(plan, path, out, *sets):
    """(run, server) of a replay against a server whose request number n does `plan(n)`."""
    faults = FaultyServer(plan if callable(plan) else lambda n: plan)
    async with serving(faults) as url:
        run = await areplay(path, target=url, out=out, sets=[*QUICK, *sets])
    assert run.books().balanced
    return run, faults


@pytest.fixture
def engine():
    """The URL of an embedded engine that outlives a run."""
    with running(load_engine("laptop", text="agentx: target/1\nkind: engine\n")) as url:
        yield url


# --- when something is measured ---------------------------------------------------------------------------------------


def test_time_that_a_request_waits_in_the_client_is_in_its_latency(write, tmp_path):
    """Coordinated omission: 10 arrivals a second, one connection, a second for each answer."""
    rate = ["load={rate: {kind: constant, per_second: 10}, requests: 1}", "gaps.scale=0", *SLOW]
    run = simulate(write(*(linear(1, id=f"s{n}", reply=1) for n in range(10))), out=tmp_path / "run", sets=rate)
    latency = report(run).metrics.latency
    assert latency.ttft.at(99) < 1.1
    assert latency.ttft_from_due.maximum == pytest.approx(10 * 1.0 - 0.9, abs=0.1)  # the last of ten, due at 0.9 s
    assert latency.lag.maximum == pytest.approx(9 * 1.0 - 0.9, abs=0.1)


async def test_the_first_token_is_neither_the_role_nor_the_end_of_the_thinking(write, tmp_path):
    role, _ = await against("late_role", write(linear(1)), tmp_path / "role")
    assert role.attempts[0].first - role.attempts[0].first_byte > 0.03
    thought, _ = await against("reasoning", write(linear(1, reply=11)), tmp_path / "thought")
    (attempt,) = thought.attempts
    assert attempt.last - attempt.first > 0.03  # the answer comes 0.05 s behind the first thought
    assert (attempt.completion_tokens, sum(chunk.tokens for chunk in attempt.chunks)) == (11, 11)


async def test_tokens_that_were_asked_for_are_not_taken_for_tokens_that_came(write, tmp_path):
    """No usage in the stream: two tokens came, 512 were asked for; a time per token of 512 is 250 times too good."""
    run, _ = await against("no_usage", write(linear(1, reply=512)), tmp_path / "run")
    metrics = report(run).metrics
    assert metrics.latency.tpot is None
    assert metrics.lengths.osl is None
    assert metrics.throughput.completed.output.tokens is None
    assert "tokens_unknown" in {finding.kind for finding in report(run).findings}


@pytest.mark.parametrize("fault", ["cut_short", "empty", "closed"])
async def test_a_200_with_nothing_or_half_of_it_is_no_success(write, tmp_path, fault):
    run, _ = await against(fault, write(linear(1)), tmp_path / "run")
    assert report(run).metrics.completed == 0


async def test_a_character_over_two_reads_is_one_character(write, tmp_path):
    run, _ = await against("utf8", write(linear(1)), tmp_path / "run", "history=live")
    assert run.attempts[0].extra["reply_text"].startswith("é")
    assert "\ufffd" not in run.attempts[0].extra["reply_text"]


async def test_tokens_without_text_are_counted_where_their_text_comes(write, tmp_path):
    """A fixed token id that decodes to half a character: nothing for 100 steps, then a burst."""
    run, _ = await against("silent_steps", write(linear(1, reply=101)), tmp_path / "run")
    (attempt,) = run.attempts
    assert [chunk.tokens for chunk in attempt.chunks] == [101]
    assert attempt.first - attempt.first_byte > 0.03
    latency = report(run).metrics.latency
    assert (latency.tpot, latency.tpot_missing) == (None, 1)  # nothing tells a time per token


async def test_a_server_that_never_answers_ends_the_turn_and_not_the_run(write, tmp_path):
    run, _ = await against(
        lambda n: "silent" if n == 0 else "ok", write(linear(2), linear(1, id="b")), tmp_path / "run"
    )
    assert [attempt.failure and attempt.failure.kind for attempt in run.attempts] == ["stall", None]
    assert run.complete


async def test_a_failed_turn_frees_its_lane_and_accounts_for_its_children(write, tmp_path):
    """Turn 2 of 5 fails, and in another session the parent of a subagent: the third session is played all the same."""
    prompt = Prompt((Piece(2, 0, 25),))
    calls = [(0, 0, ()), (1, 1, (0,)), (2, 0, (0, 1))]
    turns = tuple(Turn(index, thread, prompt, 25, Output(2), after) for index, thread, after in calls)
    tree = Session("tree", turns, (Thread(0), Thread(1, 0, "subagent")), shared=SHARED)
    run, _ = await against(
        lambda n: "500" if n in (1, 2) else "ok", write(linear(5), tree, linear(1, id="b")), tmp_path / "run"
    )
    assert [(play.session, play.outcome, play.sent, play.turns) for play in run.plays] == [
        ("s", "failed", 2, 5),
        ("tree", "failed", 1, 3),
        ("b", "done", 1, 1),
    ]
    books = run.books()
    assert (books.turns, books.completed, books.turns_failed, books.turns_unsent) == (9, 2, 2, 5)


async def test_as_many_requests_are_in_flight_as_the_plan_says(write, tmp_path):
    """A pool of 100 connections would keep the other 50 back, and call their wait the server's."""
    faults = FaultyServer(lambda n: "together")
    faults.together = 150
    path = write(*(linear(1, id=f"s{n}", reply=1) for n in range(150)))
    async with serving(faults) as url:
        run = await areplay(path, target=url, out=tmp_path / "run", sets=["gaps.scale=0", "load.sessions=150"])
    assert all(attempt.ok for attempt in run.attempts)


async def test_a_connection_that_the_server_closes_while_a_tool_runs_is_not_its_error(write, tmp_path):
    run, _ = await against("race", write(linear(4)), tmp_path / "run")
    assert report(run).metrics.completed == 4


async def test_a_reply_that_never_ends_does_not_hold_the_warm_up(write, tmp_path):
    for fault in ("endless", "stall"):
        plan = lambda n, fault=fault: fault if n == 0 else "ok"  # noqa: E731
        sets = ["warmup.turns=1", "load.sessions=1", "on_failure=continue"]
        run, _ = await asyncio.wait_for(against(plan, write(linear(3)), tmp_path / fault, *sets), 30)
        assert [(one.phase, one.ok) for one in run.attempts] == [
            ("warmup", False),
            ("measure", True),
            ("measure", True),
        ]


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["chat", "generate", "chat-ids", "completions-ids", "messages"])
async def test_every_token_that_is_sent_is_one_token_to_the_server(write, tmp_path, wire):
    """Random ids that are decoded and encoded again change their number; words that are one token each do not."""
    run = await areplay(write(linear(3)), out=tmp_path / "run", sets=["gaps.scale=0", f"wire={wire}"])
    assert report(run).metrics.reuse.ideal.drift == 0
    markers = {attempt.prompt_tokens - attempt.isl for attempt in run.attempts}
    assert markers == ({0} if wire in ("generate", "chat-ids", "completions-ids") else {3, 5, 7})  # a marker a message


async def test_each_prompt_begins_with_the_one_before_it(write, tmp_path):
    """Prompts that are made anew for each turn look like traffic without reuse."""
    _, faults = await against("ok", write(linear(4)), tmp_path / "run")
    sent = [body["messages"] for body in faults.bodies]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))


async def test_the_servers_own_reply_goes_on_as_the_ids_that_it_made(write, tmp_path):
    """Text that is tokenised again breaks the chain at every turn; ids do not: all but the last token is hit."""
    sets = ["gaps.scale=0", "wire=generate", "history=live-ids"]
    run = await areplay(write(linear(4, reply=20)), out=tmp_path / "run", sets=sets)
    one, *others = run.attempts
    for attempt in others:
        assert attempt.cached.total == one.prompt_tokens + one.completion_tokens - 1
        one = attempt


async def test_a_second_run_does_not_meet_what_the_first_left_behind(write, tmp_path, engine):
    """The same trace and seed twice against a server that keeps its cache: the first prompt misses both times.

    All but the marker of a role, a token that all prompts begin with.
    """
    path, sets = write(linear(3)), ["gaps.scale=0"]
    runs = [await areplay(path, target=engine, out=tmp_path / f"{n}", sets=sets) for n in range(2)]
    assert [run.attempts[0].cached.total for run in runs] == [0, 1]
    warm = [await areplay(path, target=engine, out=tmp_path / f"w{n}", sets=[*sets, "salt=none"]) for n in range(2)]
    assert warm[1].attempts[0].cached.total == warm[1].attempts[0].prompt_tokens - 1
    assert "surplus" in {finding.kind for finding in report(warm[1]).findings}


async def test_each_request_says_how_long_its_reply_may_be(write, tmp_path):
    """A server's default of 16 tokens would cut every replayed reply."""
    _, faults = await against("ok", write(linear(2, reply=40)), tmp_path / "run")
    assert [(body["max_tokens"], body["min_tokens"]) for body in faults.bodies] == [(40, 40)] * 2


async def test_an_aborted_call_is_replayed_as_one_token_and_never_as_none(write, tmp_path):
    session = linear(2)
    aborted = Session("s", (session.turns[0], Turn(1, 0, session.turns[1].prompt, 90, Output(0), (0,))),
                      segments=session.segments, shared=SHARED)  # fmt: skip
    run, faults = await against("ok", write(aborted), tmp_path / "run")
    assert [body["max_tokens"] for body in faults.bodies] == [5, 1]
    assert report(run).metrics.completed == 2


async def test_what_does_not_fit_the_context_is_not_sent_and_said(write, tmp_path):
    """4,000 tokens and a reply of 200 do not fit 4,096, although the prompt alone does."""
    fits, not_ = linear(1, fresh=3735, id="fits"), linear(1, fresh=3935, reply=200, id="not")  # 3,800; 4,000
    run, faults = await against("ok", write(fits, not_), tmp_path / "run")
    assert [attempt.session for attempt in run.attempts] == ["fits"]
    assert len(faults.bodies) == 1
    told = report(run).document()["adjustments"]
    assert told["empty_sessions"] == 1
    assert any("1 session was dropped" in note for note in run.notes)


def test_nine_of_ten_sessions_that_do_not_fit_are_named_with_their_number(write, tmp_path):
    """A cap on the context that shrinks the corpus to its short tail must not leave a run that looks whole."""
    path = write(*(linear(3, id=f"s{n}", fresh=10 if n == 0 else 400) for n in range(10)))
    sets = ["gaps.scale=0", "target.context=300", "overflow=drop_turn"]
    run = simulate(path, out=tmp_path / "run", sets=sets)
    assert {attempt.session for attempt in run.attempts} == {"s0"}
    assert any("9 sessions were dropped" in note for note in run.notes)
    assert "9 sessions were dropped" in report(run).text()


# --- what is reported -------------------------------------------------------------------------------------------------


async def test_a_later_turns_prompt_is_in_the_sum_and_in_the_share(write, tmp_path):
    """Input tokens of 0 for turns of a conversation give a hit rate with the wrong denominator."""
    run = await areplay(write(linear(2)), out=tmp_path / "run", sets=["gaps.scale=0"])
    prompts = [attempt.prompt_tokens for attempt in run.attempts]
    document = report(run).document()["reuse"]["by_request"]
    assert document["prompt_tokens"] == sum(prompts) == 78 + 95
    assert document["share"] == sum(attempt.cached.total for attempt in run.attempts) / sum(prompts)


async def test_zeros_of_a_server_that_cannot_tell_are_unknown(write, tmp_path):
    """With speculative decoding some report 0 cached tokens for a prompt that they have just seen."""
    run, _ = await against("no_cache_told", write(linear(3)), tmp_path / "run")
    reuse = report(run).metrics.reuse
    assert reuse.by_request.share is None
    assert reuse.ideal.share > 0.5


def test_throughput_has_no_total_and_cached_input_stands_apart(write, tmp_path):
    """Input and output in one figure, or cached prompts as work done, make a run look fast for what it did not do."""
    run = simulate(write(linear(20, fresh=400)), out=tmp_path / "run", sets=["gaps.scale=0"])
    found, text = report(run), report(run).text()
    done = found.metrics.throughput.completed
    assert done.input_cached.tokens > 5 * done.input_computed.tokens
    assert done.input_cached.tokens + done.input_computed.tokens == sum(one.prompt_tokens for one in run.attempts)
    assert done.output.tokens == 100
    assert "total" not in text.split("Throughput")[1].split("Reuse")[0]


def test_interactivity_says_which_of_its_two_meanings(write, tmp_path):
    """First token after 1 s, then 99 tokens in 0.99 s: 100 tokens/s while it streams, 50 from end to end."""
    free = "prefill_token: 0s, prefill_token_context: 0s, decode_request: 0s, decode_context: 0s"
    timing = f"{{request: 0s, prefill_batch: 1s, decode_step: 10ms, speculation_step: 0s, load_back_token: 0s, {free}}}"
    sets = [f"target.timing={timing}"]
    run = simulate(write(linear(1, reply=100)), out=tmp_path / "run", sets=sets)
    found = report(run).metrics.interactivity
    assert found.streaming.at(50) == pytest.approx(100, rel=0.01)
    assert found.end_to_end.at(50) == pytest.approx(100 / 1.99, rel=0.01)


def test_long_sessions_weigh_what_they_are(write, tmp_path):
    """One session of 90 turns and 15 of 3: fixed work plays every turn of each once, and jobs are counted by share."""
    path = write(linear(90, id="long", fresh=2), *(linear(3, id=f"s{n}", fresh=2) for n in range(15)))
    sets = ["gaps.scale=0", "load.sessions=8"]
    run = simulate(path, out=tmp_path / "run", sets=sets)
    assert len(run.attempts) == 90 + 45
    assert report(run).metrics.jobs.equivalents == pytest.approx(16)
    cut = simulate(path, out=tmp_path / "cut", sets=[*sets, "measure=500ms", "drain=0s", "recycle=false"])
    jobs = report(cut).metrics.jobs
    assert 15 < jobs.equivalents < 16  # the long one as far as it came, not as none and not as one


@pytest.mark.parametrize("arguments", [["replay"], ["inspect"], ["simulate"], ["import", "mooncake", "-o", "x.trace"]])
def test_a_path_that_is_not_there_is_refused_and_nothing_is_fetched(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("something was fetched"))
    assert main([*arguments, "./nope.jsonl"]) == 2
    assert "nope.jsonl: no such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


BARE = [
    # what happens, to how many turns with replies of how many tokens; what must be unknown or n/a
    ("500", 3, 4, ("ttft", "tpot", "latency")),  # nothing was answered
    ("ok", 3, 1, ("tpot", "inter_chunk")),  # one-token replies have no time between tokens
    ("ok", 1, 1, ("tpot", "inter_chunk")),  # one request: no spread
]


@pytest.mark.parametrize(("fault", "turns", "reply", "absent"), BARE)
async def test_figures_over_nothing_are_no_numbers(write, tmp_path, fault, turns, reply, absent, capsys):
    """Division by zero, or a 0 where nothing was measured."""
    path = write(linear(turns, fresh=8, reply=reply))
    run, _ = await against(fault, path, tmp_path / "run", "on_failure=continue")
    other, _ = await against(fault, path, tmp_path / "other", "on_failure=continue")
    found = report(run)
    assert [name for name in absent if getattr(found.metrics.latency, name) is not None] == []
    json.dumps(found.document(), allow_nan=False)
    text = found.text()
    assert "n/a" in text
    assert "nan" not in text.lower().replace("finance", "")
    assert main(["compare", str(run.folder), str(other.folder)]) in (0, 5)
    assert main(["report", str(run.folder), "--json"]) == 0
    assert "NaN" not in capsys.readouterr().out


def test_a_run_that_took_no_time_has_no_rates(write, tmp_path):
    names = ("request", "prefill_batch", "prefill_token", "prefill_token_context", "decode_step", "decode_request",
             "decode_context", "speculation_step", "load_back_token")  # fmt: skip
    free = f"target.timing={{{', '.join(f'{name}: 0s' for name in names)}}}"
    runs = [simulate(write(linear(2)), out=tmp_path / name, sets=["gaps.scale=0", free]) for name in "ab"]
    found = report(runs[0])
    assert found.metrics.throughput.window.seconds == 0
    assert found.metrics.in_flight is None
    for flow in (found.metrics.throughput.emitted, found.metrics.throughput.completed):
        assert flow.per_second(flow.output) is None
    assert found.metrics.interactivity.end_to_end.mean is None
    compared = compare([[runs[0].folder], [runs[1].folder]]).document()
    json.dumps(compared, allow_nan=False)


def test_a_lane_that_hardly_works_is_seen(write, tmp_path):
    """Recorded pauses of an hour: the run ends well, and was no load at all."""
    waits = []
    for each in (linear(2, id=f"s{n}") for n in range(4)):
        first, second = each.turns
        late = Turn(1, 0, second.prompt, second.isl, Output(5), (0,), Gap("tool", 3600.0))
        waits.append(Session(each.id, (first, late), segments=each.segments, shared=SHARED))
    run = simulate(write(*waits), out=tmp_path / "run", sets=["load.sessions=4", "gaps.scale=1"])
    found = report(run)
    assert 0 < found.document()["run"]["requests_in_flight_mean"] < 0.01
    assert "requests in flight" in found.text()


def test_a_segment_of_the_house(write):
    """What the tests above count with: 65 shared tokens, 10 new ones and a reply of 5 a turn."""
    assert [turn.isl for turn in linear(2).turns] == [75, 90]
    assert isinstance(linear(1).segments[100], Segment)
