"""`agentx record` as a process: real clients, the engine behind it, signals, and a kill."""

from __future__ import annotations

import http.server
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from capturing import sse
from recording_process import AGENTX, COMMAND, ENVIRONMENT, recording

from agentx import catalog
from agentx.engine.server import running
from agentx.engine.settings import load_engine
from agentx.recorder.capture_reader import CaptureReader
from agentx.reuse import possible_by_turn
from agentx.trace import read_trace


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with running(load_engine(catalog.resolve("targets", "laptop"))) as url:
        yield url


def ended(cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, "AGENTX_KEYS": str(cwd / "keys")}
    return subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, timeout=30, cwd=cwd, env=environment, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_real_client_is_recorded(tmp_path: Path, engine: str, number: signal.Signals) -> None:
    with recording(tmp_path, engine) as (process, url, said):
        assert said[-1] == f"  export OPENAI_BASE_URL={url}/v1\n"
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test-0123456789abcdef")
        messages = [{"role": "user", "content": " abc def ghi"}]
        plain = client.chat.completions.create(model="agentx", messages=messages, max_tokens=5)  # type: ignore[arg-type]
        stream = client.chat.completions.create(
            model="agentx", messages=messages, max_tokens=5, stream=True, stream_options={"include_usage": True}
        )  # type: ignore[call-overload]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        assert text == plain.choices[0].message.content
        client.models.list()
        client.close()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert (
        "exchanges   3 (3 done)\ncalls       2 to a model, 2 answered\nrecorded    3, of which 0 with something" in err
    )
    assert err.endswith("\nnext: agentx compile cap -o cap.trace\n")
    exchanges = list(CaptureReader(tmp_path / "cap"))
    assert [(e.wire, e.status, e.cause) for e in exchanges] == [
        ("chat", 200, "done"), ("chat", 200, "done"), (None, 200, "done"),
    ]  # fmt: skip
    assert exchanges[1].reply.endswith(b"data: [DONE]\n\n")
    assert exchanges[0].credential == exchanges[1].credential is not None
    written = b"".join(path.read_bytes() for path in (tmp_path / "cap").iterdir())
    assert b"sk-test" not in written
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


def test_a_killed_recorder_has_what_was_finished(tmp_path: Path, engine: str) -> None:
    """R25: after the group's 50 ms, with ample room, everything that had ended is on the disk."""
    with recording(tmp_path, engine) as (process, url, _):
        for number in range(5):
            body = b'{"model":"agentx","messages":[{"role":"user","content":" abc %d"}],"max_tokens":2}' % number
            request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=10).read()
        for _ in range(100):  # until the group is written, or for ten seconds
            if len([e for e in CaptureReader(tmp_path / "cap") if e.cause == "done"]) == 5:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    exchanges = list(CaptureReader(tmp_path / "cap"))
    assert [exchange.cause for exchange in exchanges] == ["done"] * 5
    assert all(exchange.body for exchange in exchanges)
    with recording(tmp_path, engine) as (process, _, _):  # the lock went with the process; the next run goes on
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert len(list(CaptureReader(tmp_path / "cap"))) == 5


def test_a_second_recorder_on_the_same_folder(tmp_path: Path, engine: str) -> None:
    with recording(tmp_path, engine) as (process, _, _):
        second = ended(tmp_path, "sglang", "--upstream", engine, "--port", "0", "-o", "cap")
        assert second.returncode == 2
        assert f"another recorder writes to this capture: process {process.pid}" in second.stderr
        assert second.stderr.count("\n") == 1


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = ended(tmp_path, "sglang", "--port", port, "-o", "cap")
    assert process.returncode == 2
    assert f"port {port}" in process.stderr
    assert "--port 0" in process.stderr
    assert not (tmp_path / "cap").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["openai"], "-o"),
        (["opnai", "-o", "cap"], "did you mean 'openai'"),
        (["openai", "-o", "cap", "--upstream", "localhost:3"], "--upstream 'localhost:3' should be a URL"),
        (["openai", "-o", "cap", "--upstream", "http://me:pw@x"], "must not hold a password"),
        (["openai", "-o", "cap", "--key", "cap/key"], "the key must lie outside"),
        (["openai", "-o", "cap", "--port", "x"], "0 to 65535"),
        (["openai", "-o", "/proc/none/cap"], "cannot be used"),
        (["openai", "-o", "cap", "--host", "203.0.113.7"], "Cannot assign requested address (--host is"),
        (["./gone.yaml", "-o", "cap"], "gone.yaml"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, args: list[str], says: str) -> None:
    process = ended(tmp_path, *args)
    assert process.returncode == 2
    assert "Traceback" not in process.stderr
    assert says in process.stderr.splitlines()[-1]
    assert not (tmp_path / "keys").exists()


