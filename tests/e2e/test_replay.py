"""Whole replays over sockets: against the embedded engine, and against a server that does wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentx.cli.playing import code_of
from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Thread, TokenIds, Turn
from agentx.errors import BadInput, Unreachable
from agentx.replayer.run import areplay
from agentx.reporter.reporting import report
from agentx.results import RESULTS, read_results
from agentx.run_reuse import run_reuse
from agentx.trace import TraceWriter

_spec = importlib.util.spec_from_file_location("faulty_server", Path(__file__).with_name("faulty_server.py"))
faulty = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(faulty)
FaultyServer, serving = faulty.FaultyServer, faulty.serving

QUICK = ("gaps.scale=0", "timeouts.stall=300ms")
SHARED = {1: Segment(1, "tools", 60), 2: Segment(2, "system", 40)}


def session(name: str, turns: int = 3, *, gap: float = 0.0, out: int = 4) -> Session:
    """A growing context: each turn keeps the prompt before it, and adds its reply and 10 new tokens."""
    own, made = {}, []
    for index in range(turns):
        own[100 + 2 * index], own[101 + 2 * index] = (
            Segment(100 + 2 * index, "user", 10),
            Segment(101 + 2 * index, "assistant", out),
        )
        append = (Piece(100 + 2 * index, 0, 10),)
        prompt = Prompt((Piece(1, 0, 60), Piece(2, 0, 40), *append))
        if index:
            prompt = Prompt((Piece(99 + 2 * index, 0, out), *append), index - 1, 2 * index + 1)
        isl = 110 + index * (10 + out)
        after = (index - 1,) if index else ()
        made.append(Turn(index, 0, prompt, isl, Output(out), after, Gap("tool", gap), reply=101 + 2 * index))
    return Session(name, tuple(made), segments=own, shared=SHARED)


@pytest.fixture
def trace(tmp_path):
    """A function that writes sessions to a trace file."""

    def write(*sessions: Session) -> Path:
        path = tmp_path / "t.trace"
        with TraceWriter(path, Header(name="test", scope="test")) as writer:
            for each in sessions:
                writer.session(each)
        return path

    return write


async def faulty_run(path, out, plan, *sets, **server):
    faults = FaultyServer(plan, **server)
    async with serving(faults) as url:
        run = await areplay(path, target=url, out=out, sets=[*QUICK, *sets])
    assert run.books().balanced
    assert run.complete
    return run, faults


@pytest.mark.parametrize("wire", ["chat", "generate"])
async def test_the_engine_gives_what_is_ideal_and_counts_it_alike(trace, tmp_path, wire):
    path = trace(session("a", 4), session("b", 3))
    run = await areplay(path, out=tmp_path / "run", sets=["gaps.scale=0", f"wire={wire}", "load.sessions=2"])
    assert run.complete
    assert run.books().balanced
    assert [attempt.failure for attempt in run.attempts] == [None] * 7
    reuse = run_reuse(run)
    assert reuse.drift == 0
    cached = sum(attempt.cached.total for attempt in run.attempts)
    assert cached <= reuse.ideal.reused
    first, last = run.samples[0].values, run.samples[-1].values
    assert last["prefill_device_hit"] - first["prefill_device_hit"] == cached
    assert last["prompt_tokens"] - first.get("prompt_tokens", 0) == sum(a.prompt_tokens for a in run.attempts)
    for attempt in run.attempts:
        assert attempt.completion_tokens == attempt.osl == 4
        assert attempt.due <= attempt.sent < attempt.first <= attempt.last <= attempt.end
        assert sum(chunk.tokens for chunk in attempt.chunks) == 4


async def test_a_salt_that_is_given_again_sends_the_same_bytes(trace, tmp_path):
    path = trace(session("a"))
    sent = []
    for name, salt in (("one", "x"), ("two", "x"), ("three", None)):
        faults = FaultyServer()
        async with serving(faults) as url:
            await areplay(path, target=url, out=tmp_path / name, sets=QUICK, salt=salt)
        sent.append(faults.bodies)
    assert sent[0] == sent[1]
    assert sent[0] != sent[2]
    assert [len(body["messages"]) for body in sent[0]] == [2, 4, 6]
    assert [message["role"] for message in sent[0][1]["messages"]] == ["system", "user", "assistant", "user"]


async def test_playing_again_keeps_only_the_shared_layers(trace, tmp_path):
    path = trace(session("a", 1))
    run, faults = await faulty_run(path, tmp_path / "run", lambda n: "ok", "measure={sessions: 2}")
    one, two = (body["messages"] for body in faults.bodies)
    assert one[0] == two[0]
    assert one[1]["content"] != two[1]["content"]
    assert [(play.session, play.play) for play in run.plays] == [("a", 0), ("a", 1)]
    names = [headers["X-Session-ID"] for headers in faults.headers]
    assert names == ["a", "a#1"]


FAULTS = [
    # fault, kind of failure (None: none), of the second of three turns
    ("500", "http"),
    ("overflow", "overflow"),
    ("closed", "closed"),
    ("cut_short", "closed"),
    ("stall", "stall"),
    ("error_in_200", "stream"),
    ("json_error", "protocol"),
    ("empty", "empty"),
    ("no_usage", None),
    ("utf8", None),
    ("late_role", None),
    ("one_chunk", None),
    ("race", None),
]


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
async def test_a_fault_is_data(trace, tmp_path, fault, kind):
    run, _ = await faulty_run(
        trace(session("a")), tmp_path / "run", lambda n: fault if n == 1 else "ok", "on_failure=continue"
    )
    kinds = [attempt.failure.kind if attempt.failure else None for attempt in run.attempts]
    assert kinds == [None, kind, None]
    assert code_of(run) == 0


async def test_no_usage_is_unknown_and_never_none_at_all(trace, tmp_path):
    run, _ = await faulty_run(trace(session("a", 1)), tmp_path / "run", lambda n: "no_usage")
    (attempt,) = run.attempts
    assert (attempt.prompt_tokens, attempt.completion_tokens, attempt.cached) == (None, None, None)
    assert {chunk.tokens for chunk in attempt.chunks} == {None}
    assert attempt.first is not None


async def test_the_first_token_is_not_the_role(trace, tmp_path):
    run, _ = await faulty_run(trace(session("a", 1)), tmp_path / "run", lambda n: "late_role")
    (attempt,) = run.attempts
    assert attempt.first - attempt.first_byte > 0.03  # the server waits 0.05 s between role and token


async def test_a_reply_in_one_chunk_has_one_time(trace, tmp_path):
    run, _ = await faulty_run(trace(session("a", 1, out=20)), tmp_path / "run", lambda n: "one_chunk")
    (attempt,) = run.attempts
    assert attempt.first == attempt.last
    assert [chunk.tokens for chunk in attempt.chunks] == [20]


async def test_a_character_that_is_split_over_two_reads_comes_when_it_is_whole(trace, tmp_path):
    run, _ = await faulty_run(trace(session("a", 1)), tmp_path / "run", lambda n: "utf8")
    (attempt,) = run.attempts
    assert attempt.ok
    assert attempt.first - attempt.first_byte > 0.02


async def test_a_connection_that_closes_while_idle_is_not_the_servers_error(trace, tmp_path):
    run, faults = await faulty_run(trace(session("a", 4)), tmp_path / "run", lambda n: "race")
    assert all(attempt.ok for attempt in run.attempts)
    assert sum(attempt.extra.get("reconnects", 0) for attempt in run.attempts) >= 1
    assert len(faults.bodies) > len(run.attempts)


async def test_a_new_connection_that_is_dropped_is(trace, tmp_path):
    run, faults = await faulty_run(trace(session("a", 1)), tmp_path / "run", lambda n: "drop_new")
    assert [attempt.failure.kind for attempt in run.attempts] == ["closed"]
    assert len(faults.bodies) <= 2


@pytest.mark.parametrize(
    ("policy", "kinds", "outcomes"),
    [
        ("end_session", [None, "http", None, None, None], ["failed", "done"]),
        ("continue", [None, "http", None, None, None, None], ["done", "done"]),
        ("stop", [None, "http"], ["failed"]),
    ],
)
async def test_what_a_failure_means(trace, tmp_path, policy, kinds, outcomes):
    faults = FaultyServer(lambda n: "500" if n == 1 else "ok")
    async with serving(faults) as url:
        sets = [*QUICK, f"on_failure={policy}"]
        run = await areplay(trace(session("a"), session("b")), target=url, out=tmp_path / "run", sets=sets)
    assert [attempt.failure and attempt.failure.kind for attempt in run.attempts] == kinds
    assert [play.outcome for play in run.plays] == outcomes
    assert run.books().balanced
    assert run.end["outcome"] == ("failed" if policy == "stop" else "done")


@pytest.mark.parametrize(
    ("policy", "turns", "outcome"),
    [("drop_turn", [0, 1, 2], "done"), ("end_session", [0, 1], "failed")],
)
async def test_a_turn_that_the_server_finds_too_long(trace, tmp_path, policy, turns, outcome):
    run, _ = await faulty_run(
        trace(session("a")), tmp_path / "run", lambda n: "overflow" if n == 1 else "ok", f"overflow={policy}"
    )
    assert [attempt.turn for attempt in run.attempts] == turns
    assert [play.outcome for play in run.plays] == [outcome]


async def test_turns_that_do_not_fit_are_not_sent(trace, tmp_path):
    path = trace(session("a", 3, out=8), session("b", 1))  # prompts with markers: 113, 133, 153; room for 150
    run = await areplay(path, out=tmp_path / "run", sets=["gaps.scale=0", "target.context=150"])
    assert [(attempt.session, attempt.turn) for attempt in run.attempts] == [("a", 0), ("a", 1), ("b", 0)]
    assert run.plays[0].extra["dropped"] == 1
    assert run.books().balanced


async def test_every_turn_failed(trace, tmp_path):
    run, _ = await faulty_run(trace(session("a")), tmp_path / "run", lambda n: "500", "on_failure=continue")
    with pytest.raises(Unreachable, match=r"every turn failed \(3\), the first by http: 500: out of luck"):
        code_of(run)


async def test_a_session_without_turns_is_counted(trace, tmp_path):
    run, _ = await faulty_run(trace(Session("empty", ()), session("b", 1)), tmp_path / "run", lambda n: "ok")
    assert [play.session for play in run.plays] == ["b"]
    assert run.end["dropped_sessions"] == 1
    assert report(run).document()["adjustments"]["empty_sessions"] == 1
    assert any("1 session was dropped" in note for note in run.notes)


@pytest.mark.parametrize(("policy", "sent"), [("replay", [4, 1, 4]), ("skip", [4, 4])])
async def test_an_aborted_turn(trace, tmp_path, policy, sent):
    whole = session("a")
    turns = list(whole.turns)
    turns[1] = Turn(1, 0, turns[1].prompt, turns[1].isl, Output(0), turns[1].after)
    path = trace(Session("a", tuple(turns), segments=whole.segments, shared=SHARED))
    _, faults = await faulty_run(path, tmp_path / "run", lambda n: "ok", f"abort={policy}")
    assert [body["max_tokens"] for body in faults.bodies] == sent


@pytest.mark.parametrize(("length", "fewest"), [("exact", 4), ("max_only", None)])
async def test_lengths(trace, tmp_path, length, fewest):
    _, faults = await faulty_run(trace(session("a", 1)), tmp_path / "run", lambda n: "ok", f"length={length}")
    (body,) = faults.bodies
    assert (body["max_tokens"], body.get("min_tokens"), body["ignore_eos"]) == (4, fewest, True)


async def test_only_words_that_the_server_confirms(trace, tmp_path):
    run, faults = await faulty_run(trace(session("a", 1)), tmp_path / "run", lambda n: "ok", tokenize=True)
    words = run.settings["words"]["words"]
    assert words
    assert not any("z" in word for word in words)
    text = faults.bodies[0]["messages"][1]["content"]
    assert {text[at : at + 4] for at in range(0, len(text), 4)} <= set(words)


async def test_a_subagent_is_part_of_its_session(trace, tmp_path):
    turns = (
        Turn(0, 0, Prompt((Piece(2, 0, 40),)), 40, Output(2)),
        Turn(1, 1, Prompt((Piece(2, 0, 40),)), 40, Output(2), (0,)),
        Turn(2, 1, Prompt((Piece(2, 0, 40),)), 40, Output(2), (1,)),
        Turn(3, 0, Prompt((Piece(2, 0, 40),)), 40, Output(2), (0, 2)),
    )
    tree = Session("a", turns, (Thread(0), Thread(1, 0, "subagent")), shared=SHARED)
    run, _ = await faulty_run(trace(tree, session("b", 1)), tmp_path / "run", lambda n: "ok")
    assert [(attempt.session, attempt.turn) for attempt in run.attempts] == [
        ("a", 0),
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("b", 0),
    ]


async def test_a_measured_time(trace, tmp_path):
    path = trace(session("a", 2), session("b", 2))
    run, _ = await faulty_run(path, tmp_path / "run", lambda n: "ok", "measure=300ms", "drain=1s")
    start, stop = run.end["window"]
    assert stop - start == pytest.approx(0.3)
    assert all(attempt.due <= stop for attempt in run.attempts)
    assert len(run.attempts) > 4  # played again and again
    assert {play.outcome for play in run.plays} <= {"done", "cut"}


async def test_what_is_not_drained_in_time_is_cut(trace, tmp_path):
    path = trace(session("a", 1))
    run, _ = await faulty_run(
        path, tmp_path / "run", lambda n: "stall", "measure=100ms", "drain=100ms", "timeouts.stall=30s"
    )
    assert [attempt.failure.kind for attempt in run.attempts] == ["cut"]
    assert [play.outcome for play in run.plays] == ["cut"]


async def test_an_unreachable_target_leaves_nothing_behind(trace, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Unreachable, match="cannot be reached"):
        await areplay(trace(session("a")), target=url, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


async def test_a_folder_that_holds_a_run_is_left_alone(trace, tmp_path):
    path = trace(session("a", 1))
    await areplay(path, out=tmp_path / "run", sets=QUICK)
    with pytest.raises(BadInput, match="holds a run already"):
        await areplay(path, out=tmp_path / "run", sets=QUICK)


async def test_content_that_the_wire_cannot_carry_stops_the_run_with_its_books(tmp_path):
    path = tmp_path / "ids.trace"
    segment = Segment(1, "user", 2, TokenIds((5, 6)))
    with TraceWriter(path, Header(name="ids", scope="ids")) as writer:
        writer.session(Session("a", (Turn(0, 0, Prompt((Piece(1, 0, 2),)), 2, Output(1)),), segments={1: segment}))
    with pytest.raises(BadInput, match="token ids"):
        await areplay(path, out=tmp_path / "run", sets=QUICK)
    run = read_results(tmp_path / "run")
    assert run.end["outcome"] == "failed"
    assert run.books().balanced


async def test_a_trace_that_breaks_in_the_middle_stops_the_run_with_its_books(trace, tmp_path):
    path = tmp_path / "t.jsonl"
    with TraceWriter(path, Header(name="test", scope="test")) as writer:
        writer.session(session("a", 2))
    path.write_bytes(path.read_bytes() + b'{"frame":"turn"}\n{"frame":"x"}\n')
    with pytest.raises(BadInput, match="a turn outside a session"):
        await areplay(path, out=tmp_path / "run", sets=QUICK)
    run = read_results(tmp_path / "run")
    assert len(run.attempts) == 2
    assert run.books().balanced


def command(path, out, *more, before=None):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-m", "agentx", "replay", str(path), "-o", str(out), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, env=environment, text=True, preexec_fn=before, **pipes)


def started(out):
    """Wait until the run has recorded something."""
    for _ in range(600):
        if (out / RESULTS).exists() and read_results(out).attempts:
            return
        time.sleep(0.05)
    raise AssertionError("the run did not start")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_its_books(trace, tmp_path, which):
    out = tmp_path / "run"
    process = command(trace(session("a", 40, gap=0.1)), out, "--set", "gaps.scale=1")
    started(out)
    process.send_signal(which)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    run = read_results(out)
    assert run.end["outcome"] == "interrupted"
    assert run.books().balanced
    assert run.books().cut == 1
    assert "TTFT from sent" in stdout


def test_a_killed_run_is_readable(trace, tmp_path):
    out = tmp_path / "run"
    process = command(trace(session("a", 40, gap=0.1)), out, "--set", "gaps.scale=1")
    started(out)
    process.kill()
    process.communicate(timeout=30)
    run = read_results(out)
    assert run.end is None
    assert run.attempts
    assert run.books().balanced
    assert json.loads((out / "run.json").read_text())["plan"]["gaps"]["scale"] == 1


def test_the_command_line(trace, tmp_path):
    process = command(trace(session("a", 2)), tmp_path / "run", "--set", "gaps.scale=0", "--seed", "3")
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "Reuse of prompt tokens" in stdout
    assert "results in" in stderr
    assert "\r" not in stderr  # no bar without a terminal
    assert read_results(tmp_path / "run").settings["seed"] == 3


def test_a_full_disk_ends_the_run_in_one_line_and_what_was_written_is_readable(trace, tmp_path):
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    out = tmp_path / "run"
    process = command(trace(session("a", 3)), out, "--set", "measure={sessions: 200}", before=little_room)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert stdout == ""
    assert "writing failed" in stderr.splitlines()[-1]
    assert "Traceback" not in stderr
    run = read_results(out)
    assert run.attempts
    assert run.end is None
