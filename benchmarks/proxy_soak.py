"""Does the recorder's memory stay bounded, and its loop free: many exchanges, then clients that vanish inside a stream.

    python benchmarks/proxy_soak.py --exchanges 10000 --vanish 30

An upstream process answers each request with a short stream; `/slow` streams for ever. The recorder's memory (RSS, its
writer's apart) is read after each tenth of the exchanges. Then `--vanish` clients begin a stream of `--body` bytes and
reset their connections inside it. Meanwhile a process of its own sends a small request through the recorder every 5 ms
and tells its longest answer, another asks the upstream directly; the recorder and the upstream tell how late their
loops were (`loop_lag.py`), whole, and without the time for which the machine had no CPU for them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from loop_lag import Watch, told
from proxy_latency import head_length, process

EVENT = b'data: {"choices": [{"delta": {"content": " word"}}]}\n\n'


async def upstream() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(head_length(head))
                if head.startswith(b"GET"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    continue
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                slow = b"/slow" in head.split(b"\r\n")[0]
                for _ in range(1_000_000 if slow else 5):
                    data = EVENT * (2000 if slow else 1)
                    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0, limit=1 << 24, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.gather(server.serve_forever(), Watch().run())


def watched_recorder(words: list[str]) -> int:
    """`agentx record` as it is, with a watch on its loop."""
    from agentx.cli.main import main as agentx
    from agentx.recorder import recording

    record = recording.record

    async def watched(*args: Any, **more: Any) -> dict[str, Any]:
        watch = asyncio.ensure_future(Watch().run())
        try:
            return await record(*args, **more)
        finally:
            watch.cancel()

    recording.record = watched
    return agentx(["record", *words])


async def probe(port: int) -> None:
    """Print milliseconds of the slowest answer to a small request, asked every 5 ms until stdin ends."""
    over = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    worst = 0.0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not over.done():
        begun = time.monotonic()
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"ok")
        worst = max(worst, (time.monotonic() - begun) * 1e3)
        await asyncio.sleep(0.005)
    writer.close()
    print(worst)


@contextlib.contextmanager
def probing(port: int) -> Iterator[list[float]]:
    """Ask from a process of its own; its longest answer is in the list afterwards."""
    words = [sys.executable, __file__, "--part", "probe", "--port", str(port)]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    longest: list[float] = []
    yield longest
    longest.append(float(running.communicate(timeout=60)[0]))


def rss(pid: int) -> float:
    """Megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


async def exchange(port: int, number: int) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "%d %s"}]}' % (number, b"word " * 400)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def vanish(port: int, want: int) -> None:
    """Begin an endless stream and reset the connection after so many bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.write(b"POST /slow/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
    while want > 0 and (data := await reader.read(1 << 16)):
        want -= len(data)
    writer.transport.abort()


async def exchanges(port: int, pid: int, count: int) -> None:
    writer = child_of(pid)
    print(f"{'exchanges':>10} {'proxy, MB':>10} {'writer, MB':>10}")
    step = max(1, count // 10)
    for begin in range(0, count, step):
        for at in range(begin, begin + step, 16):
            await asyncio.gather(*(exchange(port, number) for number in range(at, min(at + 16, begin + step))))
        print(f"{begin + step:>10} {rss(pid):>10.1f} {rss(writer):>10.1f}", flush=True)


async def vanishing(port: int, args: argparse.Namespace) -> None:
    await asyncio.sleep(0.3)  # until the probes have begun
    await asyncio.gather(*(vanish(port, args.body) for _ in range(args.vanish)))


def soak(port: int, recorder: int, direct: int, serving: int, args: argparse.Namespace) -> None:
    """`recorder` and `serving` are process ids, `port` and `direct` the ports at which they listen."""
    asyncio.run(exchanges(port, recorder, args.exchanges))
    figures = Path(os.environ["AGENTX_LAG"])
    for pid in (recorder, serving):
        told(pid, figures)  # what was before does not count
    with probing(port) as through, probing(direct) as beside:
        asyncio.run(vanishing(port, args))
    print(f"{args.vanish} clients that vanish after {args.body:,} bytes; longest, in ms:")
    print(f"{'':10} {'answer':>8} {'loop late':>10} {'without the wait for a CPU':>27}")
    for name, pid, answers in (("recorder", recorder, through), ("upstream", serving, beside)):
        loop = told(pid, figures)
        print(f"{name:10} {answers[0]:8.1f} {loop['lag']:10.1f} {loop['own']:27.1f}")
    peak = rss(recorder)
    time.sleep(2)
    writer = rss(child_of(recorder))
    print(f"memory: proxy {peak:.1f} MB at their end, {rss(recorder):.1f} MB 2 s later, writer {writer:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=10_000)
    parser.add_argument("--vanish", type=int, default=30)
    parser.add_argument("--body", type=int, default=5_000_000)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args, words = parser.parse_known_args()
    if args.part == "upstream":
        asyncio.run(upstream())
    elif args.part == "probe":
        asyncio.run(probe(args.port))
    elif args.part == "recorder":
        sys.exit(watched_recorder(["--port", "0", *words]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.environ |= {"AGENTX_KEYS": f"{folder}/keys", "AGENTX_LAG": f"{folder}/lag"}
            with process(__file__, "--part", "upstream") as (direct, serving):
                words = ["--part", "recorder", "openai", "--upstream", f"http://127.0.0.1:{direct}"]
                with process(__file__, *words, "-o", f"{folder}/cap", ready="recording") as (port, recorder):
                    soak(port, recorder.pid, direct, serving.pid, args)


if __name__ == "__main__":
    main()