def test_listening_to_other_machines_is_warned_of(tmp_path: Path, engine: str) -> None:
    with recording(tmp_path, engine, "--host", "0.0.0.0") as (_, _, said):
        assert said[0].startswith("warning: 0.0.0.0 can be reached from other machines")


def agent(url: str, name: str, turns: int) -> list[tuple[int, int, int]]:
    """A small agent: each turn keeps everything. (prompt tokens, completion tokens, cached tokens) of each."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test-0123456789abcdef")
    messages: list[dict[str, str]] = [
        {"role": "system", "content": " sys tem" * 40},
        {"role": "user", "content": f" {name} ask" * 10},
    ]
    usage = []
    for turn in range(turns):
        stream = client.chat.completions.create(
            model="agentx", messages=messages, max_tokens=8 + turn, stream=True, stream_options={"include_usage": True}
        )  # type: ignore[call-overload]
        text = ""
        for chunk in stream:
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
            if chunk.usage is not None:
                details = chunk.usage.prompt_tokens_details
                told = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens, details.cached_tokens)
        usage.append(told)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f" go{turn} on" * (turn + 1)}]
    client.close()
    return usage


def test_what_is_recorded_is_what_the_trace_says(tmp_path: Path, engine: str) -> None:
    """Record the engine, compile, read: lengths are the usage's, reuse is what the server's cache gave."""
    with recording(tmp_path, engine) as (process, url, _):
        usage = [agent(url, name, 5) for name in ("one", "two")]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    words = [*AGENTX, "compile", "cap", "-o", "b.trace"]
    environment = {**ENVIRONMENT, "AGENTX_KEYS": str(tmp_path / "keys")}
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "exchanges  10 read = 10 used + 0 dropped" in done.stderr
    assert "still linkable" in done.stderr
    sessions = list(read_trace(tmp_path / "b.trace"))
    told = [
        [(turn.isl, turn.output.tokens, turn.observed and turn.observed.cached) for turn in s.turns] for s in sessions
    ]
    assert told == usage
    assert all(turn.observed and turn.observed.ttft for session in sessions for turn in session.turns)
    told_twice = subprocess.run(
        [*words, "--template", "1+1"], capture_output=True, cwd=tmp_path, env=environment, check=False
    )
    assert told_twice.returncode == 0
    # The engine's own count: four bytes a token, whatever the bytes are, and its markers are nobody's.
    sizes = [[piece.tokens for piece in session.pieces(1)] for session in read_trace(tmp_path / "b.trace")]
    assert sizes == [[80, 20, 8, 2], [80, 20, 8, 2]]
    # An unbounded cache could have given one token more than the server did: it never stores the last one.
    possible = [sum(reuse.reused) for reuse in possible_by_turn(iter(sessions))]
    observed = [cached for each in usage for _, _, cached in each]
    for index, (could, did) in enumerate(zip(possible, observed, strict=True)):
        assert index % 5 == 0 or could - did == 1


class Anthropic(http.server.BaseHTTPRequestHandler):
    """Says 429 first, then streams a message."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked += 1
        if type(self).asked == 1:
            self._answer(429, {"retry-after-ms": "20"}, b'{"type":"error","error":{"type":"rate_limit_error"}}')
            return
        usage = {
            "input_tokens": 7,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 30,
            "output_tokens": 1,
        }
        events: list[dict[str, object]] = [
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [],
                                                  "model": "c", "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ]  # fmt: skip
        self._answer(200, {"Content-Type": "text/event-stream"}, sse(*events, named=True))

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_a_retry_of_the_anthropic_client_is_one_turn(tmp_path: Path) -> None:
    """R17, R18 with the real client: its retry count on the wire, usage that is told in two events."""
    anthropic = pytest.importorskip("anthropic")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Anthropic)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with recording(tmp_path, f"http://127.0.0.1:{server.server_address[1]}") as (process, url, _):
        client = anthropic.Anthropic(base_url=url, api_key="sk-ant-test-0123456789", max_retries=2)
        with client.messages.stream(model="c", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
            assert stream.get_final_text() == "hello"
        client.close()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    server.shutdown()
    server.server_close()
    words = [*AGENTX, "compile", "cap", "-o", "b.trace"]
    environment = {**ENVIRONMENT, "AGENTX_KEYS": str(tmp_path / "keys")}
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    ((turn,),) = [session.turns for session in read_trace(tmp_path / "b.trace")]
    assert turn.extra["attempts"] == {"count": 2, "failed": [429]}
    assert (turn.isl, turn.output.tokens, turn.observed and turn.observed.cached) == (137, 3, 100)
