"""What broken or hostile upstreams say passes through `agentx record` as it is, and `compile` says what it was."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
AGENTX = [sys.executable, "-m", "agentx"]
EVENT = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n'
USAGE = b'data: {"id":"a","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\ndata: [DONE]\n\n'
GOOD = json.dumps(
    {
        "id": "g",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
).encode()

# name -> (status, headers, body, the reason for which compile drops it; None where it is a turn)
ANSWERS: dict[str, tuple[int, dict[str, str], bytes, str | None]] = {
    "html-of-a-gateway": (502, {"Content-Type": "text/html"}, b"<html>Bad Gateway</html>", "status 502"),
    "html-with-200": (200, {"Content-Type": "text/html"}, b"<html>Log in first</html>", "the reply is not JSON"),
    "wrong-type": (200, {"Content-Type": "image/png"}, EVENT % b"hi" + USAGE % 1, None),
    "no-type": (200, {}, GOOD, None),
    "bomb": (200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(16 << 20)) * 40, "the body grows beyond"),
    "long-line": (200, {"Content-Type": "text/event-stream"}, EVENT % (b"x" * (20 << 20)) + USAGE % 5000, None),
    "no-utf8": (200, {"Content-Type": "text/event-stream"}, EVENT % b"\xff\xfe\xc3(\xed\xa0" + USAGE % 4, None),
    "nothing": (200, {"Content-Type": "application/json"}, b"", "the reply is not JSON"),
    "nul": (200, {"Content-Type": "application/json"}, bytes(1000), "the reply is not JSON"),
    "good": (200, {"Content-Type": "application/json"}, GOOD, None),
}


class Odd(http.server.BaseHTTPRequestHandler):
    """Answers as the path's first part says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, body, _ = ANSWERS[self.path.split("/")[1]]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def upstream() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def ask(port: int, name: str) -> tuple[int, str | None, bytes]:
    """(status, content type, sha256 of the body) as a client sees them."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"{name} please"}]})
    connection.request("POST", f"/{name}/v1/chat/completions", body)
    answer = connection.getresponse()
    seen = answer.status, answer.headers.get("Content-Type"), hashlib.sha256(answer.read()).digest()
    connection.close()
    return seen


def test_odd_answers_pass_and_are_told(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AGENTX_KEYS": str(tmp_path / "keys")}
    with upstream() as url:
        words = [*AGENTX, "record", "openai", "--upstream", url, "--port", "0", "-o", "cap"]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("recording "))
            port = int(line.split()[1].rsplit(":", 1)[1])
            seen = {name: ask(port, name) for name in ANSWERS}
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.communicate()
    assert seen == {
        name: (status, headers.get("Content-Type"), hashlib.sha256(body).digest())
        for name, (status, headers, body, _) in ANSWERS.items()
    }
    assert f"recorded    {len(ANSWERS)}, of which 0 with something missing" in err
    assert "LOST" not in err
    words = [*AGENTX, "compile", "cap", "-o", "b.trace"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    turns = [name for name, (*_, reason) in ANSWERS.items() if reason is None]
    assert f"exchanges  {len(ANSWERS)} read = {len(turns)} used" in done.stderr
    dropped = [line for line in done.stderr.splitlines() if line.startswith("  dropped")]
    for reason in {reason for *_, reason in ANSWERS.values() if reason is not None}:
        count = sum(answer[3] == reason for answer in ANSWERS.values())
        assert any(line.split()[1] == str(count) and reason in line for line in dropped), (reason, dropped)
