"""A simulation's results: the same for a seed, other words for another, refusals as of the server, balanced books."""

from __future__ import annotations

import dataclasses
import os
import signal
import time

import pytest

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, TokenIds, Turn
from agentx.engine.engine import Engine
from agentx.errors import BadInput
from agentx.replayer.plan import load_plan
from agentx.replayer.run import replay
from agentx.replayer.simulate import simulate
from agentx.reporter.reporting import report
from agentx.results import RESULTS
from agentx.run_reuse import run_reuse
from agentx.trace import TraceWriter
from tests.making import SHARED, linear

QUICK = ["gaps.scale=0.01"]


@pytest.fixture
def write(tmp_path):
    def make(*sessions, name="t.trace"):
        with TraceWriter(tmp_path / name, Header(name="t", scope="scope")) as writer:
            for each in sessions:
                writer.session(each)
        return tmp_path / name

    return make


def test_a_seed_gives_the_same_bytes_and_another_seed_does_not(write, tmp_path):
    trace = write(*(linear(5, id=f"s{n}", fresh=50 + n, reply=9) for n in range(6)))
    sets = [*QUICK, "load.sessions=3", "order=shuffle", "target.cache.pool=1200"]
    runs = [simulate(trace, out=tmp_path / f"{n}", sets=[*sets, f"seed={seed}"]) for n, seed in enumerate((5, 5, 6))]
    first, again, other = ((run.folder / RESULTS).read_bytes() for run in runs)
    assert first == again
    assert first != other
    assert report(runs[0]).text() == report(runs[1]).text()
    assert runs[0].books().balanced
    assert runs[0].complete
    assert runs[0].settings["salt"] == runs[1].settings["salt"] != runs[2].settings["salt"]
    assert runs[0].settings["simulated"] is True


@pytest.mark.parametrize(
    ("wire", "history"),
    [
        ("chat", "recorded"),
        ("chat", "live"),
        ("messages", "live"),
        ("generate", "recorded"),
        ("generate", "live-ids"),
        ("chat-ids", "live-ids"),
        ("completions-ids", "live-ids"),
    ],
)
def test_sequential_traffic_gives_what_a_replay_gives(write, tmp_path, wire, history):
    trace = write(linear(6, id="a", fresh=70, reply=9), linear(5, id="b", fresh=90, reply=7))
    sets = ["gaps.scale=0", f"wire={wire}", f"history={history}", "target.cache.pool=700", "length=max_only"]
    arguments = {"sets": sets, "salt": "x"}
    one, other = (play(trace, out=tmp_path / name, **arguments) for name, play in (("r", replay), ("s", simulate)))
    if wire == "messages":  # its streams carry no counts and know no tiers
        assert [attempt.prompt_tokens for attempt in one.attempts] == [each.prompt_tokens for each in other.attempts]
        assert [attempt.cached.total for attempt in one.attempts] == [each.cached.total for each in other.attempts]
    else:
        assert [shape(attempt) for attempt in one.attempts] == [shape(attempt) for attempt in other.attempts]
    assert [attempt.reply for attempt in one.attempts] == [attempt.reply for attempt in other.attempts]
    assert all((attempt.reply is None) == (history == "recorded") for attempt in one.attempts)
    assert run_reuse(one).by_attempt == run_reuse(other).by_attempt
    before, after = one.samples[-1].values, other.samples[-1].values
    assert {name: after[name] for name in before} == before
    assert [(play.session, play.outcome, play.sent) for play in one.plays] == [
        (play.session, play.outcome, play.sent) for play in other.plays
    ]


def shape(attempt):
    """What of an attempt hangs on no clock."""
    chunks = [chunk.tokens for chunk in attempt.chunks]
    told = attempt.prompt_tokens, attempt.completion_tokens, attempt.cached, attempt.finish, attempt.status
    return attempt.session, attempt.play, attempt.turn, attempt.isl, attempt.osl, sum(chunks), told, attempt.failure


REFUSALS = [
    # keys, what the engine lacks: the same answer with HTTP and without
    (["target.scheduler.queue=1", "target.timing.request=2s"], "503: The request queue is full."),
    (["target.context=120", "overflow=end_session"], "400: Requested token count exceeds"),
    (["target.cache.pool=100"], "400: Input length (106 tokens) exceeds the maximum allowed length"),
]


