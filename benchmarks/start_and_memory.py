"""Time from the start of `agentx replay` to the first request that a server sees, and the peak memory of the process.

    python benchmarks/start_and_memory.py [--runs N]

50 sessions of 40 turns that grow to 100,000 tokens, 8 at a time, against a server that answers at once. The bars are
1 s and 200 MB.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.trace import TraceWriter

SESSIONS, TURNS, START, END = 50, 40, 12_000, 100_000
FIRST_REQUEST, PEAK = 1.0, 200.0  # s, MB
REPLY = 200


def sessions() -> Iterator[Session]:
    shared = {1: Segment(1, "tools", 8_000), 2: Segment(2, "system", 4_000)}
    result = (END - START) // (TURNS - 1) - REPLY
    for number in range(SESSIONS):
        own = {10: Segment(10, "user", 200)}
        made = []
        for at in range(TURNS):
            added = (Piece(1, 0, 8_000), Piece(2, 0, 4_000), Piece(10, 0, 200))
            if at:
                own[9 + 2 * at], own[10 + 2 * at] = (
                    Segment(9 + 2 * at, "assistant", REPLY),
                    Segment(10 + 2 * at, "tool_result", result),
                )
                added = (Piece(9 + 2 * at, 0, REPLY), Piece(10 + 2 * at, 0, result))
            base, keep = (at - 1, 2 * at + 1) if at else (None, 0)
            isl = 12_200 + at * (REPLY + result)
            made.append(
                Turn(at, 0, Prompt(added, base, keep), isl, Output(REPLY), (at - 1,) if at else (), Gap("tool", 1.0))
            )
        yield Session(f"s{number}", tuple(made), segments=own, shared=shared)


class Answers(http.server.BaseHTTPRequestHandler):
    """Chat completions of one event; the time of the first one is kept."""

    protocol_version = "HTTP/1.1"
    first: float | None = None

    def do_GET(self) -> None:
        found = self.path == "/v1/models"
        self.answer(
            json.dumps({"data": [{"id": "m"}]}).encode() if found else b"{}", 200 if found else 404, "application/json"
        )

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/chat/completions":
            self.answer(b"{}", 404, "application/json")
            return
        Answers.first = Answers.first or time.monotonic()
        event = {"choices": [{"delta": {"content": " Abc"}, "finish_reason": "length"}]}
        self.answer(b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n", 200, "text/event-stream")

    def answer(self, body: bytes, status: int, kind: str) -> None:
        head = f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def once(trace: Path, out: Path, url: str) -> tuple[float, float, float]:
    """(s to the first request, peak MB, s in all)."""
    Answers.first = None
    command = [sys.executable, "-m", "agentx", "replay", str(trace), "--target", url, "-o", str(out)]
    sets = ["--sessions", "8", "--set", "gaps.scale=0"]
    root = str(Path(__file__).parents[1])
    start = time.monotonic()
    process = subprocess.Popen([*command, *sets], env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or Answers.first is None:
        raise SystemExit(f"the replay ended with {process.returncode}")
    return Answers.first - start, usage.ru_maxrss / 1024, time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "t.trace"
        with TraceWriter(trace, Header(name="start", scope="start")) as writer:
            for each in sessions():
                writer.session(each)
        found = [once(trace, Path(folder) / f"run{number}", url) for number in range(runs)]
    first, peak, whole = min(item[0] for item in found), max(item[1] for item in found), min(item[2] for item in found)
    print(f"{SESSIONS} sessions x {TURNS} turns to {END:,} tokens: all turns and the report in {whole:.1f} s")
    early = "within" if first <= FIRST_REQUEST else "ABOVE"
    print(f"first request after {first:.2f} s ({early} the bar of {FIRST_REQUEST:g} s)")
    print(f"peak memory {peak:.0f} MB ({'within' if peak <= PEAK else 'ABOVE'} the bar of {PEAK:g} MB), one process")


if __name__ == "__main__":
    main()
