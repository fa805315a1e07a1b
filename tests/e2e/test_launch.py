"""A launched server, through the command line: it is replayed against, recorded, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.core import Header
from agentx.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_UNREACHABLE
from agentx.reporter.metrics import measure
from agentx.results import read_results
from agentx.trace import TraceWriter
from tests.making import linear

ROOT = Path(__file__).parents[2]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        writer.session(linear(3))
    return tmp_path / "t.trace"


def target(tmp_path: Path, *lines: str, command: str | None = None) -> Path:
    path, port = tmp_path / "own.yaml", "'{port}'"
    if command is None:  # the log's name tells the servers of one test from all others
        command = (
            f"[{sys.executable}, -m, agentx, serve, --port, {port}, --set, cache.pool=20000, --log, {tmp_path}/hits]"
        )
    own = f"agentx: target/1\nkind: launch\ncommand: {command}\nenvironment: {{PYTHONPATH: {ROOT}}}\ngrace: 5s\n"
    path.write_text(own + "".join(f"{line}\n" for line in lines))
    return path


def servers(tmp_path: Path) -> set[int]:
    """Processes that serve what this test launches."""
    found, own = set(), f"{tmp_path}/hits".encode()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if own in words:
            found.add(int(entry.parent.name))
    return found


def gone(tmp_path: Path) -> bool:
    for _ in range(300):
        if not servers(tmp_path):
            return True
        time.sleep(0.1)
    return False


def test_a_launched_server_is_warmed_up_replayed_against_and_stopped(trace, tmp_path, capsys):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    own = target(tmp_path, f"model_path: {model}", "image: some/image@sha256:abc", "gpus: 8")
    run = tmp_path / "run"
    sets = ["--set", "gaps.scale=0", "--set", "acceptance={length: 1.0}"]
    code = main(["replay", str(trace), "--target", str(own), "-o", str(run), *sets])
    assert code in (EXIT_OK, EXIT_INVALID)  # a busy machine makes the client late
    assert gone(tmp_path)
    shown = capsys.readouterr()
    assert "own (launch), model agentx, 8 GPUs" in shown.out
    assert "the server is ready after" in shown.err
    found = read_results(run)
    assert found.complete
    assert len(found.attempts) == 3
    kept = json.loads((run / "run.json").read_text())
    assert kept["launch"]["image_digest"] == "sha256:abc"
    assert kept["launch"]["model_config_sha256"].startswith("44136fa355b3678a")
    assert kept["launch"]["environment"]["SGLANG_SIMULATE_ACC_LEN"] == "1.0"
    assert kept["server"]["max_total_num_tokens"] == 20000
    # Warmed up in the real shapes (a chunk of 8,192 and a half, its repetition, halves of it), and not counted.
    (note,) = (note for note in found.notes if note.startswith("warmed up"))
    assert "the longest 12,288" in note
    assert note.endswith("then the cache was emptied")
    assert found.attempts[0].cached.total == 0
    log = (run / "launch.log").read_text()
    assert "serving http://127.0.0.1:" in log
    assert log.rstrip().endswith("stopping the server")


def test_a_server_that_does_not_start_says_why(trace, tmp_path, capsys):
    own = target(tmp_path, command="sh -c 'echo loading; echo CUDA out of memory; exit 3' {port}")
    assert main(["replay", str(trace), "--target", str(own), "-o", str(tmp_path / "run")]) == EXIT_UNREACHABLE
    said = capsys.readouterr().err
    assert "the server ended with 3 before it was ready; the end of" in said
    assert "    CUDA out of memory\n" in said
    own = target(tmp_path, "ready: {timeout: 100ms}", command="sh -c 'sleep 600' {port}")
    assert main(["replay", str(trace), "--target", str(own), "-o", str(tmp_path / "slow")]) == EXIT_UNREACHABLE
    assert "did not answer 200 within 100ms; it wrote nothing to" in capsys.readouterr().err


REFUSED = [
    (("host_tokens: 1000000000000", "bytes_per_token: 100000", "ranks: 8"), "the host pool needs 800,000,000.0 GB"),
    (("arguments: ['${NOT_SET_ANYWHERE}']",), "the environment variable NOT_SET_ANYWHERE is not set"),
    (("envirnment: {}",), "did you mean 'environment'"),
]


@pytest.mark.parametrize(("lines", "says"), REFUSED)
def test_what_is_refused_starts_nothing(trace, tmp_path, capsys, lines, says):
    own = target(tmp_path, *lines)
    assert main(["replay", str(trace), "--target", str(own), "-o", str(tmp_path / "run")]) == EXIT_BAD_INPUT
    said = capsys.readouterr().err
    assert says in said
    assert not (tmp_path / "run").exists()


def test_a_port_that_is_taken_is_refused(trace, tmp_path, capsys):
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        own = target(tmp_path, f"port: {other.getsockname()[1]}")
        assert main(["replay", str(trace), "--target", str(own), "-o", str(tmp_path / "run")]) == EXIT_BAD_INPUT
    assert "is taken: another server runs there" in capsys.readouterr().err


def started(
    processes: list[subprocess.Popen[str]], trace: Path, own: Path, run: Path, scale: int = 1000
) -> subprocess.Popen[str]:
    """A replay of long pauses in a process of its own, in the middle of the first."""
    arguments = ["replay", str(trace), "--target", str(own), "-o", str(run), "--set", f"gaps.scale={scale}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "agentx", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    processes.append(process)
    for _ in range(1200):
        if (run / "results.agx").exists() and read_results(run).attempts:
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("nothing was sent")


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Replays that a test started, ended behind it whatever became of it."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_a_replay_ends_its_server(trace, tmp_path, which, processes):
    run = tmp_path / "run"
    process = started(processes, trace, target(tmp_path), run)
    assert servers(tmp_path)
    process.send_signal(which)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGKILL if which == signal.SIGKILL else EXIT_INTERRUPTED), said
    assert gone(tmp_path)
    found = read_results(run)
    assert len(found.attempts) == 1
    assert found.books().balanced
    assert (found.end is None) == (which == signal.SIGKILL)


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, EXIT_INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM)])
def test_an_end_while_the_server_starts(trace, tmp_path, processes, which, code):
    own = target(tmp_path, "ready: {url: 'http://127.0.0.1:9/never'}")
    process = subprocess.Popen(
        [sys.executable, "-m", "agentx", "replay", str(trace), "--target", str(own), "-o", str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    processes.append(process)
    for _ in range(1200):
        if servers(tmp_path):
            break
        time.sleep(0.05)
    process.send_signal(which)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert gone(tmp_path)


def test_a_server_that_ends_in_the_middle_is_said(trace, tmp_path, processes):
    run = tmp_path / "run"
    process = started(processes, trace, target(tmp_path), run, scale=2)
    (server,) = servers(tmp_path)
    os.kill(server, signal.SIGKILL)
    process.communicate(timeout=60)
    found = read_results(run)
    assert found.attempts[-1].failure.kind == "refused"
    assert any("the launched server ended by itself, with 137" in note for note in found.notes)


REAL = os.environ.get("SGLANG_CPU")  # a folder with start.sh PORT, which starts a real SGLang on the CPU


@pytest.mark.skipif(REAL is None, reason="SGLANG_CPU is not set: no real SGLang to launch")
def test_a_real_sglang_is_launched_and_its_counters_agree_with_its_replies(tmp_path):
    """Live ids keep the exact chain of tokens, so over a drained run the two counts of cached tokens are one."""
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(4):
            writer.session(linear(4, id=f"s{number}", fresh=40 + number, reply=12))
    own = tmp_path / "real.yaml"
    own.write_text(
        "agentx: target/1\nkind: launch\ncommand: ['${SGLANG_CPU}/start.sh', '{port}']\nready: {timeout: 10m}\n"
        "environment: {POOL: '16000', MAXLEN: '8192', SEQS: '4'}\n"
        "arguments: [--speculative-algorithm, NGRAM, --speculative-num-draft-tokens, 4,\n"
        "            --speculative-ngram-max-bfs-breadth, 1]\n"
    )
    run = tmp_path / "run"
    sets = ["gaps.scale=0.1", "load.sessions=2", "wire=generate", "history=live-ids", "acceptance={length: 2.6}"]
    arguments = [word for each in sets for word in ("--set", each)]
    code = main(["replay", str(tmp_path / "t.trace"), "--target", str(own), "-o", str(run), *arguments])
    assert code in (EXIT_OK, EXIT_INVALID)  # a busy machine makes the client late
    found = read_results(run)
    assert found.complete
    assert found.settings["server"]["version"].startswith("0.5.")
    told = measure(found)
    assert told.acceptance is not None
    assert told.acceptance.off is False
    assert told.acceptance.length == pytest.approx(2.6, abs=0.25)  # the plan's, by the environment of the launch alone
    counters = told.reuse.counters
    assert counters is not None
    assert counters.difference == 0
    assert (counters.cached or 0) > 0
    log = (run / "launch.log").read_text()
    assert "SIGTERM received" in log
    assert "crashed" not in log