@pytest.mark.parametrize("wire", ["chat", "generate"])
@pytest.mark.parametrize(("sets", "says"), REFUSALS)
def test_what_the_server_refuses_is_refused_alike(write, tmp_path, monkeypatch, wire, sets, says):
    monkeypatch.setattr("agentx.room.Room.fits", lambda *_: True)  # as with a server that does not tell
    turn = Turn(0, 0, Prompt((Piece(9, 0, 104),)), 104, Output(30))
    trace = write(*(Session(f"s{n}", (turn,), segments={9: Segment(9, "user", 104)}) for n in range(3)))
    arguments = {"sets": [f"wire={wire}", "load.sessions=3", *sets], "salt": "x"}
    one, other = (
        sorted(play(trace, out=tmp_path / name, **arguments).attempts, key=lambda attempt: attempt.session)
        for name, play in (("r", replay), ("s", simulate))
    )
    says = says.replace("106", "104") if wire == "generate" else says
    failed = [attempt for attempt in other if attempt.failure]
    assert failed
    assert failed[0].failure.message.startswith(says)
    assert [(each.failure, each.status) for each in one] == [(each.failure, each.status) for each in other]


def test_a_loop_of_refusals_lets_time_pass(write, tmp_path):
    sets = ["load.sessions=9", "measure=2s", "target.scheduler.queue=1", "target.timing.request=0s", "gaps.scale=0"]
    run = simulate(write(*(linear(1, id=f"s{n}") for n in range(3))), out=tmp_path / "run", sets=sets)
    assert run.end["at"] >= 2.0
    assert run.books().balanced
    assert {attempt.failure.kind for attempt in run.attempts if attempt.failure} == {"stream"}


def test_a_window_is_drained_and_then_cut(write, tmp_path):
    trace = write(linear(40, id="a", reply=200))
    sets = [*QUICK, "measure=2s", "drain=100ms"]
    run = simulate(trace, out=tmp_path / "run", sets=sets)
    assert [attempt.failure and attempt.failure.kind for attempt in run.attempts][-1] == "cut"
    assert run.attempts[-1].end == pytest.approx(2.1)
    assert run.end["window"] == [0.0, 2.0]
    assert run.books().balanced


def test_a_stalled_turn_is_given_up(write, tmp_path):
    trace = write(linear(1, id="a", reply=5), linear(1, id="b", reply=5))
    sets = ["timeouts.stall=30s", "target.timing.prefill_batch=100s"]
    run = simulate(trace, out=tmp_path / "run", sets=sets)
    assert [(attempt.failure.kind, attempt.end - attempt.sent) for attempt in run.attempts] == [("stall", 30.0)] * 2
    assert run.books().balanced


def test_what_cannot_be_sent_ends_the_run_with_its_books(write, tmp_path):
    bad = Turn(0, 0, Prompt((Piece(9, 0, 2),)), 2, Output(1))
    trace = write(linear(2), Session("ids", (bad,), segments={9: Segment(9, "user", 2, TokenIds((1, 2)))}))
    with pytest.raises(BadInput, match="which a text wire cannot send"):
        simulate(trace, out=tmp_path / "run", sets=QUICK)
    from agentx.results import read_results

    run = read_results(tmp_path / "run")
    assert run.books().balanced
    assert run.attempts[-1].failure.kind == "input"


