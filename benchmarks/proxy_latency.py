"""What the recorder adds to each chunk of a stream: direct, through a bare tee, and through the recorder, in one run.

An upstream process sends events that carry the time at which they were written; a client process reads them and takes
the difference on the same monotonic clock. Streams begin staggered. Three ways in turn, repeated:

    direct    client -> upstream
    tee       client -> 40 lines of asyncio that copy bytes and keep them in a list -> upstream
    recorder  client -> agentx record -> upstream

    python benchmarks/proxy_latency.py --streams 32 --events 100 --body 400000 --repeats 3
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

GAP = 0.02  # s between two events of a stream


def head_length(head: bytes) -> int:
    lower = head.lower()
    return int(lower.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in lower else 0


async def upstream(events: int) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(head_length(head))
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                for _ in range(events):
                    await asyncio.sleep(GAP)
                    event = json.dumps({"choices": [{"delta": {"content": " word"}}], "sent": time.monotonic_ns()})
                    data = f"data: {event}\n\n".encode()
                    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                writer.write(b"0\r\n\r\n")
        writer.close()

    await _serve(handler)


async def tee(port: int) -> None:
    kept: list[bytes] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                kept.append(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))

    await _serve(handler)


async def _serve(handler: object) -> None:
    server = await asyncio.start_server(handler, "127.0.0.1", 0, limit=1 << 24, backlog=1024)  # type: ignore[arg-type]
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def client(port: int, streams: int, events: int, body: int) -> dict[str, float]:
    """Milliseconds of delay of each event, of all streams."""
    messages = [{"role": "user", "content": "x" * 2000} for _ in range(body // 2000)]
    delays: list[float] = []

    async def one(number: int) -> None:
        await asyncio.sleep(number * GAP * events / streams / 4)
        sent = json.dumps({"model": "m", "n": number, "messages": messages}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(sent) + sent)
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(events):
            line = await reader.readuntil(b"}\n\n")
            now = time.monotonic_ns()
            delays.append((now - int(line.rsplit(b'"sent": ', 1)[1].split(b"}")[0])) / 1e6)
        writer.close()

    await asyncio.gather(*(one(number) for number in range(streams)))
    delays.sort()
    return {f"p{percent}": delays[min(len(delays) * percent // 100, len(delays) - 1)] for percent in (50, 90, 99)}


@contextlib.contextmanager
def process(*words: str, ready: str = "") -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A process and the port that it prints: alone on stdout, or in a line of stderr that begins with `ready`."""
    running = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE if ready else None, text=True
    )
    try:
        stream = running.stderr if ready else running.stdout
        assert stream is not None
        line = stream.readline()
        while ready and line and not line.startswith(ready):
            line = stream.readline()
        yield int(line.split()[1].rsplit(":", 1)[1]) if ready else int(line), running
    finally:
        running.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=20)
        running.kill()


def measure(way: str, port: int, args: argparse.Namespace) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with contextlib.ExitStack() as stack:
        if way == "tee":
            port = stack.enter_context(process(__file__, "--part", "tee", "--port", str(port)))[0]
        elif way == "recorder":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            os.environ["AGENTX_KEYS"] = str(Path(folder) / "keys")
            words = ["-m", "agentx", "record", "openai", "--upstream", f"http://127.0.0.1:{port}", "--port", "0"]
            port = stack.enter_context(process(*words, "-o", f"{folder}/cap", ready="recording"))[0]
        figures = asyncio.run(client(port, args.streams, args.events, args.body))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--body", type=int, default=400_000, help="bytes of each request")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--part", choices=("upstream", "tee"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part == "upstream":
        asyncio.run(upstream(args.events))
    elif args.part == "tee":
        asyncio.run(tee(args.port))
    else:
        print(f"{args.streams} streams x {args.events} events, requests of {args.body:,} bytes; ms per chunk")
        with process(__file__, "--part", "upstream", "--events", str(args.events)) as (port, _):
            for _ in range(args.repeats):
                for way in ("direct", "tee", "recorder"):
                    f = measure(way, port, args)
                    cpu = f"  cpu {f['cpu']:.2f} s" if way != "direct" else ""
                    print(f"{way:9} p50 {f['p50']:6.2f}  p90 {f['p90']:6.2f}  p99 {f['p99']:6.2f}{cpu}", flush=True)


if __name__ == "__main__":
    main()
