"""Does the recorder's memory stay flat, and its loop free: many exchanges, then clients that vanish inside a stream.

    python benchmarks/proxy_soak.py --exchanges 10000 --vanish 30

An upstream process answers each request with a short stream; `/slow` streams for ever. The recorder's memory (RSS, its
writer's apart) is read after each tenth of the exchanges. Then `--vanish` clients begin a stream of `--body` bytes and
reset their connections inside it, while a small request goes through the recorder every 5 ms: its longest answer is how
long the loop was not free. Direct answers of the upstream at the same time stand beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

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
    await server.serve_forever()


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


async def longest(port: int, while_running: asyncio.Future[object]) -> float:
    """Milliseconds of the slowest answer to a small request, asked every 5 ms until the other is over."""
    worst = 0.0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not while_running.done():
        begun = time.monotonic()
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"ok")
        worst = max(worst, (time.monotonic() - begun) * 1e3)
        await asyncio.sleep(0.005)
    writer.close()
    return worst


async def soak(port: int, direct: int, pid: int, args: argparse.Namespace) -> None:
    writer = child_of(pid)
    print(f"{'exchanges':>10} {'proxy, MB':>10} {'writer, MB':>10}")
    step = max(1, args.exchanges // 10)
    for begin in range(0, args.exchanges, step):
        for at in range(begin, begin + step, 16):
            await asyncio.gather(*(exchange(port, number) for number in range(at, min(at + 16, begin + step))))
        print(f"{begin + step:>10} {rss(pid):>10.1f} {rss(writer):>10.1f}", flush=True)
    clients = asyncio.gather(*(vanish(port, args.body) for _ in range(args.vanish)))
    through, beside = await asyncio.gather(longest(port, clients), longest(direct, clients))
    print(
        f"{args.vanish} clients that vanish after {args.body:,} bytes: longest answer {through:.1f} ms through the "
        f"recorder, {beside:.1f} ms direct; proxy {rss(pid):.1f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=10_000)
    parser.add_argument("--vanish", type=int, default=30)
    parser.add_argument("--body", type=int, default=5_000_000)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part == "upstream":
        asyncio.run(upstream())
        return
    with tempfile.TemporaryDirectory() as folder, process(__file__, "--part", "upstream") as (direct, _):
        os.environ["AGENTX_KEYS"] = str(Path(folder) / "keys")
        words = ["-m", "agentx", "record", "openai", "--upstream", f"http://127.0.0.1:{direct}", "--port", "0"]
        with process(*words, "-o", f"{folder}/cap", ready="recording") as (port, running):
            asyncio.run(soak(port, direct, running.pid, args))


if __name__ == "__main__":
    main()