def test_an_address_cannot_be_simulated(write, tmp_path):
    with pytest.raises(BadInput, match=r"the target 127.0.0.1:1 is a server") as error:
        simulate(write(linear(2)), target="http://127.0.0.1:1", out=tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_sigint_ends_it_with_its_books(write, tmp_path, monkeypatch):
    trace = write(*(linear(5, id=f"s{n}") for n in range(20)))
    handler = signal.getsignal(signal.SIGINT)
    seen = []

    def interrupt(self, now):
        if not seen:
            seen.append(now)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("agentx.replayer.progress.VirtualBar.show", interrupt)
    run = simulate(trace, out=tmp_path / "run", sets=["gaps.scale=1"], signals=True)
    assert (run.end["outcome"], run.end["reason"]) == ("interrupted", "interrupted by SIGINT")
    assert run.books().balanced
    assert run.end["at"] == seen[0]
    assert signal.getsignal(signal.SIGINT) is handler


def test_no_clock_is_looked_at(write, tmp_path, monkeypatch):
    trace = write(linear(4))

    def refuse(*_):
        raise AssertionError("a clock was read")

    for name in ("time", "monotonic", "perf_counter", "sleep"):
        monkeypatch.setattr(time, name, refuse)
    assert simulate(trace, out=tmp_path / "run", sets=["gaps.scale=1"]).complete


def test_gaps_take_virtual_time(write, tmp_path):
    turns = [
        Turn(at, 0, Prompt((Piece(1, 0, 20),)), 20, Output(2), (at - 1,) if at else (), Gap("human", 3000.0))
        for at in range(3)
    ]
    run = simulate(write(Session("s", tuple(turns), shared=SHARED)), out=tmp_path / "run", sets=["gaps.scale=1"])
    assert [round(attempt.sent, -2) for attempt in run.attempts] == [0, 3000, 6000]
    assert len(run.samples) > 1200  # every five seconds


MIDDLE = ["load.sessions=3", "seed=1", "warmup={turns: 1}", "measure={turns: 4}"]
SPECULATION = "target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4}"
LIVE = ["wire=generate", "history=live-ids"]
SLOW = ["target.timing.decode_step=1s"]
RAMP = "load={rate: {kind: ramp, per_second: 1, to: 2, over: 10s}}"
CHANGES = [
    # a key of its own value, and another one: what is sent is not the same
    ("seed=1", "seed=2", ["start={by: time}"]),
    ("load.sessions=1", "load.sessions=2", []),
    ("load={requests: 1}", "load={requests: 3}", []),
    ("load={sessions: 4}", "load={sessions: 4, requests: 2}", []),
    ("load={sessions: 1}", "load={rate: {per_second: 1}}", []),
    ("load={rate: {per_second: 1}}", "load={rate: {per_second: 2}}", []),
    ("load={rate: {per_second: 1}}", "load={rate: {per_second: 1, kind: constant}}", []),
    ("load={rate: {per_second: 1}}", "load={rate: {per_second: 1, kind: gamma, cv: 2}}", []),
    ("load={rate: {per_second: 1, kind: gamma, cv: 3}}", "load={rate: {per_second: 1, kind: gamma, cv: 2}}", []),
    ("load={rate: {per_second: 1}}", "load={rate: {kind: recorded}}", []),
    ("load.rate.to=2", "load.rate.to=3", [RAMP]),
    ("load.rate.over=10s", "load.rate.over=20s", [RAMP]),
    ("load={rate: {per_second: 1}}", "load={rate: {per_second: 1}, requests: 1}", SLOW),
    ("seed=1", "seed=2", ["load={rate: {per_second: 1}}"]),
    ("order=file", "order=shuffle", []),
    ("recycle=true", "recycle=false", ["measure={turns: 50}"]),
    ("start={by: time}", "start={by: turns}", MIDDLE),
    ("start={by: time}", "start={by: equilibrium}", MIDDLE),
    ("start={by: time}", "start=null", MIDDLE),
    ("start={min: 0, max: 0.2}", "start={min: 0.6, max: 0.8}", MIDDLE),
    ("start={phase: spread}", "start={phase: burst}", MIDDLE),
    ("warmup.turns=0", "warmup.turns=2", []),
    ("measure={turns: 2}", "measure={turns: 3}", []),
    ("measure={sessions: 2}", "measure={sessions: 3}", []),
    ("measure=30s", "measure=60s", []),
    ("drain=0s", "drain=10s", ["measure=3s", "target.timing.decode_step=1s"]),
    ("gaps.scale=1", "gaps.scale=2", []),
    ("gaps.tree_idle_cap=null", "gaps.tree_idle_cap=1s", []),
    ("gaps.system_idle_cap=null", "gaps.system_idle_cap=1s", ["load.sessions=2"]),
    ("wire=chat", "wire=generate", []),
    ("wire=chat", "wire=chat-ids", []),
    ("wire=chat", "wire=completions-ids", []),
    ("wire=chat", "wire=messages", []),  # as many tokens as it likes, up to the recorded ones
    ("history=recorded", "history=live", []),
    ("history=recorded", "history=live-ids", ["wire=generate"]),
    ("salt=none", "salt=field", []),
    ("salt=field", "salt=field-session", []),
    ("length=exact", "length=max_only", ["target.scheduler.queue=9"]),
    ("salt=run", "salt=session", ["load.sessions=2"]),
    ("overflow=drop_turn", "overflow=end_session", ["target.context=170"]),
    ("abort=replay", "abort=skip", []),
    ("on_failure=continue", "on_failure=end_session", ["timeouts.stall=1s", "target.timing.prefill_batch=10s"]),
    ("acceptance={length: 1.5}", "acceptance={length: 2.9}", [SPECULATION]),
    ("acceptance={length: 2.9}", "acceptance={length: 2.9, tokens: real-draft-token}", [SPECULATION, *LIVE]),
    ("acceptance={length: 2.9}", "acceptance={length: 2.9, method: multinomial}", [SPECULATION]),
    ("timeouts.stall=30s", "timeouts.stall=1s", ["target.timing.prefill_batch=10s"]),
]


@pytest.mark.parametrize(("one", "other", "beside"), CHANGES)
def test_a_plan_key_that_changes_changes_what_is_sent(write, tmp_path, monkeypatch, one, other, beside):
    submitted = []
    engine_submit = Engine.submit

    def submit(self, request, now):
        submitted.append(request)
        engine_submit(self, request, now)

    monkeypatch.setattr(Engine, "submit", submit)
    sessions = [linear(6 + n % 3, id=f"s{n}", fresh=10 + 3 * n, reply=9) for n in range(5)]
    trace = write(*(spaced(session, n) for n, session in enumerate(sessions)))
    seen = []
    for name, key in (("one", one), ("other", other)):
        submitted.clear()
        run = simulate(trace, plan=load_plan(), out=tmp_path / name, sets=[*beside, key])
        assert run.books().balanced
        attempts = sorted((each.sent, each.session, each.turn, each.phase, each.failure) for each in run.attempts)
        seen.append((repr(attempts), [(each.prompt, each.max_new, each.min_new, each.namespace) for each in submitted]))
    assert seen[0] != seen[1]


def spaced(session, number):
    """The same session with pauses that differ from turn to turn; the last reply of one was given up at once."""
    turns = [
        dataclasses.replace(turn, gap=Gap("tool", 1.0 + (turn.index * 7 + number * 3) % 11)) for turn in session.turns
    ]
    if number == 1:
        turns[-1] = dataclasses.replace(turns[-1], output=Output(0), reply=None)
    return dataclasses.replace(session, turns=tuple(turns), arrival=3.5 * number)


def test_both_drivers_send_the_same_of_a_plan_that_begins_in_the_middle(write, tmp_path):
    trace = write(*(spaced(linear(9, id=f"s{n}", fresh=40 + n, reply=6), n) for n in range(4)))
    keys = ["load.sessions=1", "start={by: time, min: 0.3, max: 0.7}", "warmup={turns: 3}", "measure={turns: 6}"]
    sets = [*keys, "gaps={scale: 0.01, tree_idle_cap: 50ms, system_idle_cap: 20ms}", "salt=session", "seed=3"]
    one, other = (
        play(trace, plan=load_plan(), out=tmp_path / name, sets=sets, salt="x")
        for name, play in (("r", replay), ("s", simulate))
    )
    sent = [[(each.phase, *shape(each)) for each in run.attempts] for run in (one, other)]
    assert sent[0] == sent[1]
    assert [each.phase for each in other.attempts].count("warmup") == 3 + 1  # with the turn that primes
    assert [each.phase for each in other.attempts].count("measure") == 6
    assert one.books() == other.books()


@pytest.mark.parametrize("play", [replay, simulate])
def test_counters_are_looked_at_when_the_run_begins(write, tmp_path, play):
    trace = write(*(linear(9, id=f"s{n}", fresh=40 + n, reply=6) for n in range(4)))
    sets = ["gaps.scale=0.01", "warmup={turns: 3}", "measure={turns: 6}", "target.timing.decode_step=5ms"]
    run = play(trace, plan=load_plan(), out=tmp_path / "run", sets=sets)
    last = max(attempt.end for attempt in run.attempts if attempt.phase == "warmup")
    first = min(attempt.sent for attempt in run.attempts if attempt.phase == "measure")
    assert [sample for sample in run.samples if 0 < sample.at <= first + 0.2]
    assert last <= first
    assert len(run.samples) >= 3
