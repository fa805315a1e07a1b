"""`agentx serve` as a process: it says where it is, answers, records, and ends when asked to."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentx.engine.http_live import LiveEngine
from agentx.engine.http_routes import APIS, Server
from agentx.engine.http_script import Rule, load_rules
from agentx.engine.settings import EngineSettings

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "agentx", "serve"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@contextlib.contextmanager
def serving(*args: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """The process, its URL, and what it said on stderr before that."""
    process = subprocess.Popen(
        [*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=ENVIRONMENT
    )
    try:
        assert process.stderr is not None
        before = []
        while not (line := process.stderr.readline()).startswith("serving "):
            assert line, "it ended before it served"
            before.append(line)
        yield process, line.split()[1], before
    finally:
        process.kill()
        process.communicate(timeout=10)


def ended(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, timeout=30, cwd=cwd, env=ENVIRONMENT, check=False
    )


def ask(url: str, body: object) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return dict(json.load(response))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_records_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    settings = ["--set", "cache.pool=5000", "--set", "context=2048"]
    with serving("--port", "0", "--log", "hits.jsonl", *settings, cwd=tmp_path) as (process, url, before):
        assert before == []
        with urllib.request.urlopen(url + "/server_info", timeout=10) as response:
            info = json.load(response)
        assert (info["max_total_num_tokens"], info["context_length"]) == (5000, 2048)
        body = {"messages": [{"role": "user", "content": " abc def"}], "max_tokens": 2, "rid": "first"}
        assert ask(url + "/v1/chat/completions", body)["usage"]["prompt_tokens"] == 4
        (line,) = (tmp_path / "hits.jsonl").read_text().splitlines()  # it is there while the server runs
        assert json.loads(line)["rid"] == "first"
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (0, "", "")


def test_a_target_file_and_a_warning(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("agentx: target/1\nkind: engine\ncontext: 999\n")
    with serving("./mine.yaml", "--port", "0", "--host", "0.0.0.0", cwd=tmp_path) as (_, url, before):
        assert len(before) == 1
        assert before[0].startswith("warning: 0.0.0.0 can be reached")
        port = url.rsplit(":", 1)[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=10) as response:
            assert json.load(response)["data"][0]["max_model_len"] == 999


def test_a_busy_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = ended("--port", str(port), cwd=tmp_path)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.count("\n") == 1
    assert f"port {port}" in process.stderr
    assert "--port 0" in process.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--port", "70000"], "0 to 65535"),
        (["--port", "x"], "0 to 65535"),
        (["--port", "0", "no-such-target"], "no-such-target"),
        (["--port", "0", "./gone.yaml"], "gone.yaml"),
        (["--port", "0", "--set", "cache.pol=1"], "pol"),
        (["--port", "0", "--set", "cache.pool=none"], "pool"),
        (["--port", "0", "--log", "no/such/dir/log"], "no/such/dir/log"),
        (["--port", "0", "--host", "256.1.1.1"], "256.1.1.1"),
        (["--port", "0", "--replies", "gone.yaml"], "gone.yaml"),
        (["--port", "0", "--replies", "bad.jsonl"], "bad.jsonl:2: txt: unknown key"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, args: list[str], says: str) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n{"txt": "b"}\n')
    process = ended(*args, cwd=tmp_path)
    assert process.returncode == 2
    assert "Traceback" not in process.stderr
    assert says in process.stderr.splitlines()[-1]


def test_help_has_examples(tmp_path: Path) -> None:
    process = ended("--help", cwd=tmp_path)
    assert process.returncode == 0
    assert "agentx serve laptop --port 30000 --set cache.pool=8000" in process.stdout


def test_it_answers_by_script(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("agentx: replies/1\nrules:\n  - {contains: ping, text: pong}\n")
    with serving("--port", "0", "--replies", "script.yaml", cwd=tmp_path) as (process, url, before):
        assert before == []
        for word, answer in (("ping", "pong"), ("else", None), ("other", None)):
            body = {"messages": [{"role": "user", "content": word}], "max_tokens": 4}
            text = ask(url + "/v1/chat/completions", body)["choices"][0]["message"]["content"]
            assert answer in (text, None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert err.splitlines() == [
        "note: script.yaml: no rule matches the last message 'else': the engine answers in its own words"
    ]


DOCUMENT = ROOT / "docs/reference/serve.md"


def test_every_route_is_documented() -> None:
    app = Server(LiveEngine(EngineSettings(), model="m")).app()
    routes = {
        f"{route.method} {route.resource.canonical}"
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    text = DOCUMENT.read_text()
    assert {f"POST {path}" for path in APIS} < routes
    assert {route for route in routes if f"`{route}`" not in text} == set()
    documented = set(re.findall(r"`((?:GET|POST|PUT) /[a-z0-9_/]*)`", text))
    assert documented == routes


def test_the_documented_script_loads(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(agentx: replies/1\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "script.yaml").write_text(example)
    rules = load_rules(tmp_path / "script.yaml")
    assert [len(rule.calls) for rule in rules] == [1, 2, 0]
    assert set(Rule.model_fields) == set(re.findall(r"\b(contains|regex|times|text|reasoning|calls):", example))
